"""What concurrent commits do to bins that are about to be committed.

If another commit deletes rows of a source by a deletion vector, or removes a source, these rows are deleted by vectors
in the new files too. The result is that of the other commit after ours. A bin that cannot be adapted is given up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from pyspark_delta.actions.columns import DELETION_VECTOR
from pyspark_delta.features import Feature, is_active
from pyspark_delta.log.reconciliation import file_keys
from pyspark_delta.maintenance.rewriting.origins import Positions, read_vectors
from pyspark_delta.maintenance.rewriting.rewritten import SOURCE, RewrittenBin
from pyspark_delta.protocol.clustering import DOMAIN as CLUSTERING
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import CommitDraft, Operation, ReadSet, no_files
from pyspark_delta.protocol.state import TableState
from pyspark_delta.transaction.overlap import PathSet
from pyspark_delta.transaction.transaction import REMOVED_COLUMNS
from pyspark_delta.transaction.winner import Winner
from pyspark_delta.write.written import has_row_ids

_LEAST_SHARE = 0.5  # of the rows of a bin that stay; below, the next run makes better files

Describe = Callable[[Sequence[RewrittenBin]], Operation]
"""Returns the operation of a commit, with its metrics, for the bins in it."""


@dataclass(frozen=True)
class Rearrangement:
    """The bins of a draft; it is the draft's reconciler. `base` is the state of the version that was read."""

    base: TableState = field(repr=False)
    bins: tuple[RewrittenBin, ...]
    describe: Describe = field(repr=False)

    def applied(self, draft: CommitDraft) -> CommitDraft:
        """Return the draft with the files of the bins."""
        adds = [files for one in self.bins if (files := one.adds).num_rows]
        removes = [
            one.removes.select([name for name in REMOVED_COLUMNS if name in one.removes.column_names])
            for one in self.bins
        ]
        return replace(
            draft,
            operation=self.describe(self.bins),
            adds=pa.concat_tables(adds, promote_options="default") if adds else no_files(),
            removes=pa.concat_tables(removes, promote_options="default"),
            reads=ReadSet(paths=frozenset(path for one in removes for path in one["path"].to_pylist())),
            reconciler=self,
        )

    def reconcile(self, draft: CommitDraft, winner: Winner, configuration: TableConfiguration) -> CommitDraft | None:
        """Return the draft after what the winning commit did to its files; None if no bin is left."""
        assert self.base.configuration is not None
        if has_row_ids(configuration) and not has_row_ids(self.base.configuration):
            return None  # the rows were written without their ids
        changes = _Changes.of(winner, draft.removes, self.base.location)
        is_reclustered = any(domain.domain == CLUSTERING for domain in winner.domains)
        if changes is None and not is_reclustered:
            return draft
        bins = self.bins
        if changes is not None:
            adapted = (_adapted(one, changes, self.base, configuration) for one in bins)
            bins = tuple(one for one in adapted if one is not None)
        if is_reclustered:
            bins = tuple(one.without_labels() for one in bins)
        return replace(self, bins=bins).applied(draft) if bins else None


@dataclass(frozen=True)
class _Again:
    """A file that the winning commit adds again: its deletion vector, and its base row id."""

    vector: Mapping[str, Any] | None
    base_row_id: int | None


@dataclass(frozen=True)
class _Changes:
    """What a winning commit did to sources, by key of the file: added again, or None for a removed one."""

    location: str
    by_key: Mapping[str, _Again | None]

    @classmethod
    def of(cls, winner: Winner, removes: pa.Table, location: str) -> _Changes | None:
        """Return the changes of the files that a draft removes; None if there are none."""
        sources = PathSet.of(removes["path"], location)
        removed, added = winner.removed, winner.added()
        removed, added = removed.filter(sources.holds(removed)), added.filter(sources.holds(added))
        if not removed.num_rows and not added.num_rows:
            return None
        found: dict[str, _Again | None] = dict.fromkeys(_keys(removed, location).to_pylist())
        again = zip(added["deletion_vector"].to_pylist(), added["base_row_id"].to_pylist(), strict=True)
        found.update(zip(_keys(added, location).to_pylist(), (_Again(*one) for one in again), strict=True))
        return cls(location, found)

    def of_files(self, files: pa.Table) -> dict[int, _Again | None]:
        """Return the changes of some files, by their positions."""
        keys = _keys(files, self.location)
        touched = np.flatnonzero(pc.is_in(keys, value_set=pa.array(list(self.by_key), keys.type)))
        return {at: self.by_key[keys[at].as_py()] for at in touched.tolist()}


def _keys(files: pa.Table, location: str) -> pa.Array:
    return file_keys(files["path"].combine_chunks(), None, location)


def _adapted(
    one: RewrittenBin, changes: _Changes, base: TableState, configuration: TableConfiguration
) -> RewrittenBin | None:
    """Return a bin after changes of its sources; None if it is given up."""
    touched = changes.of_files(one.removes)
    if not touched:
        return one
    found = _deleted_places(one, touched, base)
    if found is None:
        return None
    places, one = found
    if not len(places):
        return one
    if not is_active(configuration, Feature.DELETION_VECTORS):
        return None
    return one.with_deletions(places, base, _LEAST_SHARE)


def _deleted_places(
    one: RewrittenBin, touched: Mapping[int, _Again | None], base: TableState
) -> tuple[Positions, RewrittenBin] | None:
    """Return the places of rows that were deleted in sources, and the bin with sources as they are now.

    None if that is unknown, or if a source has got rows or row ids that it had not.
    """
    vectors = one.removes["deletion_vector"].to_pylist()
    deleted: dict[int, BitMap64 | None] = {}
    for at, change in touched.items():
        source = one.removes[SOURCE][at].as_py()
        if change is None:
            deleted[source] = None
            continue
        if change.base_row_id is not None and change.base_row_id != one.removes["base_row_id"][at].as_py():
            return None
        if change.vector == vectors[at]:
            continue
        before, after = read_vectors(base.location, base.storage_options, _two(one.removes, at, change.vector))
        if before - after:
            return None
        deleted[source] = after - before
        vectors[at] = change.vector
    if deleted and one.origins is None:
        return None
    places = one.origins.places(deleted) if deleted and one.origins is not None else np.zeros(0, np.int64)
    removes = one.removes.set_column(
        one.removes.column_names.index("deletion_vector"), DELETION_VECTOR, pa.array(vectors, DELETION_VECTOR.type)
    )
    is_gone = [at in touched and touched[at] is None for at in range(removes.num_rows)]
    return places, replace(one, removes=removes.filter(pc.invert(pa.array(is_gone, pa.bool_()))))


def _two(files: pa.Table, at: int, vector: Mapping[str, Any] | None) -> pa.Table:
    """Return a file twice: with its deletion vector, and with another one."""
    known = files["deletion_vector"][at].as_py()
    path = files["path"][at].as_py()
    return pa.table({"path": [path, path], "deletion_vector": pa.array([known, vector], DELETION_VECTOR.type)})
