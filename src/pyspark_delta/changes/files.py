"""The files that hold the changed rows of some commits, with the facts of a commit that its rows need.

The facts are constant in each file, and are passed as partition values, so that the files of many versions are read in
one scan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.columns import DELETION_VECTOR, PARTITION_VALUES, PATH, SELECTS_ROWS, SIZE
from pyspark_delta.actions.model import Metadata
from pyspark_delta.changes.commits import INDEX, VERSION, FileActions
from pyspark_delta.changes.configuration_ranges import ConfigurationRange
from pyspark_delta.changes.feed_columns import CHANGE_COLUMNS, CHANGE_TYPE, DELETE, INSERT
from pyspark_delta.changes.removed_files import with_partition_values
from pyspark_delta.changes.vectors import paired, vector_changes
from pyspark_delta.errors import UnsupportedTableError
from pyspark_delta.log.arrays import map_array, map_value
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.scan.file_source import FileSource
from pyspark_delta.schema.column_mapping import mapping_mode, physical_field
from pyspark_delta.schema.partition_values import serialize_partition_column
from pyspark_delta.schema.types import TIMESTAMP
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage.percent import resolve_column

RANGE = "range"
"""The column of files with the number of the configuration range of their commit."""

_CONSTANTS = tuple(field.name for field in CHANGE_COLUMNS)
_KEY = "key"


def changed_files(actions: FileActions, ranges: Sequence[ConfigurationRange], latest: Snapshot) -> pa.Table:
    """Return all files with changed rows: "_change_type" is null for change data files, which store it in each row."""
    adds = _keyed(_with_range_number(actions.adds, ranges), latest)
    removes = with_partition_values(actions.removes, actions.adds, latest)
    removes = _keyed(_with_range_number(removes, ranges, before=True), latest)
    added, removed = paired(adds, removes, _KEY)
    changed = vector_changes(removes.take(removed), adds.take(added), latest)
    whole = [
        _whole(_without(adds, added), INSERT),
        _whole(_without(removes, removed), DELETE),
        _whole(
            _with_range_number(actions.cdc, ranges).append_column(
                DELETION_VECTOR, _nulls(actions.cdc, DELETION_VECTOR)
            ),
            None,
        ),
    ]
    names = [name for name in changed.column_names if name not in (_KEY, INDEX.name)]
    return pa.concat_tables([table.select(names) for table in (changed, *whole)])


def inserted_files(files: pa.Table, version: int) -> pa.Table:
    """Return the files of a version as if its commit had added them, with the columns of `changed_files`.

    `files` has the columns "path", "partition_values", "size" and "deletion_vector".
    """
    names = [PATH.name, PARTITION_VALUES.name, SIZE.name, DELETION_VECTOR.name]
    numbers = pa.array(np.full(files.num_rows, version, np.int64))
    ranges = pa.array(np.zeros(files.num_rows, np.int64))
    return _whole(files.select(names).append_column(VERSION, numbers).append_column(RANGE, ranges), INSERT)


def _whole(files: pa.Table, kind: str | None) -> pa.Table:
    """Return files all of whose live rows were changed, with one kind of change."""
    files = files.append_column(SELECTS_ROWS, _nulls(files, SELECTS_ROWS))
    return files.append_column(CHANGE_TYPE.name, pa.repeat(pa.scalar(kind, pa.string()), files.num_rows))


def _nulls(files: pa.Table, field: pa.Field) -> pa.Array:
    return pa.nulls(files.num_rows, field.type)


def _without(files: pa.Table, rows: pa.Array) -> pa.Table:
    rest = np.ones(files.num_rows, np.bool_)
    rest[np.asarray(rows)] = False
    return files.filter(pa.array(rest))


def _keyed(files: pa.Table, latest: Snapshot) -> pa.Table:
    """Add the version and location of each file as one string: a file may be changed by many commits."""
    locations = resolve_column(latest.location, files["path"])
    return files.append_column(_KEY, pc.binary_join_element_wise(files["version"].cast(pa.string()), locations, "\0"))


def _with_range_number(files: pa.Table, ranges: Sequence[ConfigurationRange], *, before: bool = False) -> pa.Table:
    """Add the number of the configuration range of each file: that of its commit, or of the version `before` it."""
    starts = np.array([current.first for current in ranges[1:]], np.int64)
    versions = files["version"].to_numpy()
    return files.append_column(RANGE, pa.array(np.searchsorted(starts, versions, side="left" if before else "right")))


def with_constants(files: pa.Table, ranges: Sequence[ConfigurationRange], times: Mapping[int, int]) -> pa.Table:
    """Add the constants of the feed to the partition values of each file. `times` has the time of each version."""
    files = files.combine_chunks()
    maps = files["partition_values"].combine_chunks()
    own = {name: pc.coalesce(*(map_value(maps, key) for key in keys)) for name, keys in _partition_keys(ranges).items()}
    coded = files["version"].combine_chunks().dictionary_encode()
    committed = pa.array([times[v] * 1000 for v in coded.dictionary.to_pylist()], pa.timestamp("us", "UTC"))
    texts = serialize_partition_column(committed, TIMESTAMP)
    constants = [
        files[CHANGE_TYPE.name].combine_chunks(),
        files["version"].combine_chunks().cast(pa.string()),
        texts.take(coded.indices),
    ]
    merged = map_array([*own, *_CONSTANTS], [*own.values(), *constants], files.num_rows)
    files = files.set_column(files.column_names.index("partition_values"), "partition_values", merged)
    size = pc.fill_null(files["size"], 0)  # a remove may lack it
    return files.set_column(files.column_names.index("size"), "size", size)


def _partition_keys(ranges: Sequence[ConfigurationRange]) -> dict[str, list[str]]:
    """Return the physical names of the last partition columns, each with its keys in partition values.

    An overwritten schema may spell a column in another case. Raises UnsupportedTableError for a name of the feed, which
    a column may have had before it was renamed.
    """
    last = ranges[-1].configuration
    at_end = (physical_field(field, mapping_mode(last)).name for field in last.schema)
    spelled = {name.casefold(): name for name in at_end}
    found: dict[str, list[str]] = {}
    for key in dict.fromkeys(name for current in ranges for name in current.partition_names):
        if key.casefold() in _CONSTANTS:
            raise UnsupportedTableError(
                f"The changes of '{last.location}' cannot be read: a partition column has the name '{key}', which is "
                "reserved for the change data feed. Copy the table to one that never had a column of that name.",
                error_class="DELTA_RESERVED_COLUMN_NAMES",
                column=key,
            )
        found.setdefault(spelled.get(key.casefold(), key), []).append(key)
    return found


def layouts(ranges: Sequence[ConfigurationRange]) -> list[tuple[TableConfiguration, list[int]]]:
    """Return each partitioning of the table and the numbers of its ranges; all have the last columns."""
    last = ranges[-1].configuration
    mode = mapping_mode(last)
    logical = {physical_field(f, mode).name.casefold(): f.name for f in last.schema}
    found: dict[tuple[str, ...], list[int]] = {}
    for number, current in enumerate(ranges):
        names = tuple(logical[n.casefold()] for n in current.partition_names if n.casefold() in logical)
        found.setdefault(names, []).append(number)
    return [(_partitioned_by(last, names), numbers) for names, numbers in found.items()]


def _partitioned_by(configuration: TableConfiguration, names: tuple[str, ...]) -> TableConfiguration:
    if names == configuration.partition_columns:
        return configuration
    metadata: Metadata = replace(configuration.metadata, partition_columns=names)
    return TableConfiguration(configuration.protocol, metadata, configuration.location)


def change_sources(source: FileSource, files: pa.Table) -> Iterator[tuple[FileSource, pa.Table]]:
    """Yield change data files, which store the kind of change, and other files, with the kind as a constant."""
    recorded = pc.is_null(files[CHANGE_TYPE.name])
    kinds = (
        (recorded, replace(source, stored_too=(CHANGE_TYPE,), constants=CHANGE_COLUMNS[1:])),
        (pc.invert(recorded), replace(source, constants=CHANGE_COLUMNS)),
    )
    for chosen, of_kind in kinds:
        if pc.any(chosen).as_py():
            yield of_kind, files.filter(chosen)
