"""Rows of data files: Parquet, CSV, JSON lines and Arrow IPC, read as a stream of batches in bounded memory.

CSV and JSON have few types, so their values take the types of the table's columns. A value that does not fit is an
error.
"""

from __future__ import annotations

import csv
import gzip
import io
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.errors import DeltaError, InvalidOperationError, InvalidOptionError, SchemaMismatchError
from pyspark_delta.schema.arrow import to_arrow
from pyspark_delta.schema.declaration_keys import CURRENT_DEFAULT, GENERATION_EXPRESSION, IDENTITY_START
from pyspark_delta.schema.types import StructType

_BLOCK = 8 << 20  # bytes that are read at once; a row of JSON must not be longer
_HAS_ZONE = r"\d:\d.*(Z|[+-]\d\d(:?\d\d)?)$"
_COMPUTED = (GENERATION_EXPRESSION, IDENTITY_START, CURRENT_DEFAULT)


class Format(StrEnum):
    """A format of data files."""

    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"
    ARROW = "arrow"


_SUFFIXES = {
    ".parquet": Format.PARQUET,
    ".pq": Format.PARQUET,
    ".csv": Format.CSV,
    ".json": Format.JSON,
    ".jsonl": Format.JSON,
    ".ndjson": Format.JSON,
    ".arrow": Format.ARROW,
    ".arrows": Format.ARROW,
    ".feather": Format.ARROW,
    ".ipc": Format.ARROW,
}


