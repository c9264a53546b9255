"""The files that a vacuum may delete: of a listing, of an inventory, or of the removes in the log.

Candidates have the columns of `CANDIDATES`. Paths are below the table, decoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta import progress
from pyspark_delta.errors import FileNotFoundInStoreError, InvalidOptionError
from pyspark_delta.maintenance.vacuum.references import References
from pyspark_delta.maintenance.vacuum.request import Retention
from pyspark_delta.protocol.properties import UNIVERSAL_FORMATS
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage.contract import TREE
from pyspark_delta.storage.local import LocalStore
from pyspark_delta.storage.paths import join, to_hadoop

CANDIDATES = TREE.append(pa.field("kind", pa.string()))
"""Path below the table, size in bytes, time in ms since the epoch, and what the file is: one of `KINDS`."""

DATA, VECTORS, CHANGE_DATA, OTHER = "data", "deletion vectors", "change data", "other"
KINDS = (DATA, VECTORS, CHANGE_DATA, OTHER)

LIST_FILES = "List files"

_VISIBLE = ("_delta_index", "_change_data")  # although they begin like hidden names (as in delta-spark)
_PARTS = 64  # ranges of keys in which an object store is listed


def from_listing(
    snapshot: Snapshot, protected: References, expired: References, retention: Retention, sample: Sequence[str]
) -> pa.Table:
    """Return the files below the table that are not protected and old enough. `sample` are paths of known files.

    Where a listing has no sizes and times, only files that are not protected are asked for them.
    """
    names = Names(snapshot)
    found = []
    step = progress.begin(LIST_FILES, None, "files")
    for batch in snapshot.store.list_tree(snapshot.location, names.is_hidden, _boundaries(sample)):
        step.add(batch.num_rows)
        loose = batch.filter(pa.array(~protected.hold(batch.column("path"))))
        loose = loose.filter(pc.invert(names.hidden_files(loose.column("path"))))
        if loose.num_rows:
            found.append(_old_enough(_with_status(snapshot, loose), expired, retention))
    return _candidates(found)


def from_inventory(
    snapshot: Snapshot, inventory: object, protected: References, expired: References, retention: Retention
) -> pa.Table:
    """Return the files of an inventory that are not protected and old enough.

    Raises InvalidOptionError if it lacks a column, or names no file below the table.
    """
    names, found, named = Names(snapshot), [], False
    for given in _inventory_batches(inventory):
        batch = _below(given, snapshot.location)
        named |= batch.num_rows > 0
        loose = batch.filter(pa.array(~protected.hold(batch.column("path"))))
        loose = loose.filter(pc.invert(names.hidden(loose.column("path"))))
        found.append(_old_enough(loose, expired, retention))
    if not named:
        raise InvalidOptionError(
            f"The inventory names no file below '{snapshot.location}'. Give the full paths of its files.",
            option="inventory",
        )
    return _candidates(found)


def from_removes(files: Iterable[pa.RecordBatch], protected: References) -> pa.Table:
    """Return the files of removes, with the columns path and size, that are not protected, each once."""
    table = pa.Table.from_batches(files, pa.schema(list(CANDIDATES)[:2]))
    table = table.filter(pa.array(~protected.hold(table["path"].combine_chunks())))
    table = table.group_by("path").aggregate([("size", "max")]).rename_columns(["path", "size"])
    return _candidates([table.append_column("modification_time", pa.nulls(table.num_rows, pa.int64()))])


# -------------------------------------------------------------------------------------------------- hidden names
class Names:
    """Which names below a table are hidden, and never deleted: those that begin with `_` or `.` (C016).

    Visible although they begin so are change data, indexes, and directories of partition columns. Where Iceberg's
    metadata are written, their directory is hidden too.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        columns = {*snapshot.partition_names, *snapshot.configuration.partition_columns}
        self._visible = (*_VISIBLE, *(f"{name}=" for name in columns))
        self._foreign = "metadata" if "iceberg" in UNIVERSAL_FORMATS.of(snapshot.properties).lower() else ""

    def is_hidden(self, name: str) -> bool:
        """Return True if a file or directory of this name is hidden."""
        return (name.startswith(("_", ".")) and not name.startswith(self._visible)) or name == self._foreign != ""

    def hidden_files(self, paths: pa.Array) -> pa.Array:
        """Return a mask of the paths whose last name is hidden."""
        names = pc.replace_substring_regex(paths, "^.*/", "")
        shown = pc.starts_with(names, self._visible[0])
        for start in self._visible[1:]:
            shown = pc.or_(shown, pc.starts_with(names, start))
        return pc.and_(pc.or_(pc.starts_with(names, "_"), pc.starts_with(names, ".")), pc.invert(shown))

    def hidden(self, paths: pa.Array) -> pa.Array:
        """Return a mask of the paths with a hidden name."""
        directories = pc.dictionary_encode(pc.replace_substring_regex(paths, "(^|/)[^/]*$", ""))
        inside = pa.array(
            [any(map(self.is_hidden, path.split("/"))) for path in directories.dictionary.to_pylist()], pa.bool_()
        )
        return pc.or_(inside.take(directories.indices), self.hidden_files(paths))


