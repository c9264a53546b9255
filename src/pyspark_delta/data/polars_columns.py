"""The columns of decoded rows: which ones Polars decodes exactly, and which ones come from elsewhere.

Source = Stored | Constant | Nulls
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import polars as pl
import pyarrow as pa
import pyarrow.types as pt

from pyspark_delta.data.casts import Conversion
from pyspark_delta.data.decoders import OpenedFile
from pyspark_delta.data.file_columns import Absent, Leaf
from pyspark_delta.scan.plan import ColumnPlan, FromFile, Missing, PartitionConstant, ReadContext
from pyspark_delta.schema.arrow import to_arrow

_NUMBERS: Mapping[pa.DataType, pl.DataType] = {
    pa.bool_(): pl.Boolean(),
    pa.int8(): pl.Int8(),
    pa.int16(): pl.Int16(),
    pa.int32(): pl.Int32(),
    pa.int64(): pl.Int64(),
    pa.uint8(): pl.UInt8(),
    pa.uint16(): pl.UInt16(),
    pa.uint32(): pl.UInt32(),
    pa.uint64(): pl.UInt64(),
    pa.float32(): pl.Float32(),
    pa.float64(): pl.Float64(),
}
# Whether these are INT96, or in the legacy calendar, is only in the footer.
_TIMES: Mapping[pa.DataType, pl.DataType] = {
    pa.date32(): pl.Date(),
    pa.timestamp("us"): pl.Datetime("us"),
    pa.timestamp("us", "UTC"): pl.Datetime("us", "UTC"),
}
_TEXTS = {pa.string(), pa.large_string(), pa.string_view()}
_BINARIES = {pa.binary(), pa.large_binary(), pa.binary_view()}


@dataclass(frozen=True, slots=True)
class Stored:
    """A column that is decoded: its name and type in the file, and the conversion to the type of the table."""

    name: str
    file_type: pa.DataType  # string or binary for all types of texts and binaries
    polars_type: pl.DataType
    convert: Conversion

    @property
    def is_text(self) -> bool:
        """True for texts and binaries."""
        return self.file_type in _TEXTS or self.file_type in _BINARIES


@dataclass(frozen=True, slots=True)
class Constant:
    """A partition column."""

    physical_name: str


@dataclass(frozen=True, slots=True)
class Nulls:
    """A column without values."""

    type: pa.DataType


Source: TypeAlias = Stored | Constant | Nulls


def decodes(context: ReadContext, *, views: bool) -> bool:
    """Return True if the columns of a context can be decoded, unless files have other types than the table."""
    if context.column_mapping_mode == "id":
        return False

    def can_be(plan: ColumnPlan) -> bool:
        if not isinstance(plan, FromFile):
            return _constant(plan) is not None
        return _polars_type(to_arrow(plan.field.type), views=views) is not None

    return any(isinstance(plan, FromFile) for plan in context.columns) and all(map(can_be, context.columns))


def source_unopened(plan: ColumnPlan, *, views: bool) -> Source | None:
    """Return where a column comes from in files of the types of the table; None if only their footers tell."""
    if not isinstance(plan, FromFile):
        return _constant(plan)
    file_type = to_arrow(plan.field.type)
    if file_type in _TIMES:
        return None
    return _stored(plan.physical.name, file_type, file_type, lambda array: array, views=views)


def source_in(file: OpenedFile, number: int, plan: ColumnPlan, *, views: bool) -> Source | None:
    """Return where a column of the context, by its number, comes from in an opened file; None as for `stored`."""
    if not isinstance(plan, FromFile):
        return _constant(plan)
    match file.layout.columns[number]:
        case Absent(data_type):
            return Nulls(data_type)
        case Leaf(source, convert) if file.layout.legacy[number] is None:
            if source.type in _TIMES and file.parquet.schema.column(source.first).physical_type == "INT96":
                return None
            return _stored(source.name, source.type, to_arrow(plan.field.type), convert, views=views)
    return None


def _constant(plan: ColumnPlan) -> Source | None:
    match plan:
        case PartitionConstant(_, physical_name):
            return Constant(physical_name)
        case Missing(field):
            return Nulls(to_arrow(field.type, all_nullable=True))
    return None


def _stored(
    name: str, file_type: pa.DataType, table_type: pa.DataType, convert: Conversion, *, views: bool
) -> Stored | None:
    """Return a column of a file; None if Polars does not decode it exactly."""
    polars_type = _polars_type(file_type, views=views)
    if polars_type is None:
        return None
    for texts in (_TEXTS, _BINARIES):
        if file_type in texts:  # views need no conversion
            return Stored(name, table_type, polars_type, lambda array: array) if table_type in texts else None
    return Stored(name, file_type, polars_type, convert)


def _polars_type(data_type: pa.DataType, *, views: bool) -> pl.DataType | None:
    if pt.is_decimal128(data_type):
        return pl.Decimal(data_type.precision, data_type.scale)
    if views and data_type in _TEXTS:
        return pl.String()
    if views and data_type in _BINARIES:
        return pl.Binary()
    return _NUMBERS.get(data_type) or _TIMES.get(data_type)
