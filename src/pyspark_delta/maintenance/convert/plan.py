"""The plan of a conversion: files, partition columns, schema and statistics; its execution is one commit."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.columns import MODIFICATION_TIME, PARTITION_VALUES, PATH, SIZE, STATS
from pyspark_delta.data.opened import is_local
from pyspark_delta.display import counted, html_facts, listed
from pyspark_delta.errors import (
    DataFileError,
    DeltaError,
    InvalidOperationError,
    SchemaMismatchError,
    TableAlreadyExistsError,
    TableNotFoundError,
)
from pyspark_delta.maintenance.convert.footers import Footer, FooterReader
from pyspark_delta.maintenance.convert.partitions import partitions_of
from pyspark_delta.maintenance.convert.schema import (
    IncompatibleTypesError,
    is_spelled_alike,
    merge_file_schemas,
    with_partitions,
    without,
)
from pyspark_delta.maintenance.convert.tree import data_files
from pyspark_delta.maintenance.first_checkpoint import write_first_checkpoint
from pyspark_delta.maintenance.foreign_files import check_apart, check_empty
from pyspark_delta.parallel import map_requests
from pyspark_delta.progress import begin
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import CommitDraft, IsolationLevel, Operation, ReadSet
from pyspark_delta.protocol.state import TableState
from pyspark_delta.schema.json import dump_json
from pyspark_delta.schema.types import StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage.paths import join
from pyspark_delta.storage.percent import absolute_path_column, encode_column
from pyspark_delta.transaction.attempts import commit_draft
from pyspark_delta.transaction.new_table import new_table

_AT_ONCE = 16  # footers are small: on stores, most of the time is latency
_GROUP = 1024  # files: the more are read together, the less each costs
_Group: TypeAlias = list[tuple[str, int]]
_FILES = pa.schema([PATH, PARTITION_VALUES, SIZE, MODIFICATION_TIME, STATS])


@dataclass(frozen=True, kw_only=True)
class ConvertRequest:
    """What to convert, and how.

    `partition_schema` are the partition columns in the order of the directories; None infers them from the names of the
    directories, with their types. `time_zone` is the zone of timestamps there. With `statistics`, statistics come from
    footers. With `skip_unreadable`, files that are not Parquet are left out of the table. `properties` are those of the
    table. The log lies in the directory, or where `where_delta_lies` says; then it names the files by absolute paths.
    """

    location: str
    where_delta_lies: str | None = None
    partition_schema: StructType | None = None
    statistics: bool = True
    skip_unreadable: bool = False
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)
    time_zone: str = "UTC"
    storage_options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)

    @property
    def table_location(self) -> str:
        """The location of the table."""
        return self.where_delta_lies or self.location


@dataclass(frozen=True)
class ConvertResult:
    """The committed version of a conversion, and its metrics by the names of the table's history.

    `version` is None if the directory was a Delta table already.
    """

    version: int | None
    metrics: Mapping[str, int] = field(default_factory=dict)

    def _repr_html_(self) -> str:
        return html_facts("ConvertResult", {"version": self.version, **self.metrics})


@dataclass(frozen=True, repr=False)
class ConvertPlan:
    """What converting a directory would do.

    `files` are the files of the table, with the columns path, partition_values, size, modification_time and stats;
    `skipped` are the paths of files that cannot be read and are left out. `configuration` is None if the directory is
    a Delta table already; then there is nothing to do.
    """

    request: ConvertRequest
    configuration: TableConfiguration | None
    files: pa.Table
    skipped: tuple[str, ...] = ()

    @property
    def location(self) -> str:
        """The location of the directory."""
        return self.request.location

    @cached_property
    def size_in_bytes(self) -> int:
        """The sum of the sizes of the files."""
        size: int = pc.sum(self.files["size"]).as_py() or 0
        return size

    def facts(self) -> dict[str, object]:
        """Return the plan as names and values."""
        known = self.configuration
        return {
            "operation": "CONVERT",
            "location": self.location,
            "where_delta_lies": self.request.table_location,
            "is_delta_table": known is None,
            "files": self.files.num_rows,
            "files_skipped": len(self.skipped),
            "bytes": self.size_in_bytes,
            "partition_columns": {} if known is None else _types(known.schema, known.partition_columns),
            "columns": {} if known is None else _types(known.schema, known.schema.names),
        }

    def execute(self, *, user_metadata: str | None = None, engine_info: str = "") -> ConvertResult:
        """Commit version 0 with the files, and write a checkpoint of it. `user_metadata` is kept with the commit.

        Raises CommitConflictError if another process creates the table meanwhile.
        """
        if self.configuration is None:
            return ConvertResult(None)
        draft = _draft(self, self.configuration, user_metadata, engine_info)
        base = TableState(location=self.request.table_location, storage_options=dict(self.request.storage_options))
        state = commit_draft(draft, base)
        write_first_checkpoint(state, self.files)
        return ConvertResult(state.version, draft.operation.metrics)

    def _repr_html_(self) -> str:
        return html_facts("ConvertPlan", self.facts())

    def __repr__(self) -> str:
        return f"ConvertPlan({self.location!r}, {counted(self.files.num_rows, 'file')})"

    def __str__(self) -> str:
        if self.configuration is None:
            return f"'{self.location}' is a Delta table already."
        known = self.configuration
        columns, partitions = (
            listed([f"{name} {text}" for name, text in _types(known.schema, names).items()])
            for names in (known.schema.names, known.partition_columns)
        )
        lines = [
            f"Convert '{self.location}': {counted(self.files.num_rows, 'file')} of {self.size_in_bytes} bytes.",
            f"  columns: {columns}",
            f"  partition columns: {partitions or 'none'}",
        ]
        if self.request.where_delta_lies is not None:
            lines.append(f"  the log is written to '{self.request.where_delta_lies}'")
        if self.skipped:
            lines.append(f"  {counted(len(self.skipped), 'file')} cannot be read and are left out")
        return "\n".join(lines)


def plan_convert(request: ConvertRequest) -> ConvertPlan:
    """Return what a conversion would do, without writing anything. Lists the directory and reads all footers.

    Raises InvalidOperationError for an empty directory, a path that does not fit the partition columns, files whose
    types do not fit together, and files that are not Parquet; SchemaMismatchError for types that Delta does not have;
    InvalidOptionError for properties. If the log lies elsewhere, raises TableAlreadyExistsError for a table there, and
    InvalidOperationError for a table in the directory, and for a location that holds it, lies in it, or has files.
    """
    if request.where_delta_lies is not None:
        _check_elsewhere(request, request.where_delta_lies)
    elif _is_table(request, request.location):
        return ConvertPlan(request, None, _FILES.empty_table())
    found = data_files(request.location, request.storage_options)
    paths = found["path"].combine_chunks()
    partitions = partitions_of(paths, request.partition_schema, request.location, request.time_zone)
    footers = _Footers(request, partitions.columns)
    schema, texts = footers.read(paths, found["size"].combine_chunks())
    names = partitions.columns.names
    configuration = new_table(with_partitions(schema, partitions.columns), names, request.properties)
    named = _named(request, paths)
    files = pa.table([named, partitions.values, found["size"], found["modification_time"], texts], schema=_FILES)
    if footers.skipped:
        skipped = pa.array(footers.skipped, pa.string())
        files = files.filter(pc.invert(pc.is_in(paths, value_set=skipped)))
    return ConvertPlan(request, configuration, files, tuple(footers.skipped))


def _is_table(request: ConvertRequest, location: str) -> bool:
    try:
        Snapshot.load(location, storage_options=request.storage_options)
    except TableNotFoundError:
        return False
    return True


def _check_elsewhere(request: ConvertRequest, where: str) -> None:
    check_apart(request.location, where)
    if _is_table(request, where):
        raise TableAlreadyExistsError(where, "Name a location without a table for the log.")
    if _is_table(request, request.location):
        raise InvalidOperationError(
            f"'{request.location}' is a Delta table, and not all of its Parquet files need be in its latest version. "
            f"Make a shallow clone of it at '{where}'.",
            error_class="DELTA_OPERATION_NOT_ALLOWED",
            location=request.location,
        )
    check_empty(where, request.storage_options)


def _named(request: ConvertRequest, paths: pa.Array) -> pa.Array:
    """Return the files as the log names them; `paths` are below the directory, decoded."""
    if request.where_delta_lies is None:
        return encode_column(paths)
    return absolute_path_column(pc.binary_join_element_wise(join(request.location, ""), paths, ""))


class _Footers:
    """Reads the footers of a directory, and merges their schemas in the order of the paths."""

    def __init__(self, request: ConvertRequest, partitioned: StructType) -> None:
        self._request = request
        self._partitioned = partitioned
        self._reader = FooterReader(request.storage_options, partitioned, statistics=request.statistics)
        self.skipped: list[str] = []

    def read(self, paths: pa.Array, sizes: pa.Array) -> tuple[StructType, pa.Array]:
        """Return the merged schema of the files, and the statistics of each."""
        step = begin("Read footers", len(paths), "files")
        local = is_local(self._request.location, self._request.storage_options)
        at_once = (os.cpu_count() or 1) if local else _AT_ONCE
        groups = map_requests(self._group, _groups(paths, sizes), min(at_once, len(paths)))
        read = chain.from_iterable(groups)
        merged: StructType | None = None
        texts: list[str | None] = []
        schemas: dict[StructType, list[int]] = {}
        known: dict[int, tuple[StructType, list[int]]] = {}  # by identity, because the hash of a schema takes long
        for number, (path, footer) in enumerate(step.shown(read, lambda _: 1)):
            texts.append(None if footer is None else footer.stats)
            if footer is None:
                self.skipped.append(path)
                continue
            if id(footer.schema) not in known:
                if footer.schema not in schemas:
                    merged = footer.schema if merged is None else self._merged(merged, footer.schema, path)
                known[id(footer.schema)] = footer.schema, schemas.setdefault(footer.schema, [])
            known[id(footer.schema)][1].append(number)
        if merged is None:
            raise InvalidOperationError(
                f"No file in '{self._request.location}' can be read as Parquet. Name a directory with Parquet files.",
                error_class="DELTA_EMPTY_DIRECTORY",
            )
        if self._request.statistics:
            self._respell(paths, texts, merged, schemas)
        return merged, pa.array(texts, pa.string())

    def _group(self, files: _Group) -> list[tuple[str, Footer | None]]:
        location = self._request.location
        footers = self._reader.read([(join(location, path), size) for path, size in files])
        return [(path, self._accepted(path, footer)) for (path, _), footer in zip(files, footers, strict=True)]

    def _accepted(self, path: str, footer: Footer | DeltaError) -> Footer | None:
        """Return a footer; None for a file that is left out of the table. Raises the errors of the others."""
        location = self._request.location
        if isinstance(footer, Footer):
            return footer
        if not isinstance(footer, DataFileError):
            raise SchemaMismatchError(
                f"The file '{path}' of '{location}' cannot be converted: {footer.message}", path=path
            )
        if not self._request.skip_unreadable:
            raise InvalidOperationError(
                f"The file '{path}' of '{location}' cannot be converted: {footer.message} Give skip_unreadable=True to "
                "leave such files out of the table.",
                error_class="DELTA_OPERATION_NOT_ALLOWED",
                path=path,
            ) from footer
        return None

    def _merged(self, table: StructType, file: StructType, path: str) -> StructType:
        try:
            return merge_file_schemas(table, file)
        except IncompatibleTypesError as error:
            raise SchemaMismatchError(
                f"The file '{path}' of '{self._request.location}' does not fit the files before it: its column "
                f"'{error.column}' is {error.file}, theirs is {error.table}. Convert the files of each schema as a "
                "table of their own, or write them again with one schema.",
                error_class="DELTA_FAILED_MERGE_SCHEMA_FILE",
                path=path,
                column=error.column,
            ) from None

    def _respell(
        self, paths: pa.Array, texts: list[str | None], merged: StructType, schemas: Mapping[StructType, list[int]]
    ) -> None:
        """Replace the statistics of files whose column names differ in case from those of the table."""
        table = without(merged, self._partitioned)
        for schema, numbers in schemas.items():
            if not is_spelled_alike(merged, schema):
                for number in numbers:
                    location = join(self._request.location, paths[number].as_py())
                    texts[number] = self._reader.read_as(location, table)


def _groups(paths: pa.Array, sizes: pa.Array) -> Iterator[_Group]:
    """Yield the paths and sizes of files in groups, one for each turn of a thread: a turn costs as much as a footer."""
    size = max(1, min(_GROUP, len(paths) // _AT_ONCE))
    for start in range(0, len(paths), size):
        yield list(zip(paths.slice(start, size).to_pylist(), sizes.slice(start, size).to_pylist(), strict=True))


def _draft(
    plan: ConvertPlan, configuration: TableConfiguration, user_metadata: str | None, engine_info: str
) -> CommitDraft:
    request, number = plan.request, plan.files.num_rows
    parameters: dict[str, str | bool | int | None] = {
        "numFiles": number,
        "partitionedBy": dump_json(list(configuration.metadata.partition_columns)).decode(),
        "collectStats": request.statistics,
        "sourceFormat": "parquet",
    }
    return CommitDraft(
        operation=Operation("CONVERT", parameters, {"numConvertedFiles": number}),
        adds=plan.files,
        metadata=configuration.metadata,
        protocol=configuration.protocol,
        reads=ReadSet(whole_table=True),
        isolation=IsolationLevel.SERIALIZABLE,
        user_metadata=user_metadata,
        engine_info=engine_info,
    )


def _types(schema: StructType, names: tuple[str, ...] | list[str]) -> dict[str, str]:
    found = {field.name: str(field.type) for field in schema}
    return {name: found[name] for name in names}