# ----------------------------------------------------------------------------------------------------------- ages
def _with_status(snapshot: Snapshot, files: pa.RecordBatch) -> pa.RecordBatch:
    """Return the files with sizes and times; without those that are gone meanwhile."""
    if not files.column("modification_time").null_count:
        return files
    if isinstance(snapshot.store, LocalStore):
        return snapshot.store.with_status(snapshot.location, files)
    found = []
    for path in files.column("path").to_pylist():
        try:
            status = snapshot.store.status(join(snapshot.location, path))
        except FileNotFoundInStoreError:
            continue
        found.append((path, status.size, status.modification_time))
    columns = zip(*found, strict=True) if found else ((), (), ())
    return pa.RecordBatch.from_arrays(
        [pa.array(values, field.type) for values, field in zip(columns, files.schema, strict=True)], schema=files.schema
    )


def _old_enough(files: pa.RecordBatch, expired: References, retention: Retention) -> pa.RecordBatch:
    """Return the files that are older than the retention; those of no commit may have to be older."""
    times = pc.fill_null(files.column("modification_time"), retention.cutoff).to_numpy(zero_copy_only=False)
    old = times < retention.cutoff
    if retention.unnamed_cutoff < retention.cutoff and old.any():
        old &= (times < retention.unnamed_cutoff) | expired.hold(files.column("path"))
    return files.filter(pa.array(old))


def _candidates(files: Iterable[pa.RecordBatch | pa.Table]) -> pa.Table:
    known = TREE.names
    tables = [pa.table({name: one.column(name) for name in known}) for one in files]
    table = pa.concat_tables([TREE.empty_table(), *tables])
    return table.append_column(CANDIDATES.field("kind"), [_kinds(table["path"].combine_chunks())])


def _kinds(paths: pa.Array) -> pa.Array:
    names = pc.replace_substring_regex(paths, "^.*/", "")
    change_data = pc.match_substring_regex(paths, "(^|/)_change_data/")
    vectors = pc.and_(pc.starts_with(names, "deletion_vector_"), pc.ends_with(names, ".bin"))
    conditions = pc.make_struct(change_data, vectors, pc.ends_with(names, ".parquet"))
    return pc.case_when(conditions, CHANGE_DATA, VECTORS, DATA, OTHER) if len(paths) else pa.array([], pa.string())


def _boundaries(sample: Sequence[str]) -> list[str]:
    """Return paths that cut the files of a table into parts of about the same size."""
    ordered = sorted(set(sample))
    step = max(1, len(ordered) // _PARTS)
    return ordered[step::step] if len(ordered) >= 2 * _PARTS else []


# ------------------------------------------------------------------------------------------------------ inventory
def _inventory_batches(inventory: object) -> Iterator[pa.RecordBatch]:
    reader = pa.RecordBatchReader.from_stream(inventory)
    missing = [name for name in ("path", "length", "isDir", "modificationTime") if name not in reader.schema.names]
    if missing:
        raise InvalidOptionError(
            f"The inventory lacks the columns {', '.join(missing)}. It needs path, length, isDir and modificationTime "
            "(ms since the epoch).",
            option="inventory",
        )
    for batch in reader:
        files = batch.filter(pc.invert(pc.fill_null(batch.column("isDir"), False)))
        yield pa.RecordBatch.from_arrays(
            [
                files.column("path").cast(pa.string()),
                files.column("length").cast(pa.int64()),
                _milliseconds(files.column("modificationTime")),
            ],
            names=TREE.names,
        )


def _milliseconds(times: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(times.type):
        return times.cast(pa.timestamp("ms", times.type.tz), safe=False).cast(pa.int64())
    return times.cast(pa.int64())


def _below(files: pa.RecordBatch, location: str) -> pa.RecordBatch:
    """Return the files below a table, with their paths below it. Full paths have one of several spellings."""
    found = []
    hadoop = to_hadoop(location)
    for spelling in dict.fromkeys((location, hadoop, hadoop.replace("file:/", "file:///", 1))):
        prefix = join(spelling, "")
        inside = files.filter(pc.starts_with(files.column("path"), prefix))
        if inside.num_rows:
            paths = pc.utf8_slice_codeunits(inside.column("path"), len(prefix))
            found.append(inside.set_column(0, "path", paths))
    return pa.Table.from_batches(found, files.schema).combine_chunks().to_batches()[0] if found else files.slice(0, 0)
