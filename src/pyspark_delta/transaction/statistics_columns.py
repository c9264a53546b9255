"""The columns that `delta.dataSkippingStatsColumns` names, checked as delta-spark does."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark_delta.errors import InvalidOperationError, InvalidOptionError
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.properties import STATS_COLUMNS
from pyspark_delta.schema.column_paths import column_path_text, parse_column_path
from pyspark_delta.schema.edits import Path, type_at
from pyspark_delta.schema.types import VARIANT, ArrayType, DataType, MapType, StructType
from pyspark_delta.stats.indexed_columns import StatsColumn


def check_statistics_columns(configuration: TableConfiguration, before: TableConfiguration | None = None) -> None:
    """Check that the named columns exist and can have statistics, unless they were already wrong in `before`.

    Columns of a struct are not checked, as in delta-spark: they have at least a number of nulls.

    Raises InvalidOperationError for an unknown column, and InvalidOptionError for a partition column, for a column
    without minimum and maximum, and for one that is named twice.
    """
    if before is not None and _inputs(configuration) == _inputs(before):
        return
    try:
        _check(configuration)
    except InvalidOperationError:
        if before is None or not _is_wrong(before) or _names(configuration) != _names(before):
            raise


def _is_wrong(configuration: TableConfiguration) -> bool:
    try:
        _check(configuration)
    except InvalidOperationError:
        return True
    return False


def _names(configuration: TableConfiguration) -> tuple[str, ...]:
    return STATS_COLUMNS.of(configuration.properties) or ()


def _inputs(configuration: TableConfiguration) -> tuple[object, ...]:
    return _names(configuration), configuration.schema, configuration.partition_columns


def _check(configuration: TableConfiguration) -> None:
    names = _names(configuration)
    partitioning = {name.casefold() for name in configuration.partition_columns}
    seen: set[Path] = set()
    for name in names:
        path, found = _resolved(configuration.schema, name)
        if path[0].casefold() in partitioning:
            raise _refused(path, "is a partition column and has no statistics", "PARTITIONED_COLUMN")
        if len(path) == 1 and not _has_bounds(found):
            raise _refused(path, f"is of type {found} and has no minimum and maximum", "TYPE")
        for leaf in _leaves(path, found):
            if leaf in seen:
                raise InvalidOptionError(
                    f"The table property {STATS_COLUMNS.name} names the column '{column_path_text(leaf)}' twice. Name "
                    "it once.",
                    error_class="DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS",
                    property=STATS_COLUMNS.name,
                )
            seen.add(leaf)


def _resolved(schema: StructType, name: str) -> tuple[Path, DataType]:
    try:
        path = parse_column_path(name)
        return path, type_at(schema, path)
    except InvalidOperationError as error:
        raise InvalidOperationError(
            f"The table property {STATS_COLUMNS.name} names a column that the table does not have. {error.message}",
            error_class=error.error_class,
            property=STATS_COLUMNS.name,
        ) from None


def _has_bounds(found: DataType) -> bool:
    if isinstance(found, StructType) or found == VARIANT:
        return True
    return StatsColumn((), found, None if isinstance(found, ArrayType | MapType) else 0).has_bounds


def _leaves(path: Path, found: DataType) -> Iterator[Path]:
    if isinstance(found, StructType):
        for field in found:
            yield from _leaves((*path, field.name), field.type)
    else:
        yield path


def _refused(path: Path, reason: str, kind: str) -> InvalidOptionError:
    return InvalidOptionError(
        f"The table property {STATS_COLUMNS.name} names the column '{column_path_text(path)}', which {reason}. "
        "Remove it from the property.",
        error_class=f"DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_{kind}",
        property=STATS_COLUMNS.name,
    )
