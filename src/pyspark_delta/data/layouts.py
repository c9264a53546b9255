"""How the columns of a scan are read from data files. Files with equal schemas share a layout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from pyspark_delta.data.file_columns import Absent, Column, FileSchema, leaves
from pyspark_delta.data.raw_rows import Leaves
from pyspark_delta.errors import DataFileError
from pyspark_delta.scan.plan import (
    ChangeType,
    ColumnPlan,
    FromFile,
    ReadContext,
    RowCommitVersion,
    RowId,
    RowIndex,
    Stored,
)
from pyspark_delta.schema.arrow import to_arrow
from pyspark_delta.schema.legacy_calendar import LegacyCalendar, legacy_calendar
from pyspark_delta.schema.types import LONG, StructField

_KEPT_LAYOUTS = 16


@dataclass(frozen=True, slots=True)
class Layout:
    """How the columns of a context are read from files of one schema."""

    schema: pa.Schema
    parquet_schema: pq.ParquetSchema
    properties: Mapping[bytes, bytes] | None  # of the file, from which Arrow derives types
    paths: tuple[tuple[int, str], ...]  # of the leaves that can tell files with equal leaves apart
    columns: tuple[Column | None, ...]  # None for columns that are not in files
    legacy: tuple[LegacyCalendar | None, ...]  # for columns with dates or times of the legacy calendar
    every: Leaves
    first: Leaves  # of columns in the residual predicate
    rest: Leaves  # leaves of the other columns
    is_flat: bool
    can_join: bool  # raw rows of several files can be concatenated and converted together

    def fits(self, file: pq.ParquetFile) -> bool:
        """Return True if a file is read in this way.

        For flat files this compares the leaves of the Parquet schema, which takes a fraction of the time of comparing
        Arrow schemas, and the paths of leaves, because leaves in different groups can be equal.
        """
        found = file.schema
        if not self.parquet_schema.equals(found) or file.metadata.metadata != self.properties:
            return False
        if any(found.column(i).path != path for i, path in self.paths):
            return False
        return self.is_flat or bool(self.schema.equals(file.schema_arrow, check_metadata=True))


class Layouts:
    """The layouts of the files of one context; thread-safe. `asked` are the numbers of columns in the residual."""

    def __init__(self, context: ReadContext, asked: Sequence[int]) -> None:
        self._context = context
        self._asked = asked
        self._by_position = any(isinstance(plan, RowId | RowIndex | RowCommitVersion) for plan in context.columns)
        self._known: tuple[Layout, ...] = ()  # the latest first; replaced, not changed

    def layout_of(self, file: pq.ParquetFile, path: str) -> Layout:
        """Return how to read a file. Raises DataFileError if it does not match the table's schema."""
        known = self._known
        for i, layout in enumerate(known):
            if layout.fits(file):
                if i:
                    self._known = (layout, *known[:i], *known[i + 1 :])
                return layout
        layout = self._make(file, path)
        self._known = (layout, *known[: _KEPT_LAYOUTS - 1])
        return layout

    def _make(self, file: pq.ParquetFile, path: str) -> Layout:
        schema = file.schema_arrow
        fields = FileSchema(schema, self._context.column_mapping_mode, path)
        wanted = any(isinstance(plan, FromFile) for plan in self._context.columns)
        if wanted and self._context.column_mapping_mode == "id" and len(schema) and not fields.has_field_ids():
            raise DataFileError(
                f"Data file '{path}' has no field ids, but the table maps columns by id (C248). "
                "It was not written for this table; rewrite it with field ids.",
                path=path,
            )
        columns = tuple(_resolve(fields, plan) for plan in self._context.columns)
        legacy = tuple(
            None if column is None else self._legacy_of(file, schema, leaves(column), plan)
            for column, plan in zip(columns, self._context.columns, strict=True)
        )
        found = [(i in self._asked, leaf) for i, c in enumerate(columns) if c is not None for leaf in leaves(c)]
        first, rest = ([leaf for is_asked, leaf in found if is_asked is asked] for asked in (True, False))
        every = Leaves.of(file, [*first, *rest])
        can_join = bool(every.names) and not self._by_position and all(_can_concatenate(f.type) for f in schema)
        paths = [file.schema.column(i).path for i in range(len(file.schema))]
        is_complete = not any(isinstance(column, Absent) for column in columns)
        telling = every if is_complete else range(len(paths))  # a group in another file may have an absent column
        return Layout(
            schema,
            file.schema,
            file.metadata.metadata,
            tuple((i, paths[i]) for i in telling),
            columns,
            legacy,
            every,
            Leaves.of(file, first),
            Leaves.of(file, rest),
            is_flat=not any("." in path for path in paths),
            can_join=can_join,
        )

    def _legacy_of(
        self, file: pq.ParquetFile, schema: pa.Schema, column_leaves: Iterable[int], plan: ColumnPlan
    ) -> LegacyCalendar | None:
        physical_types = {file.schema.column(leaf).physical_type for leaf in column_leaves}
        found = legacy_calendar(schema.metadata, physical_types, self._context.time_zone)
        return found if found is not None and found.concerns(to_arrow(plan.field.type)) else None


def _resolve(fields: FileSchema, plan: ColumnPlan) -> Column | None:
    match plan:
        case FromFile(field, physical):
            return fields.resolve(field, physical)
        case ChangeType(field) | Stored(field):
            return fields.resolve_named(field)
        case RowId(_, str(name)) | RowCommitVersion(_, str(name)):
            return fields.resolve_named(StructField(name, LONG))
        case _:
            return None


def _can_concatenate(data_type: pa.DataType) -> bool:
    """Return True for types whose arrays Arrow concatenates. Nested types, dictionaries and views have gaps."""
    return pt.is_primitive(data_type) or pt.is_decimal(data_type) or data_type in (pa.string(), pa.binary())
