"""Changes of the schema while a stream runs. Its rows keep the schema of the start of the query.

Files of a commit can be read with that schema if no column was added, lost, renamed or made wider since.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from pyspark_delta.errors import StreamSchemaError
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.schema.column_mapping import mapping_mode, physical_field
from pyspark_delta.schema.types import ArrayType, DataType, MapType, StructField, StructType
from pyspark_delta.schema.widening import is_lossless

_Column = tuple[StructField, StructField]  # with its logical and with its physical names
_Types = tuple[DataType, DataType]  # likewise
_Path: TypeAlias = tuple[str, ...]
_INCOMPATIBLE = "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"


def check_schema(reads: TableConfiguration, written: TableConfiguration, version: int, *, later: bool) -> None:
    """Check that a stream which reads with one schema can read the files of a version with another one.

    `later` is True if the version is newer than the schema of the stream. Raises StreamSchemaError, which says if a
    restart of the query helps.
    """
    if reads.metadata.schema_string == written.metadata.schema_string and _same_layout(reads, written):
        return
    problem = _difference(_columns(written), _columns(reads), "")
    if problem is None and later and mapping_mode(written) != "none":
        problem = _dropped(reads, written)
    if problem is None and _same_layout(reads, written):
        return
    if problem is None:
        problem = (
            f"the partition columns are {list(written.partition_columns)} instead of {list(reads.partition_columns)}"
        )
    # A new query has the new schema: it can go on if that can read the rows written before.
    restarts = later and _difference(_columns(reads), _columns(written), "") is None and _same_layout(reads, written)
    raise _restart(reads, version, problem) if restarts else _incompatible(reads, version, problem)


def _restart(reads: TableConfiguration, version: int, problem: str) -> StreamSchemaError:
    return StreamSchemaError(
        f"The schema of '{reads.location}' changed at version {version}: {problem}. The stream goes on with the new "
        "schema if you start it again, with a new DataFrame and the same checkpoint. Check that what follows in the "
        "query, and its sink, accept the new schema.",
        error_class="DELTA_SCHEMA_CHANGED_WITH_VERSION",
        version=version,
        location=reads.location,
        retryable=True,
    )


def _incompatible(reads: TableConfiguration, version: int, problem: str) -> StreamSchemaError:
    return StreamSchemaError(
        f"The schema of '{reads.location}' changed at version {version} in a way that a stream cannot follow by "
        f"itself: {problem}. Set the option schemaTrackingLocation to a directory below the checkpoint, so that each "
        "schema is used for its own versions; or use a new checkpoint, which reads the table again.",
        error_class=_INCOMPATIBLE,
        sqlstate="42KD4",
        version=version,
        location=reads.location,
        retryable=False,
    )


def columns_by_path(configuration: TableConfiguration) -> dict[_Path, tuple[str, StructField]]:
    """Return all columns and nested fields by their physical path, with their logical path and definition."""
    mode = mapping_mode(configuration)
    found: dict[_Path, tuple[str, StructField]] = {}
    for field in configuration.schema:
        found.update(_fields(field, physical_field(field, mode), (), ""))
    return found


def _fields(
    field: StructField, physical: StructField, above: _Path, where: str
) -> Iterator[tuple[_Path, tuple[str, StructField]]]:
    path, shown = (*above, physical.name), f"{where}{field.name}"
    yield path, (shown, field)
    yield from _fields_in(field.type, physical.type, path, f"{shown}.")


def _fields_in(
    logical: DataType, physical: DataType, above: _Path, where: str
) -> Iterator[tuple[_Path, tuple[str, StructField]]]:
    match logical, physical:
        case StructType() as one, StructType() as other:
            for field, stored in zip(one, other, strict=True):
                yield from _fields(field, stored, above, where)
        case ArrayType(), ArrayType():
            elements = logical.element_type, physical.element_type
            yield from _fields_in(*elements, (*above, "element"), f"{where}element.")
        case MapType(), MapType():
            yield from _fields_in(logical.key_type, physical.key_type, (*above, "key"), f"{where}key.")
            yield from _fields_in(logical.value_type, physical.value_type, (*above, "value"), f"{where}value.")


def _dropped(reads: TableConfiguration, written: TableConfiguration) -> str | None:
    """Return which column of a stream was dropped: only column mapping drops columns and keeps the files."""
    kept = columns_by_path(written)
    dropped = next((name for path, (name, _) in columns_by_path(reads).items() if path not in kept), None)
    return None if dropped is None else f"column '{dropped}' was dropped"


def _same_layout(one: TableConfiguration, other: TableConfiguration) -> bool:
    return [name.casefold() for name in one.partition_columns] == [name.casefold() for name in other.partition_columns]


def _columns(configuration: TableConfiguration) -> list[_Column]:
    mode = mapping_mode(configuration)
    return [(field, physical_field(field, mode)) for field in configuration.schema]


def _difference(written: list[_Column], reads: list[_Column], where: str) -> str | None:
    """Return why columns that were written cannot be read as others; None if they can.

    Only the columns that a reader has may be missing in the files: it returns nulls for them.
    """
    by_name = {logical.name.casefold(): (logical, physical) for logical, physical in reads}
    names = {physical.name: logical.name for logical, physical in reads}
    for column in written:
        logical, physical = column
        shown = f"{where}{logical.name}"
        found = by_name.get(logical.name.casefold())
        if found is None:
            before = names.get(physical.name)
            renamed = before is not None and before != logical.name
            return (
                f"column '{where}{before}' was renamed to '{shown}'"
                if renamed
                else f"column '{shown}' was added or dropped"
            )
        if found[1].name != physical.name:
            return f"column '{shown}' was replaced by another column of that name"
        if logical.nullable and not found[0].nullable:
            return f"column '{shown}' became nullable"
        problem = _type_difference((logical.type, physical.type), (found[0].type, found[1].type), shown)
        if problem is not None:
            return problem
    return None


def _type_difference(written: _Types, reads: _Types, column: str) -> str | None:
    match written, reads:
        case (StructType() as one, StructType() as physical), (StructType() as other, StructType() as other_physical):
            columns = list(zip(one, physical, strict=True)), list(zip(other, other_physical, strict=True))
            return _difference(*columns, f"{column}.")
        case (ArrayType() as one, ArrayType() as physical), (ArrayType() as other, ArrayType() as other_physical):
            if one.contains_null and not other.contains_null:
                return f"the elements of column '{column}' became nullable"
            elements = (one.element_type, physical.element_type), (other.element_type, other_physical.element_type)
            return _type_difference(*elements, f"{column}.element")
        case (MapType() as one, MapType() as physical), (MapType() as other, MapType() as other_physical):
            if one.value_contains_null and not other.value_contains_null:
                return f"the values of column '{column}' became nullable"
            keys = (one.key_type, physical.key_type), (other.key_type, other_physical.key_type)
            values = (one.value_type, physical.value_type), (other.value_type, other_physical.value_type)
            return _type_difference(*keys, f"{column}.key") or _type_difference(*values, f"{column}.value")
        case _ if written[0] == reads[0] or is_lossless(written[0], reads[0]):
            return None
        case _:
            return f"column '{column}' has type {written[0]} instead of {reads[0]}"
