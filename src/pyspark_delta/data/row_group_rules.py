"""Which row groups may move to another file without being decoded, because re-encoding them would change nothing.

A file is copied as a whole or not at all: all its row groups must be as the table would write them now, and large,
since copying does not merge row groups, and small ones make a file slow to read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from pyspark_delta.data.writer import WriteContext, parquet_options
from pyspark_delta.parquet.footer import TRAILER, Footer, parse_footer
from pyspark_delta.parquet.schema import Meaning, meaning, with_int96, with_shredded
from pyspark_delta.schema.arrow import schema_to_parquet
from pyspark_delta.schema.legacy_calendar import legacy_calendar
from pyspark_delta.schema.traversal import types_in
from pyspark_delta.schema.types import DATE, TIMESTAMP, VARIANT

LARGE_BYTES, LARGE_ROWS = 32 << 20, 500_000

_CODECS: Mapping[str, frozenset[int]] = {
    "none": frozenset({0}),
    "uncompressed": frozenset({0}),
    "snappy": frozenset({1}),
    "gzip": frozenset({2}),
    "brotli": frozenset({4}),
    "lz4": frozenset({5, 7}),  # Hadoop's form, and the one that Arrow writes
    "zstd": frozenset({6}),
    "lz4_raw": frozenset({7}),
}
_WRITERS: Mapping[str, tuple[int, ...]] = {  # the first versions whose statistics are right for all types
    "parquet-mr": (1, 10, 0),
    "parquet-cpp-arrow": (5, 0, 0),
    "parquet-rs": (40, 0, 0),
    "delta-rs": (1, 0, 0),
    "pyspark-delta": (0,),
}
_WRITER = re.compile(r"(?P<name>[a-z-]+)( version (py-|rust-)?(?P<version>[0-9.]+))?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LargeRowGroups:
    """From which average bytes or rows on the row groups of a file are copied."""

    size: int = LARGE_BYTES
    rows: int = LARGE_ROWS

    def holds(self, groups: int, size: int, rows: int) -> bool:
        """Return True if so many row groups of so many bytes and rows are large on average.

        A small row group at the end of a file does not matter.
        """
        return groups > 0 and (size >= groups * self.size or rows >= groups * self.rows)


LARGE = LargeRowGroups()
"""The usual limits."""


@dataclass(frozen=True, slots=True)
class CopyRules:
    """What a file must be like for its row groups to be copied.

    `schema` is what its Parquet schema must mean; instants may be INT96 with `allows_int96`, and the columns `variants`
    must be shredded, in any form. `codecs` are those that
    columns may have, None for any.
    `second_version` is True for data pages of version 2. Columns `never_null` must have no nulls. `has_times` is True
    if the table has dates or timestamps, which old versions of Spark write in another calendar.
    """

    schema: Meaning
    codecs: frozenset[int] | None = None
    second_version: bool = False
    allows_int96: bool = False
    never_null: frozenset[tuple[bytes, ...]] = frozenset()
    has_times: bool = False
    variants: frozenset[bytes] = frozenset()
    large: LargeRowGroups = LARGE

    def reason(self, footer: Footer) -> str | None:
        """Return why the row groups of a file are not copied, None if they are."""
        size = sum(group.size for group in footer.row_groups)
        if not self.large.holds(len(footer.row_groups), size, footer.num_rows):
            return "its row groups are small"
        if not self._is_schema(meaning(footer.schema)):
            return "its Parquet schema is not that of the table"
        if not _is_known(footer.created_by) or not footer.has_orders:
            return f"the statistics of its writer may be wrong: {footer.created_by or 'unknown'}"
        if footer.has_second_pages is not self.second_version:
            return "its pages are of another version of Parquet"
        if self.has_times and legacy_calendar(footer.key_values, {"INT64", "INT96"}) is not None:
            return "its dates and timestamps are in the calendar of Spark 2"
        return self._reason_in_columns(footer)

    def _reason_in_columns(self, footer: Footer) -> str | None:
        for group in footer.row_groups:
            for leaf, chunk in zip(footer.leaves, group.chunks, strict=True):
                if self.codecs is not None and chunk.codec not in self.codecs:
                    return "it is compressed with another codec"
                if leaf.path in self.never_null and chunk.null_count != 0:
                    return "some row ids of it are not in the file"
        return None

    def _is_schema(self, found: Meaning) -> bool:
        known = [self.schema, with_int96(self.schema)] if self.allows_int96 else [self.schema]
        return any(found == (with_shredded(one, found, self.variants) if self.variants else one) for one in known)


def copy_rules(
    context: WriteContext,
    *,
    compression: str | None = None,
    allows_int96: bool = False,
    never_null: Iterable[str] = (),
    large: LargeRowGroups = LARGE,
) -> CopyRules:
    """Return the rules for files of a context.

    `compression` is the codec that the table asks for, None if it does not. `never_null` are the physical names of
    top-level columns that must have no nulls, such as stored row ids.
    """
    return CopyRules(
        schema=meaning(template(context).schema),
        codecs=None if compression is None else _CODECS.get(compression.lower(), frozenset()),
        second_version=not context.format_version.startswith("1."),
        allows_int96=allows_int96,
        never_null=frozenset((name.encode(),) for name in never_null),
        has_times=any(found in (DATE, TIMESTAMP) for found in types_in(context.data_schema)),
        variants=frozenset(field.name.encode() for field in context.data_schema if field.type == VARIANT)
        if context.shreds_variants
        else frozenset(),
        large=large,
    )


def template(context: WriteContext) -> Footer:
    """Return the footer of a file without rows, as this package writes it for a context."""
    sink = pa.BufferOutputStream()
    pq.ParquetWriter(sink, schema_to_parquet(context.data_schema), **parquet_options(context)).close()
    return footer_of(sink.getvalue().to_pybytes())


def footer_of(data: bytes) -> Footer:
    """Return the footer of a file that is in memory."""
    begin = len(data) - TRAILER - int.from_bytes(data[-TRAILER:-4], "little")
    return parse_footer(data[begin:-TRAILER], begin)


def _is_known(created_by: str) -> bool:
    found = _WRITER.match(created_by)
    if found is None or found["name"].lower() not in _WRITERS:
        return False
    version = tuple(int(part) for part in (found["version"] or "0").split(".") if part)
    return version >= _WRITERS[found["name"].lower()]
