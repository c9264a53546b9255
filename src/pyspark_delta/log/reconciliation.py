"""Action reconciliation (C211-C221): the newest action of each kind and key decides.

Commits after the checkpoint decide first; a file action of the checkpoint counts only if no later commit names its key.
The keys of the commits are few, those of the checkpoint many: each checkpoint key is probed, and none are collected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.decode import decode_domain, decode_metadata, decode_protocol, decode_transaction
from pyspark_delta.actions.model import DomainMetadata, Metadata, Protocol, SetTransaction
from pyspark_delta.log.arrays import chosen_rows, string_array
from pyspark_delta.log.commits import CommitText, malformed, single
from pyspark_delta.storage.percent import resolve_column
from pyspark_delta.storage.plain_paths import are_plain

_UNUSUAL = r"[%:\\\x00]|^/|//|(^|/)\.|/$|^$"
_ROWS_PER_SLICE = 512
_PROBED_AT_ONCE = 200_000  # rows


class Keys:
    """Keys of files: those that the commits after a checkpoint name, or those of another version."""

    def __init__(self, keys: Iterable[bytes], table_location: str) -> None:
        self._table_location = table_location
        known = list(keys)
        self._values = string_array(known) if known else None

    @classmethod
    def of_files(cls, batches: Iterable[pa.RecordBatch], table_location: str) -> Keys:
        """Return the keys of files, with columns `path` and `deletion_vector`."""
        keys = cls((), table_location)
        found = [keys._keys_of(batch) for batch in batches]
        keys._values = pa.concat_arrays(found) if found else None
        return keys

    def unnamed(
        self, batches: Iterable[pa.RecordBatch], probed_at_once: int = _PROBED_AT_ONCE
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of batches, with `path` and `deletion_vector` columns, whose key no later commit names.

        At least that many rows are collected and looked up together.
        """
        for batch, named in self._probed(batches, probed_at_once):
            if named is None:
                yield batch
            else:
                yield from _without(batch, named)

    def only_named(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows that `unnamed` leaves out."""
        for batch, named in self._probed(batches, _PROBED_AT_ONCE):
            if named is not None and named.true_count:
                yield chosen_rows(batch, named)

    def unnamed_mask(self, batch: pa.RecordBatch) -> pa.BooleanArray | None:
        """Return which rows `unnamed` keeps; None for all."""
        (named,) = self.named([batch])
        return None if named is None or not named.true_count else pc.invert(named)

    def named(self, batches: Sequence[pa.RecordBatch]) -> list[pa.BooleanArray | None]:
        """Return which rows of each batch later commits name; None for none. Uses one probe, because each hashes the
        key set.
        """
        if self._values is None or not any(map(len, batches)):
            return [None] * len(batches)
        keys = pa.chunked_array([self._keys_of(batch) for batch in batches], self._values.type)
        found = pc.is_in(keys, value_set=self._values).combine_chunks()
        starts = [0, *accumulate(map(len, batches))]
        return [found.slice(start, len(batch)) for start, batch in zip(starts, batches, strict=False)]

    def _probed(
        self, batches: Iterable[pa.RecordBatch], at_once: int
    ) -> Iterator[tuple[pa.RecordBatch, pa.BooleanArray | None]]:
        """Yield each batch with the answer of `named`; at least `at_once` rows are looked up together."""
        if self._values is None:
            yield from ((batch, None) for batch in batches)
            return
        waiting: list[pa.RecordBatch] = []
        for batch in batches:
            waiting.append(batch)
            if sum(map(len, waiting)) >= at_once:
                yield from zip(waiting, self.named(waiting), strict=True)
                waiting = []
        yield from zip(waiting, self.named(waiting), strict=True)

    def _keys_of(self, batch: pa.RecordBatch) -> pa.Array:
        vectors = batch.column("deletion_vector") if "deletion_vector" in batch.schema.names else None
        return file_keys(batch.column("path"), vectors, self._table_location)


def _without(batch: pa.RecordBatch, named: pa.BooleanArray) -> Iterator[pa.RecordBatch]:
    """Yield the rows that are not named: as slices if few are named, because copying the others costs more."""
    count = named.true_count
    if count == 0:
        yield batch
    elif count * _ROWS_PER_SLICE > len(batch):
        yield chosen_rows(batch, pc.invert(named))
    else:
        start = 0
        for position in (*pc.indices_nonzero(named).to_pylist(), len(batch)):
            if position > start:
                yield batch.slice(start, position - start)
            start = position + 1


def file_keys(paths: pa.Array, vectors: pa.StructArray | None, table_location: str) -> pa.Array:
    """Return the keys of many files; the vectorised form of `file_keys.path_key`."""
    keys = paths
    if not are_plain(paths):
        keys = _resolved(paths, table_location)
    if vectors is None or vectors.null_count == len(vectors):
        return keys
    storage, inline, offset = (pc.struct_field(vectors, [i]) for i in range(3))
    suffix = pc.if_else(pc.is_valid(offset), pc.binary_join_element_wise("@", offset.cast(pa.string()), ""), "")
    suffix = pc.fill_null(suffix, "")
    identity = pc.binary_join_element_wise(keys, pc.binary_join_element_wise(storage, inline, suffix, ""), "\0")
    return pc.coalesce(identity, keys)


def _resolved(paths: pa.Array, table_location: str) -> pa.Array:
    """Return the keys of paths. Only paths with more than one spelling are resolved."""
    unusual = pc.match_substring_regex(paths, _UNUSUAL)
    odd = paths.filter(unusual)
    if not len(odd):
        return paths
    locations = resolve_column(table_location, odd)
    prefix = table_location.rstrip("/") + "/"
    inside = pc.starts_with(locations, prefix)
    below = pc.utf8_slice_codeunits(locations.filter(inside), len(prefix))
    return pc.replace_with_mask(paths, unusual, pc.replace_with_mask(locations, inside, below))


def latest_protocol(texts: Iterable[CommitText]) -> Protocol | None:
    """Return the protocol of the first commit that has one; commits come newest first."""
    for text in texts:
        found = text.fields("protocol")
        if found and (fields := single(found, text.path, "protocol")) is not None:
            return decode_protocol(fields)
    return None


def latest_metadata(texts: Iterable[CommitText]) -> Metadata | None:
    """Return the metadata of the first commit that has some; commits come newest first."""
    for text in texts:
        found = text.fields("metaData")
        if found and (fields := single(found, text.path, "metaData")) is not None:
            return decode_metadata(fields)
    return None


def transactions(before: Iterable[SetTransaction], texts: Iterable[CommitText]) -> dict[str, SetTransaction]:
    """Return the latest transaction of each application (C178, C213); commits in ascending order."""
    state = {t.app_id: t for t in before}
    for text in texts:
        own: dict[str, SetTransaction] = {}
        for found in map(decode_transaction, text.fields("txn")):
            if own.setdefault(found.app_id, found).version != found.version:
                raise malformed(text.path, f"it holds two versions for the application '{found.app_id}'")
        state.update(own)
    return state


def domains(before: Iterable[DomainMetadata], texts: Iterable[CommitText]) -> dict[str, DomainMetadata]:
    """Return the latest metadata of each domain; removed ones are hidden (C207, C214). Commits in ascending order."""
    state = {d.domain: d for d in before}
    for text in texts:
        own: dict[str, DomainMetadata] = {}
        for found in map(decode_domain, text.fields("domainMetadata")):
            if own.setdefault(found.domain, found) != found:
                raise malformed(text.path, f"it holds two values for the domain '{found.domain}'")
        state.update(own)
    return {name: domain for name, domain in state.items() if not domain.removed}