@dataclass(frozen=True)
class DataFiles:
    """Data files with the same columns. `table` is the schema that gives the values of CSV and JSON their types.

    The path `-` is the standard input. Without `format`, the suffix of a file determines it. Unless `adds_columns`, the
    files must have no columns that the table lacks. Raises InvalidOptionError
    for a file of an unknown format, and for the standard input beside other files.
    """

    paths: Sequence[str]
    table: StructType | None = None
    format: Format | None = None
    delimiter: str = ","
    adds_columns: bool = True

    def __post_init__(self) -> None:
        if "-" in self.paths and len(self.paths) > 1:
            raise InvalidOptionError("The standard input (-) cannot be read beside other files.")
        if len(self.delimiter) != 1 or self.delimiter in '"\r\n' or not self.delimiter.isascii():
            raise InvalidOptionError(f"The delimiter of CSV is one ASCII character, found {self.delimiter!r}.")
        for path in self.paths:
            self._format(path)

    def schema(self) -> pa.Schema:
        """Return the schema of the rows. Raises as `batches`."""
        schemas = []
        for path in self.paths:
            with self._open(path) as (schema, _):
                schemas.append(schema)
            if set(schema.names) != set(schemas[0].names):
                raise SchemaMismatchError(
                    f"The files have different columns: '{self.paths[0]}' has {', '.join(schemas[0].names)}, and "
                    f"'{path}' has {', '.join(schema.names)}. Append them one by one. Nothing was written."
                )
        with _reported("files", "one table"):
            return pa.unify_schemas(schemas, promote_options="permissive")

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of all files, at least one batch, which may be empty.

        Raises InvalidOptionError for a file that is missing, InvalidOperationError for one that is not of its format,
        and SchemaMismatchError for files with different columns and values that do not fit the table.
        """
        schema = self.schema() if len(self.paths) > 1 else None
        for path in self.paths:
            with self._open(path) as (found, batches):
                yield _as(pa.RecordBatch.from_pylist([], found), schema)
                for batch in batches:
                    with _reported(path, self._format(path).value):
                        converted = _as(batch, schema)
                    yield converted

    @contextmanager
    def _open(self, path: str) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
        file_format = self._format(path)
        with ExitStack() as stack:
            with _reported(path, file_format.value):
                stream = io.BufferedReader(_opened(path, stack), _BLOCK)
                stack.callback(stream.detach)  # the standard input stays open
                match file_format:
                    case Format.CSV:
                        schema, batches = _read_csv(stream, self.table, self.delimiter)
                    case Format.JSON:
                        schema, batches = _read_json(stream, self.table)
                    case Format.ARROW:
                        schema, batches = _read_ipc(stream, stack, is_pipe=path == "-")
                    case Format.PARQUET:
                        schema, batches = _read_parquet(stream, stack, is_pipe=path == "-")
            self._check(path, schema)
            yield schema, _each(batches, path, file_format.value)

    def _check(self, path: str, schema: pa.Schema) -> None:
        table = self.table
        if table is None or self.adds_columns:
            return
        unknown = [name for name in schema.names if table.find(name) is None]
        if unknown:
            raise SchemaMismatchError(
                f"{_named(path)} has columns that the table lacks: {', '.join(unknown)}. Use --merge-schema to add "
                "them. Nothing was written.",
                columns=unknown,
            )

    def _format(self, path: str) -> Format:
        if self.format is not None:
            return self.format
        if path == "-":
            raise InvalidOptionError("The standard input has no name that tells its format. Give --format.")
        name = path.lower().removesuffix(".gz")
        found = next((known for suffix, known in _SUFFIXES.items() if name.endswith(suffix)), None)
        if found is None:
            known = ", ".join(_SUFFIXES)
            raise InvalidOptionError(f"The format of '{path}' is not known by its suffix ({known}). Give --format.")
        return found


def _as(batch: pa.RecordBatch, schema: pa.Schema | None) -> pa.RecordBatch:
    return batch if schema is None else batch.select(schema.names).cast(schema)


def _opened(path: str, stack: ExitStack) -> Any:
    if path == "-":
        return sys.stdin.buffer
    file = stack.enter_context(open(path, "rb", buffering=0))  # noqa: SIM115 - the stack closes it
    return stack.enter_context(gzip.GzipFile(fileobj=file)) if path.lower().endswith(".gz") else file


def _each(batches: Iterator[pa.RecordBatch], path: str, file_format: str) -> Iterator[pa.RecordBatch]:
    while True:
        with _reported(path, file_format):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


def _named(path: str) -> str:
    return "The standard input" if path == "-" else f"'{path}'"


@contextmanager
def _reported(path: str, file_format: str) -> Iterator[None]:
    """Raise errors of a file as errors of this package."""
    name = _named(path)
    try:
        yield
    except DeltaError:
        raise
    except (pa.ArrowException, UnicodeDecodeError, EOFError, zlib.error, gzip.BadGzipFile, csv.Error) as error:
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InvalidOperationError(
            f"{name} cannot be read as {file_format}: {text.rstrip('.')}. Nothing was written."
        ) from None
    except OSError as error:
        raise InvalidOptionError(f"{name} cannot be read: {error.strerror or error}. Nothing was written.") from None


# ------------------------------------------------------------------------------------------------- CSV and JSON
def _read_csv(stream: Any, table: StructType | None, delimiter: str) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Read CSV with a header line. A field without quotes and without text is null."""
    from pyarrow import csv as arrow_csv

    line = stream.readline(_BLOCK)
    while line.count(b'"') % 2 and (more := stream.readline(_BLOCK)):  # a name that holds a line end
        line += more
    if not line.strip():
        raise InvalidOperationError("CSV needs the names of the columns in its first line, which is empty.")
    names = next(csv.reader([line.decode("utf-8-sig")], delimiter=delimiter, strict=True), [])
    wanted = _wanted(names, table)
    for name, arrow_type in wanted.items():
        if pa.types.is_nested(arrow_type) or pa.types.is_binary(arrow_type):
            raise _unsupported(name, arrow_type, "CSV")
    if not stream.peek(1):
        empty = pa.schema([(name, wanted.get(name, pa.string())) for name in names])
        return empty, iter(())
    read = {name: pa.string() if _is_instant(t) else t for name, t in wanted.items()}
    reader = arrow_csv.open_csv(
        stream,
        arrow_csv.ReadOptions(column_names=names, block_size=_BLOCK),
        arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        arrow_csv.ConvertOptions(
            column_types=read, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
        ),
    )
    return _converted(reader, wanted)


