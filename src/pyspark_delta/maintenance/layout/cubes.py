"""Which files of a clustered table are clustered already, and which of them a run takes (C352, C353).

A cube is a set of files that were clustered together: the tag ZCUBE_ID names it, ZCUBE_ZORDER_BY the columns, and
`clusteringProvider` who clustered it. delta-spark uses the same names. A cube is stable once it is large enough;
smaller ones are partial, and are clustered again with new files. delta-spark calls cubes from 100 GiB on stable, so it
rewrites a smaller table after each append. Here the size depends on that of the table, and a run merges a partial cube
only with about as many new rows, as a log-structured tree does: each row is rewritten a logarithmic number of times.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.maintenance.layout.columns import LayoutColumn, names_as_json

PROVIDER = "liquid"
CUBE_ID = "ZCUBE_ID"
CUBE_COLUMNS = "ZCUBE_ZORDER_BY"
FILE_COLUMNS = ("size", "tags", "clustering_provider")
"""The columns of `actions.columns` that `files_to_cluster` reads."""

Mask: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"

_GIB = 1 << 30
_SMALLEST_TARGET, _LARGEST_TARGET = _GIB, 100 * _GIB
_CUBES = 16  # of a table, about
_STABLE = 2 / 3  # of the target; delta-spark: 100 GiB of 150 GiB
_MERGED = 2  # times the bytes taken so far that a cube may have


@dataclass(frozen=True, slots=True)
class CubeSizes:
    """How large cubes become, in bytes: new ones `target`; those with less than `stable` are clustered again."""

    target: int
    stable: int

    @classmethod
    def of_table(cls, size: int) -> CubeSizes:
        """Return the sizes for a table of so many bytes: a sixteenth of it, but from 1 to 100 GiB."""
        return cls.of_target(min(max(size // _CUBES, _SMALLEST_TARGET), _LARGEST_TARGET))

    @classmethod
    def of_target(cls, target: int) -> CubeSizes:
        """Return the sizes for new cubes of so many bytes."""
        return cls(target, int(target * _STABLE))

    @classmethod
    def of_stable(cls, stable: int) -> CubeSizes:
        """Return the sizes for cubes that are stable from so many bytes on."""
        return cls(int(stable / _STABLE), stable)


@dataclass(frozen=True, slots=True, eq=False)
class ChosenFiles:
    """The files that a run clusters: a mask of all files, and how many of them with how many bytes were in cubes.

    `num_cubes` are the cubes among them. `is_cut` is True if more would have been chosen without a limit.
    """

    mask: Mask
    cube_files: int
    cube_bytes: int
    other_files: int
    other_bytes: int
    num_cubes: int
    is_cut: bool = False

    @property
    def num_files(self) -> int:
        """The number of chosen files."""
        return self.cube_files + self.other_files

    @property
    def num_bytes(self) -> int:
        """The sum of their sizes."""
        return self.cube_bytes + self.other_bytes


def files_to_cluster(
    files: pa.Table, columns: Sequence[LayoutColumn], sizes: CubeSizes, *, full: bool = False, limit: int | None = None
) -> ChosenFiles:
    """Return which files to cluster by the columns; `files` has `FILE_COLUMNS`.

    Files without a cube are chosen, and partial cubes of the same columns as long as they are not much larger than what
    is chosen so far. With `full`, all partial cubes are chosen, and cubes of other columns. Stable cubes of the same
    columns stay, and files of other providers (C353). A single cube is not clustered again. If all this has more than
    `limit` bytes, only files without a cube are chosen, as many as fit.
    """
    size = pc.fill_null(_one(files["size"]), 0).to_numpy(zero_copy_only=False)
    provider = _one(files["clustering_provider"])
    is_ours = pc.equal(provider, PROVIDER)
    may_move = pc.fill_null(pc.or_kleene(pc.is_null(provider), is_ours), False).to_numpy(zero_copy_only=False)
    ids = pc.if_else(pc.fill_null(is_ours, False), _tag(files["tags"], CUBE_ID), pa.scalar(None, pa.string()))
    cubes = ids.dictionary_encode()
    number = pc.fill_null(cubes.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    in_cube = number >= 0
    is_other = in_cube & ~_is_of(files["tags"], columns)
    count = len(cubes.dictionary)
    bytes_of = np.bincount(number[in_cube], size[in_cube], count)
    other = np.zeros(count, np.bool_)
    other[number[is_other]] = True
    new = may_move & ~in_cube
    taken = other.copy() if full else np.zeros(count, np.bool_)
    partial = np.flatnonzero(~other & (bytes_of < sizes.stable))
    partial = partial[np.argsort(bytes_of[partial], kind="stable")]
    chosen = float(size[new].sum() + bytes_of[taken].sum())
    for cube in partial.tolist():
        if not full and chosen and bytes_of[cube] > _MERGED * chosen:
            break
        taken[cube] = True
        chosen += bytes_of[cube]
    from_cubes = np.zeros(len(size), np.bool_)
    from_cubes[in_cube] = taken[number[in_cube]]
    if not new.any() and taken.sum() == 1 and not other[taken].any():
        from_cubes[:] = False
    is_cut = limit is not None and int(size[new | from_cubes].sum()) > limit
    if is_cut:
        from_cubes[:] = False
        new &= np.cumsum(np.where(new, size, 0)) <= limit
    return ChosenFiles(
        mask=new | from_cubes,
        cube_files=int(from_cubes.sum()),
        cube_bytes=int(size[from_cubes].sum()),
        other_files=int(new.sum()),
        other_bytes=int(size[new].sum()),
        num_cubes=len(np.unique(number[from_cubes])),
        is_cut=is_cut,
    )


def new_cubes(num_bytes: int, sizes: CubeSizes) -> tuple[str, ...]:
    """Return the ids of the cubes that so many bytes become; each of them is stable if there are several."""
    return tuple(str(uuid.uuid4()) for _ in range(max(num_bytes // sizes.target, 1)))


def cube_tags(cube: str, columns: Sequence[LayoutColumn]) -> Mapping[str, str]:
    """Return the tags of a file that belongs to a cube (C352 names the provider beside them)."""
    return {CUBE_ID: cube, CUBE_COLUMNS: names_as_json(columns)}


def _is_of(tags: pa.ChunkedArray, columns: Sequence[LayoutColumn]) -> Mask:
    """Return which files were clustered by exactly these columns, in this order."""
    encoded = _tag(tags, CUBE_COLUMNS).dictionary_encode()
    wanted = orjson.loads(names_as_json(columns))
    same = [index for index, text in enumerate(encoded.dictionary.to_pylist()) if _parsed(text) == wanted]
    found: Mask = np.isin(pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False), same)
    return found


def _parsed(text: str) -> Any:
    try:
        return orjson.loads(text)
    except ValueError:
        return None


def _tag(tags: pa.ChunkedArray, name: str) -> pa.Array:
    return pc.map_lookup(_one(tags), pa.scalar(name), "last").cast(pa.string())


def _one(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    if isinstance(found, pa.ChunkedArray):
        found = pa.concat_arrays(found.chunks) if found.num_chunks else pa.array([], found.type)
    return found
