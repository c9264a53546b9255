"""Copies of files from one table to another: server-side in one store, streamed between two, in parallel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.errors import FileNotFoundInStoreError, InvalidOperationError, StorageError
from pyspark_delta.maintenance.clone.files import COPIES
from pyspark_delta.parallel import map_requests
from pyspark_delta.progress import begin
from pyspark_delta.storage import store_for
from pyspark_delta.storage.paths import join, split

_AT_ONCE = 16  # requests
_BLOCK = 8 << 20  # bytes that a stream reads at once


@dataclass(frozen=True)
class Copier:
    """Copies files between the stores of two tables; the options are those of the stores."""

    source_options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    target_options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)

    def missing(self, copies: pa.Table, target_location: str) -> pa.Table:
        """Return the copies that do not exist yet, with the columns of `COPIES`, all with sizes.

        Lists the target. Raises InvalidOperationError for a file there that has another size than its source: it is no
        copy, since copies appear complete.
        """
        copies = self._sized(copies)
        listed = _listed(target_location, self.target_options)
        known = pc.index_in(copies["target"], value_set=listed["path"].combine_chunks())
        if known.null_count == len(known):
            return copies
        exists = pc.is_valid(known)
        sizes = listed["size"].take(known.combine_chunks() if isinstance(known, pa.ChunkedArray) else known)
        found = copies.append_column("found", sizes).filter(exists)
        for row in self._checked(found):
            raise InvalidOperationError(
                f"'{row['target']}' has {row['found']} bytes, but '{row['source']}' has {row['size']}, so it is not a "
                "copy of it. Clone to another directory, or delete the file.",
                error_class="DELTA_PATH_EXISTS",
                path=row["target"],
            )
        return copies.filter(pc.invert(exists))

    def run(self, copies: pa.Table) -> None:
        """Make the copies, and check the size of each. Raises StorageError."""
        step = begin("Copy files", copies.num_rows, "files")
        done = map_requests(self._copy, _rows(copies), min(_AT_ONCE, copies.num_rows or 1))
        for _ in step.shown(done, lambda _: 1):
            pass

    def _copy(self, copy: tuple[str, str, int]) -> None:
        source, target, size = copy
        sink = store_for(target, self.target_options)
        if self._in_one_store(source, target):
            sink.copy(source, target)
        else:
            with (
                store_for(source, self.source_options).open_input(source) as file,
                sink.open_output(target) as output,
            ):
                while block := file.read(_BLOCK):
                    output.write(block)
        found = sink.status(target).size
        if found != size:
            sink.delete([target])
            raise StorageError(
                f"The copy of '{source}' has {found} bytes, but the file should have {size}: the log and the file "
                "disagree, or the file changes. Nothing was committed. Check the source.",
                path=source,
            )

    def _in_one_store(self, source: str, target: str) -> bool:
        return split(source)[:2] == split(target)[:2] and dict(self.source_options) == dict(self.target_options)

    def _sized(self, copies: pa.Table) -> pa.Table:
        """Return the copies, with sizes from the store where the log has none. Raises FileNotFoundInStoreError."""
        unknown = pc.is_null(copies["size"]).combine_chunks()
        if not unknown.true_count:
            return copies

        def size(path: str) -> int:
            return store_for(path, self.source_options).status(path).size

        paths = copies["source"].filter(unknown).to_pylist()
        sizes = pa.array(map_requests(size, paths, min(_AT_ONCE, len(paths))), pa.int64())
        column = pc.replace_with_mask(copies["size"].combine_chunks(), unknown, sizes)
        return copies.set_column(copies.column_names.index("size"), COPIES.field("size"), column)

    def _checked(self, found: pa.Table) -> Iterator[dict[str, object]]:
        """Yield the files, with the size `found`, that have another size than their source."""
        if found["found"].null_count:  # a listing without sizes

            def size(path: str) -> int | None:
                try:
                    return store_for(path, self.target_options).status(path).size
                except FileNotFoundInStoreError:
                    return None

            paths = found["target"].to_pylist()
            sizes = pa.array(map_requests(size, paths, min(_AT_ONCE, len(paths))), pa.int64())
            found = found.set_column(found.column_names.index("found"), "found", sizes)
        other = pc.fill_null(pc.not_equal(found["found"], found["size"]), True)
        yield from found.filter(other).to_pylist()


def _listed(location: str, options: Mapping[str, str]) -> pa.Table:
    """Return the location and the size of each file below a directory."""
    tree = store_for(location, options).list_tree(location, lambda name: name == "_delta_log")
    schema = pa.schema([pa.field("path", pa.string()), pa.field("size", pa.int64())])
    prefix = join(location, "")
    batches = [
        pa.RecordBatch.from_arrays(
            [pc.binary_join_element_wise(prefix, batch.column("path"), ""), batch.column("size")], schema=schema
        )
        for batch in tree
    ]
    return pa.Table.from_batches(batches, schema)


def _rows(copies: pa.Table) -> Iterator[tuple[str, str, int]]:
    for batch in copies.select(COPIES.names).to_batches(max_chunksize=4096):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