def _read_json(stream: Any, table: StructType | None) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Read objects, one a line. A column of the table that no object has is null, unless the table computes it."""
    from pyarrow import json as arrow_json

    head = stream.peek(_BLOCK)
    complete = head[: head.rfind(b"\n") + 1] or head
    is_empty = not head.strip()
    names = (
        []
        if is_empty
        else arrow_json.read_json(
            io.BytesIO(complete), arrow_json.ReadOptions(block_size=len(complete) + 1), _json_options(pa.schema([]))
        ).schema.names
    )
    given = {name.casefold() for name in names}
    absent = [] if table is None else [f.name for f in table.fields if f.name.casefold() not in given]
    computed = set() if table is None else {f.name for f in table.fields if any(k in f.metadata for k in _COMPUTED)}
    wanted = _wanted([*names, *(name for name in absent if name not in computed)], table)
    wanted = {name: t for name, t in wanted.items() if name in names or not _lacks(t)}
    for name, arrow_type in wanted.items():
        if _lacks(arrow_type):
            raise _unsupported(name, arrow_type, "JSON")
    if is_empty:
        return pa.schema(list(wanted.items())), iter(())
    explicit = pa.schema([(name, _json_type(arrow_type)) for name, arrow_type in wanted.items()])
    reader = arrow_json.open_json(stream, arrow_json.ReadOptions(block_size=_BLOCK), _json_options(explicit))
    return _converted(reader, wanted)


def _json_options(schema: pa.Schema) -> Any:
    from pyarrow import json as arrow_json

    return arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="infer")


def _wanted(names: Sequence[str], table: StructType | None) -> dict[str, pa.DataType]:
    """Return the types of the columns that the table has."""
    fields = {} if table is None else {name: table.find(name) for name in names}
    return {name: to_arrow(f.type, all_nullable=True) for name, f in fields.items() if f is not None}


def _unsupported(name: str, arrow_type: pa.DataType, file_format: str) -> DeltaError:
    return SchemaMismatchError(
        f"The column '{name}' has the type {arrow_type}, which has no exact form in {file_format}. Use Parquet or "
        "Arrow IPC. Nothing was written.",
        column=name,
    )


def _lacks(arrow_type: pa.DataType) -> bool:
    """True for types that JSON does not hold: binary values and maps, at any depth."""
    if pa.types.is_map(arrow_type) or pa.types.is_binary(arrow_type):
        return True
    return any(_lacks(arrow_type.field(i).type) for i in range(arrow_type.num_fields))


def _json_type(arrow_type: pa.DataType) -> pa.DataType:
    """Return the type in which values are read: dates are texts."""
    if pa.types.is_date(arrow_type):
        return pa.string()
    if pa.types.is_struct(arrow_type):
        return pa.struct([f.with_type(_json_type(f.type)) for f in arrow_type])
    if pa.types.is_list(arrow_type):
        return pa.list_(arrow_type.value_field.with_type(_json_type(arrow_type.value_type)))
    return arrow_type


def _is_instant(arrow_type: pa.DataType) -> bool:
    return pa.types.is_timestamp(arrow_type) and arrow_type.tz is not None


def _converted(reader: Any, wanted: dict[str, pa.DataType]) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    schema = pa.schema([f.with_type(wanted.get(f.name, f.type)) for f in reader.schema])
    return schema, (_convert(batch, schema) for batch in reader)


def _convert(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    arrays = [
        _instants(column, field.type)
        if _is_instant(field.type) and pa.types.is_string(column.type)
        else column.cast(field.type)
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _instants(texts: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    """Return times with a zone; texts without one are in UTC."""
    zoned = pc.match_substring_regex(texts, _HAS_ZONE)
    nothing = pa.scalar(None, pa.string())
    exact = pc.if_else(zoned, texts, nothing).cast(arrow_type)
    naive = pc.if_else(zoned, nothing, texts).cast(pa.timestamp(arrow_type.unit)).cast(arrow_type)
    return pc.coalesce(exact, naive)


# ---------------------------------------------------------------------------------------- Parquet and Arrow IPC
def _read_parquet(stream: Any, stack: ExitStack, *, is_pipe: bool) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(_seekable(stream, stack, is_pipe=is_pipe), coerce_int96_timestamp_unit="us")
    return file.schema_arrow, file.iter_batches()


def _read_ipc(stream: Any, stack: ExitStack, *, is_pipe: bool) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    if stream.peek(6)[:6] != b"ARROW1":
        reader = pa.ipc.open_stream(stream)
        return reader.schema, iter(reader)
    file = pa.ipc.open_file(_seekable(stream, stack, is_pipe=is_pipe))
    return file.schema, (file.get_batch(i) for i in range(file.num_record_batches))


def _seekable(stream: Any, stack: ExitStack, *, is_pipe: bool) -> Any:
    """Return a file that can be read from any position. A pipe is copied to a temporary file first."""
    if not is_pipe:
        return stream
    copy = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
    shutil.copyfileobj(stream, copy)
    copy.seek(0)
    return copy
