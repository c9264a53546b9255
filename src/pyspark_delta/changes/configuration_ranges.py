"""Ranges of versions with the same protocol and metadata, and what the change data feed requires of each.

A commit is read with the columns that the table had at that version; they must be convertible to the last columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pyspark_delta.actions.model import Metadata, Protocol
from pyspark_delta.changes.versions import VersionRange
from pyspark_delta.errors import CorruptLogError, InvalidOperationError, UnsupportedTableError, VersionNotFoundError
from pyspark_delta.features import Feature, is_active
from pyspark_delta.features.support import check_readable
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.schema.column_mapping import mapping_mode, physical_field
from pyspark_delta.schema.types import ArrayType, DataType, MapType, StructField, StructType
from pyspark_delta.schema.widening import is_lossless
from pyspark_delta.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Declared:
    """The protocol and metadata that one commit declares; None if it leaves them unchanged."""

    version: int
    protocol: Protocol | None
    metadata: Metadata | None


@dataclass(frozen=True, slots=True)
class ConfigurationRange:
    """The versions from `first` on, up to the next range, have this configuration."""

    first: int
    configuration: TableConfiguration

    @property
    def partition_names(self) -> tuple[str, ...]:
        """The physical names of the partition columns."""
        mode, schema = mapping_mode(self.configuration), self.configuration.schema
        fields = (schema.find(name) for name in self.configuration.partition_columns)
        return tuple(physical_field(f, mode).name for f in fields if f is not None)


def partition_names(ranges: Iterable[ConfigurationRange]) -> tuple[str, ...]:
    """Return the physical names of the partition columns of all ranges."""
    return tuple(dict.fromkeys(name for current in ranges for name in current.partition_names))


def configuration_ranges(
    latest: Snapshot, versions: VersionRange, declared: Sequence[Declared]
) -> tuple[ConfigurationRange, ...]:
    """Return the configuration ranges of some versions, oldest first.

    The first range holds the configuration before the first version; each commit that changes protocol or metadata
    begins a new range. The first range may contain no requested version; files that the first commit removes belong to
    it. Raises the errors of opening a version, and UnsupportedFeatureError for a version that cannot be read.
    """
    ranges = [ConfigurationRange(versions.first, _before(latest, versions, declared))]
    for change in declared:
        configuration = evolved(ranges[-1].configuration, change)
        check_readable(configuration, latest.location)
        ranges.append(ConfigurationRange(change.version, configuration))
    return tuple(ranges)


def evolved(before: TableConfiguration, change: Declared) -> TableConfiguration:
    """Return the configuration of a table after a commit."""
    return TableConfiguration(change.protocol or before.protocol, change.metadata or before.metadata, before.location)


def _before(latest: Snapshot, versions: VersionRange, declared: Sequence[Declared]) -> TableConfiguration:
    if not declared and versions.last == latest.version:
        return latest.configuration
    start = declared[0] if declared and declared[0].version == versions.first else None
    if start is not None and versions.first == 0:
        if start.protocol is None or start.metadata is None:
            raise CorruptLogError(
                f"The first commit of '{latest.location}' lacks protocol or metadata. Restore the file from a copy.",
                path=latest.location,
                error_class="DELTA_STATE_RECOVER_ERROR",
            )
        return TableConfiguration(start.protocol, start.metadata, latest.location)
    at = versions.first if start is None else versions.first - 1
    try:
        return _configuration(latest, at)
    except (VersionNotFoundError, CorruptLogError):  # its log may have been cleaned up, or its metadata have no schema
        return _configuration(latest, versions.first)


def _configuration(latest: Snapshot, version: int) -> TableConfiguration:
    if version == latest.version:
        return latest.configuration
    return latest.at_version(version).configuration


# ------------------------------------------------------------------------------------------- was the feed enabled
def check_enabled(ranges: Sequence[ConfigurationRange], versions: VersionRange, location: str) -> None:
    """Raise InvalidOperationError, naming the versions, if the feed was off in any version of the range (C167)."""
    off = [(first, last) for first, last, current in _spans(ranges, versions) if not cdf_enabled(current.configuration)]
    if not off:
        return
    merged: list[tuple[int, int]] = []
    for first, last in off:
        if merged and merged[-1][1] == first - 1:
            merged[-1] = (merged[-1][0], last)
        else:
            merged.append((first, last))
    shown = ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in merged)
    later = merged[-1][1] + 1
    advice = (
        f"Start from version {later}, at which it was enabled"
        if later <= versions.last
        else "Set the table property delta.enableChangeDataFeed to true to record the changes of later versions"
    )
    raise InvalidOperationError(
        f"The changes of '{location}' from version {versions.first} to {versions.last} cannot be read: the change data "
        f"feed was not enabled in {'version' if shown.isdecimal() else 'versions'} {shown}. {advice}.",
        error_class="DELTA_MISSING_CHANGE_DATA",
        sqlstate="KD002",
        start=versions.first,
        end=versions.last,
        versions=shown,
    )


def _spans(
    ranges: Sequence[ConfigurationRange], versions: VersionRange
) -> Iterator[tuple[int, int, ConfigurationRange]]:
    """Yield the first and last requested version of each configuration range that has any."""
    for current, following in pairwise(ranges):
        if current.first < following.first:
            yield current.first, following.first - 1, current
    yield ranges[-1].first, versions.last, ranges[-1]


def cdf_enabled(configuration: TableConfiguration) -> bool:
    """True if commits record changed rows: the property counts only if the protocol supports the feature (C168)."""
    return is_active(configuration, Feature.CHANGE_DATA_FEED)


# --------------------------------------------------------------------------------- from its columns to those at the end
def check_columns(used: Iterable[int], ranges: Sequence[ConfigurationRange], versions: VersionRange) -> None:
    """Check that rows of the `used` ranges can be read with the columns at the end of the range.

    No column may be lost, and a type may only be widened. With column mapping, columns may be renamed and dropped in
    between; a dropped column is not shown. Neither is a column that the first commit itself drops, because no requested
    version has it. Raises UnsupportedTableError, naming the versions.
    """
    last = ranges[-1]
    mapped = mapping_mode(last.configuration) != "none"
    for number in sorted(set(used)):
        current = ranges[number]
        if current.configuration.metadata.schema_string == last.configuration.metadata.schema_string:
            continue
        outside = len(ranges) > number + 1 and ranges[number + 1].first == versions.first
        changed = _first_difference(current, (*ranges[number + 1 : -1], last), may_drop=mapped or outside)
        if changed is not None:
            problem, at = changed
            shown = f"before version {versions.first}" if outside else f"at version {current.first}"
            raise UnsupportedTableError(
                f"The changes of '{last.configuration.location}' from version {versions.first} to {versions.last} "
                f"cannot be read together: {problem} between the columns {shown} and those at version {at}. Read the "
                f"changes up to version {max(at - 1, 0)} and those from version {at} on separately.",
                error_class="DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE",
                sqlstate="0AKDC",
                start=versions.first,
                end=versions.last,
                version=at,
            )


def column_difference(before: TableConfiguration, after: TableConfiguration) -> str | None:
    """Return why rows written with the columns `before` cannot be read with those `after`; None if they can.

    A dropped column is not shown.
    """
    return _difference(_physical(before), _physical(after), may_drop=True, where="")


def _first_difference(
    current: ConfigurationRange, later: Sequence[ConfigurationRange], *, may_drop: bool
) -> tuple[str, int] | None:
    """Return why rows of a range cannot be read with the columns of the last one, and the version that caused it."""
    before = _physical(current.configuration)
    found = [_difference(before, _physical(one.configuration), may_drop=may_drop, where="") for one in later]
    if found[-1] is None:
        return None
    return next((problem, one.first) for problem, one in zip(found, later, strict=True) if problem is not None)


def _physical(configuration: TableConfiguration) -> list[tuple[str, StructField]]:
    mode = mapping_mode(configuration)
    return [(field.name, physical_field(field, mode)) for field in configuration.schema]


def _difference(
    before: Sequence[tuple[str, StructField]], after: Sequence[tuple[str, StructField]], *, may_drop: bool, where: str
) -> str | None:
    """Return why rows of the columns `before` cannot be read as `after`: (logical name, physical field)."""
    found = {field.name.casefold(): field for _, field in after}
    names = {name.casefold() for name, _ in after}
    for name, field in before:
        column = f"{where}.{name}" if where else name
        later = found.get(field.name.casefold())
        if later is None:
            if name.casefold() in names:
                return f"column '{column}' was replaced by another column of the same name"
            if not may_drop:
                return f"column '{column}' was dropped or renamed"
        elif (problem := _type_difference(field.type, later.type, may_drop, column)) is not None:
            return problem
    return None


def _type_difference(before: DataType, after: DataType, may_drop: bool, column: str) -> str | None:
    match before, after:
        case StructType(), StructType():
            inner = ([(f.name, f) for f in before], [(f.name, f) for f in after])
            return _difference(*inner, may_drop=may_drop, where=column)
        case ArrayType(element), ArrayType(later):
            return _type_difference(element, later, may_drop, f"{column}.element")
        case MapType(key, value), MapType(later_key, later_value):
            problem = _type_difference(key, later_key, may_drop, f"{column}.key")
            return problem or _type_difference(value, later_value, may_drop, f"{column}.value")
        case _ if before == after or is_lossless(before, after):
            return None
        case _:
            return f"column '{column}' was changed from {before} to {after}"
