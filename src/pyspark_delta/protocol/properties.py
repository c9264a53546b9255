"""Table properties: the known keys of `metaData.configuration`, each with its type and default.

Keys compare regardless of case. Values are strings in the log; `TableProperty.of` parses one to its type.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, TypeVar

from pyspark_delta.errors import InvalidOptionError, InvalidTableError
from pyspark_delta.protocol.intervals import format_interval, parse_interval
from pyspark_delta.protocol.property_values import (
    any_text,
    auto_compact,
    codec,
    column_names,
    complete_names,
    formats,
    integer_from,
    one_of,
    optional_boolean,
    optional_integer,
    optional_interval,
    parquet_version,
    parse_boolean,
    parse_size,
)
from pyspark_delta.schema.json import check_text

T_co = TypeVar("T_co", covariant=True)

CONSTRAINT_PREFIX = "delta.constraints."
FEATURE_PREFIX = "delta.feature."
# Keys under `delta.` with a free last part: constraints, feature requests, and properties of other engines.
_OPEN_PREFIXES = (
    CONSTRAINT_PREFIX,
    FEATURE_PREFIX,
    "delta.universalFormat.config.",
    "delta.coordinatedCommits.",
    "delta.rowTracking.",
)


@dataclass(frozen=True, slots=True)
class TableProperty(Generic[T_co]):
    """One table property: `parse` converts the string to the typed value and raises ValueError for an illegal one.

    `accept` raises ValueError for values that are read, but that users cannot set. `error_class` is that of illegal
    values.
    """

    name: str
    default: T_co
    parse: Callable[[str], T_co]
    meaning: str
    alias: str = ""
    accept: Callable[[str], object] | None = None
    error_class: str | None = None

    def of(self, properties: Mapping[str, str]) -> T_co:
        """Return the value from the properties of a table, or the default.

        Raises InvalidTableError if the table has an illegal value.
        """
        text = lookup(properties, self.name)
        if text is None and self.alias:
            text = lookup(properties, self.alias)
        if text is None:
            return self.default
        try:
            return self.parse(text)
        except ValueError as error:
            raise InvalidTableError(
                f"The table property '{self.name}' has an illegal value: {error}. Set it to a legal value.",
                property=self.name,
                value=text,
            ) from None

    @property
    def default_text(self) -> str | None:
        """The default as a string of the log; None if the property has no default value."""
        match self.default:
            case None:
                return None
            case bool():
                return "true" if self.default else "false"
            case timedelta():
                return format_interval(self.default)
            case _:
                return str(self.default)


def lookup(properties: Mapping[str, str], name: str) -> str | None:
    """Return the string value of a property: an exact match first, otherwise a match regardless of case."""
    found = properties.get(name)
    if found is not None:
        return found
    folded = name.casefold()
    return next((value for key, value in properties.items() if key.casefold() == folded), None)


def find_property(name: str) -> TableProperty[object] | None:
    """Return the property of that name or alias, regardless of case; None if there is none."""
    return _BY_NAME.get(name.casefold())


def check_property(name: str, value: str, *, internal: bool = False) -> None:
    """Check a property that a user sets; if `internal`, also accept one that only writers set.

    Raises InvalidOptionError for an unknown `delta.` key, with the nearest known one, for an illegal value, and for a
    property that only writers set. Keys without that prefix belong to the user.
    """
    check_text(name)
    check_text(value)
    folded = name.casefold()
    if not internal and folded in _INTERNAL:
        raise InvalidOptionError(
            f"The table property '{name}' is maintained by writers and cannot be set. Remove it from the properties.",
            error_class="DELTA_CANNOT_MODIFY_TABLE_PROPERTY",
            property=name,
        )
    if not folded.startswith("delta.") or any(folded.startswith(p.casefold()) for p in _OPEN_PREFIXES):
        return
    known = _BY_NAME.get(folded)
    if known is None:
        raise InvalidOptionError(
            f"Unknown table property '{name}'.{_suggestion(name)} User-defined keys must not begin with 'delta.'.",
            error_class="DELTA_UNKNOWN_CONFIGURATION",
            property=name,
        )
    try:
        (known.accept or known.parse)(value)
    except ValueError as error:
        raise InvalidOptionError(
            f"The table property '{known.name}' cannot be set: {error}.",
            error_class=known.error_class,
            property=known.name,
            value=value,
        ) from None


def near_property_names(name: str) -> list[str]:
    """Return known property names similar to this one, best first."""
    near = difflib.get_close_matches(name.casefold(), _BY_NAME, n=6, cutoff=0.75)
    return list(dict.fromkeys(_BY_NAME[key].name for key in near))[:3]  # aliases mean the same property


def _suggestion(name: str) -> str:
    near = near_property_names(name)
    return f" Did you mean {' or '.join(repr(n) for n in near)}?" if near else ""


# ------------------------------------------------------------------------------------------------- the table
APPEND_ONLY = TableProperty(
    "delta.appendOnly", False, parse_boolean, "Rows can be appended, but not changed or removed."
)
ENABLE_CHANGE_DATA_FEED = TableProperty(
    "delta.enableChangeDataFeed",
    False,
    parse_boolean,
    "Commits record row changes, for reading the change data feed.",
    alias="delta.enableChangeDataCapture",
)
ENABLE_DELETION_VECTORS = TableProperty(
    "delta.enableDeletionVectors",
    False,
    parse_boolean,
    "Rows can be deleted with deletion vectors instead of rewriting files.",
)
COLUMN_MAPPING_MODE = TableProperty(
    "delta.columnMapping.mode",
    "none",
    one_of("none", "name", "id"),
    "How columns of the schema map to columns of data files: none, name or id.",
)
COLUMN_MAPPING_MAX_ID = TableProperty(
    "delta.columnMapping.maxColumnId", 0, integer_from(0), "The largest column id ever assigned; maintained by writers."
)
CHECKPOINT_INTERVAL = TableProperty(
    "delta.checkpointInterval", 10, integer_from(1), "The number of commits from one checkpoint to the next."
)
CHECKPOINT_POLICY = TableProperty(
    "delta.checkpointPolicy",
    "classic",
    one_of("classic", "v2"),
    "The kind of checkpoint that is written: classic or v2.",
)
LOG_RETENTION = TableProperty(
    "delta.logRetentionDuration", timedelta(days=30), parse_interval, "How long log files are kept."
)
DELETED_FILE_RETENTION = TableProperty(
    "delta.deletedFileRetentionDuration",
    timedelta(weeks=1),
    parse_interval,
    "How long removed data files are kept for readers of older versions.",
)
ENABLE_EXPIRED_LOG_CLEANUP = TableProperty(
    "delta.enableExpiredLogCleanup", True, parse_boolean, "Whether writing a checkpoint cleans up the log."
)
STATS_NUM_COLUMNS = TableProperty(
    "delta.dataSkippingNumIndexedCols",
    32,
    integer_from(-1),
    "The number of leaf columns with statistics; -1 means all.",
)
STATS_COLUMNS: TableProperty[tuple[str, ...] | None] = TableProperty(
    "delta.dataSkippingStatsColumns",
    None,
    column_names,
    "Columns with statistics; overrides their number.",
    accept=complete_names,
)
STATS_STRING_PREFIX_LENGTH: TableProperty[int | None] = TableProperty(
    "delta.dataSkippingStringPrefixLength",
    None,
    optional_integer,
    "Characters of a string kept in minimum and maximum; 32 by default.",
)
WRITE_STATS_AS_JSON = TableProperty(
    "delta.checkpoint.writeStatsAsJson", True, parse_boolean, "Checkpoints contain statistics as JSON text."
)
WRITE_STATS_AS_STRUCT = TableProperty(
    "delta.checkpoint.writeStatsAsStruct", True, parse_boolean, "Checkpoints contain statistics as typed columns."
)
MIN_READER_VERSION = TableProperty(
    "delta.minReaderVersion", 1, integer_from(1), "The reader version of a new table; never stored."
)
MIN_WRITER_VERSION = TableProperty(
    "delta.minWriterVersion", 2, integer_from(1), "The writer version of a new table; never stored."
)
IGNORE_PROTOCOL_DEFAULTS = TableProperty(
    "delta.ignoreProtocolDefaults",
    False,
    parse_boolean,
    "A new table ignores the protocol versions configured in the session.",
)
ISOLATION_LEVEL = TableProperty(
    "delta.isolationLevel",
    "Serializable",
    one_of("Serializable", "WriteSerializable", "SnapshotIsolation"),
    "The isolation level of concurrent commits.",
    accept=one_of("Serializable", "WriteSerializable"),
    error_class="DELTA_INVALID_ISOLATION_LEVEL",
)
ENABLE_IN_COMMIT_TIMESTAMPS = TableProperty(
    "delta.enableInCommitTimestamps", False, parse_boolean, "Commits contain their timestamp."
)
IN_COMMIT_TIMESTAMP_VERSION: TableProperty[int | None] = TableProperty(
    "delta.inCommitTimestampEnablementVersion",
    None,
    optional_integer,
    "The first version with an in-commit timestamp, if earlier versions lack it.",
)
IN_COMMIT_TIMESTAMP_TIME: TableProperty[int | None] = TableProperty(
    "delta.inCommitTimestampEnablementTimestamp",
    None,
    optional_integer,
    "The in-commit timestamp of the first version that has one, in ms since the epoch.",
)
ENABLE_ROW_TRACKING = TableProperty(
    "delta.enableRowTracking", False, parse_boolean, "Rows have stable ids and commit versions."
)
ROW_TRACKING_SUSPENDED = TableProperty(
    "delta.rowTrackingSuspended", False, parse_boolean, "New files get no row ids until this is false."
)
MATERIALIZED_ROW_ID: TableProperty[str | None] = TableProperty(
    "delta.rowTracking.materializedRowIdColumnName", None, any_text, "The physical column of stored row ids."
)
MATERIALIZED_ROW_COMMIT_VERSION: TableProperty[str | None] = TableProperty(
    "delta.rowTracking.materializedRowCommitVersionColumnName",
    None,
    any_text,
    "The physical column of stored row commit versions.",
)
ENABLE_TYPE_WIDENING = TableProperty(
    "delta.enableTypeWidening", False, parse_boolean, "Columns can change to a wider type without rewriting files."
)
ENABLE_VARIANT_SHREDDING = TableProperty(
    "delta.enableVariantShredding",
    False,
    parse_boolean,
    "Parts of variants can be stored as typed columns (shredding).",
)
OPTIMIZE_WRITE: TableProperty[bool | None] = TableProperty(
    "delta.autoOptimize.optimizeWrite", None, optional_boolean, "Writes produce files of a suitable size."
)
AUTO_COMPACT: TableProperty[str | None] = TableProperty(
    "delta.autoOptimize.autoCompact", None, auto_compact, "Small files are compacted after a write."
)
AUTO_OPTIMIZE: TableProperty[bool | None] = TableProperty(
    "delta.autoOptimize",
    None,
    optional_boolean,
    "The older name for delta.autoOptimize.optimizeWrite and autoCompact.",
)
TARGET_FILE_SIZE: TableProperty[int | None] = TableProperty(
    "delta.targetFileSize", None, parse_size, "The target size of files, in bytes."
)
TUNE_FILE_SIZES: TableProperty[bool | None] = TableProperty(
    "delta.tuneFileSizesForRewrites", None, optional_boolean, "Use smaller files, for tables that are often rewritten."
)
SET_TRANSACTION_RETENTION: TableProperty[timedelta | None] = TableProperty(
    "delta.setTransactionRetentionDuration",
    None,
    optional_interval,
    "How long application transactions (txn) are kept.",
)
CHECKPOINT_RETENTION = TableProperty(
    "delta.checkpointRetentionDuration", timedelta(days=2), parse_interval, "How long superseded checkpoints are kept."
)
SAMPLE_RETENTION = TableProperty(
    "delta.sampleRetentionDuration", timedelta(days=7), parse_interval, "Accepted for older tables; has no effect."
)
ENABLE_FULL_RETENTION_ROLLBACK = TableProperty(
    "delta.enableFullRetentionRollback", True, parse_boolean, "Accepted for older tables; has no effect."
)
DROP_FEATURE_RETENTION = TableProperty(
    "delta.dropFeatureTruncateHistory.retentionDuration",
    timedelta(hours=24),
    parse_interval,
    "How long dropping a feature waits before the history that uses it may be removed.",
)
CHECKPOINT_PROTECTION_VERSION = TableProperty(
    "delta.requireCheckpointProtectionBeforeVersion",
    0,
    integer_from(0),
    "Checkpoints before this version must not be deleted.",
)
RANDOMIZE_FILE_PREFIXES = TableProperty(
    "delta.randomizeFilePrefixes", False, parse_boolean, "Data files have random prefixes, to spread load."
)
RANDOM_PREFIX_LENGTH = TableProperty("delta.randomPrefixLength", 2, integer_from(1), "Characters of such a prefix.")
SYMLINK_MANIFEST = TableProperty(
    "delta.compatibility.symlinkFormatManifest.enabled", False, parse_boolean, "Commits refresh the symlink manifest."
)
PARQUET_COMPRESSION: TableProperty[str | None] = TableProperty(
    "delta.parquet.compression.codec", None, codec, "How Parquet files are compressed; zstd by default."
)
PARQUET_FORMAT_VERSION = TableProperty(
    "delta.parquet.format.version", "1.0.0", parquet_version, "The version of the Parquet format of new files."
)
ENABLE_ICEBERG_COMPAT_V1 = TableProperty(
    "delta.enableIcebergCompatV1", False, parse_boolean, "Data files can be read as an Iceberg table (rules V1)."
)
ENABLE_ICEBERG_COMPAT_V2 = TableProperty(
    "delta.enableIcebergCompatV2", False, parse_boolean, "Data files can be read as an Iceberg table (rules V2)."
)
ENABLE_ICEBERG_COMPAT_V3 = TableProperty(
    "delta.enableIcebergCompatV3", False, parse_boolean, "Data files can be read as an Iceberg table (rules V3)."
)
ENABLE_ICEBERG_WRITER_COMPAT_V1 = TableProperty(
    "delta.enableIcebergWriterCompatV1",
    False,
    parse_boolean,
    "The table can be written as an Iceberg table (rules V1).",
)
ENABLE_ICEBERG_WRITER_COMPAT_V3 = TableProperty(
    "delta.enableIcebergWriterCompatV3",
    False,
    parse_boolean,
    "The table can be written as an Iceberg table (rules V3).",
)
UNIVERSAL_FORMATS = TableProperty(
    "delta.universalFormat.enabledFormats",
    "",
    str,
    "Formats for which metadata is also written after each commit: iceberg, hudi.",
    accept=formats,
)
MATERIALIZE_PARTITION_COLUMNS: TableProperty[bool | None] = TableProperty(
    "delta.enableMaterializePartitionColumnsFeature",
    None,
    optional_boolean,
    "Enables the feature that stores partition columns in data files.",
)
WRITE_PARTITION_COLUMNS: TableProperty[bool | None] = TableProperty(
    "delta.writePartitionColumnsToParquet",
    None,
    optional_boolean,
    "Whether new data files also contain the partition columns.",
)

TABLE_PROPERTIES: tuple[TableProperty[object], ...] = tuple(
    value for value in list(globals().values()) if isinstance(value, TableProperty)
)
_BY_NAME: Mapping[str, TableProperty[object]] = {
    key.casefold(): known for known in TABLE_PROPERTIES for key in (known.name, known.alias) if key
}
_INTERNAL = frozenset(
    known.name.casefold()
    for known in (
        COLUMN_MAPPING_MAX_ID,
        IN_COMMIT_TIMESTAMP_VERSION,
        IN_COMMIT_TIMESTAMP_TIME,
        MATERIALIZED_ROW_ID,
        MATERIALIZED_ROW_COMMIT_VERSION,
    )
)
