"""Evolve protocol and metadata of a table together: from the requested metadata to the configuration to commit.

Schema, partitioning and properties determine the features that are needed. The protocol is upgraded for them, each
feature completes the metadata, and then checks the configuration (sections Protocol Evolution, Table Features;
C184-C191, C222-C235). Nothing is written here.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from pyspark_delta.actions.model import Metadata, Protocol
from pyspark_delta.errors import DeltaWarning, InvalidOperationError, InvalidOptionError
from pyspark_delta.features import (
    Feature,
    active_features,
    all_features,
    find_feature,
    finish_order,
    is_active,
)
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import TableFeature
from pyspark_delta.protocol.intervals import format_interval
from pyspark_delta.protocol.properties import (
    DELETED_FILE_RETENTION,
    FEATURE_PREFIX,
    IGNORE_PROTOCOL_DEFAULTS,
    LOG_RETENTION,
    MIN_READER_VERSION,
    MIN_WRITER_VERSION,
    check_property,
    find_property,
    lookup,
)
from pyspark_delta.schema.json import parse_schema
from pyspark_delta.transaction.column_rules import check_columns, check_distinct, resolve_partitioning
from pyspark_delta.transaction.protocol_upgrade import (
    check_no_downgrade,
    check_versions,
    features_of,
    implied_features,
    known_feature,
    weakest_protocol,
    with_features,
)
from pyspark_delta.transaction.row_rules import check_declared
from pyspark_delta.transaction.statistics_columns import check_statistics_columns
from pyspark_delta.transaction.universal_format import with_valid_formats

DEFAULTS_PREFIX = "spark.databricks.delta.properties.defaults."
"""How the names of a session's settings for properties of new tables begin."""

_PROTOCOL_PROPERTIES = (MIN_READER_VERSION, MIN_WRITER_VERSION, IGNORE_PROTOCOL_DEFAULTS)


def evolve(
    before: TableConfiguration | None,
    metadata: Metadata,
    protocol: Protocol | None = None,
    *,
    features: Iterable[str] = (),
    keeps_files: bool = True,
    complying: Iterable[str] = (),
    inherited: Mapping[str, str] | None = None,
) -> TableConfiguration:
    """Return the configuration to commit for a table with this schema, partitioning and these properties.

    `before` is None for a new table. The properties of `metadata` are the complete set, including the protocol
    properties (`delta.feature.*`, `delta.minReaderVersion`, `delta.minWriterVersion`): these change the protocol and
    are not stored. `protocol` is a minimum, such as the protocol of the source of a clone; `features` are supported in
    addition. `keeps_files` is True if files of the table stay, or if the caller has not verified that they comply: then
    a feature that constrains existing files is refused, unless it is among `complying`, the features for which the
    caller has verified it. `inherited` are properties of another table, such as the source of a clone, which are kept
    as they are, even if they are unknown.

    If nothing changes, the result equals `before`. Raises InvalidOptionError for an unknown or illegal property,
    InvalidOperationError and SchemaMismatchError for what the features, old and new, do not allow.
    """
    check_distinct(parse_schema(metadata.schema_string))
    known = {**(before.properties if before is not None else {}), **(inherited or {})}
    asked = _split_properties(known, metadata.configuration)
    metadata = replace(metadata, configuration=asked.stored)
    base = _base_protocol(before, asked, protocol)
    configuration = TableConfiguration(
        with_features(base, (*asked.features, *features)), metadata, before.location if before else ""
    )
    configuration = with_valid_formats(_enable_requested(configuration, before), before)
    _check_schema(configuration)
    for feature in finish_order(configuration):
        configuration = feature.prepare(configuration, before)
    if before is not None:
        check_no_downgrade(before.protocol, configuration.protocol)
    if before is not None:
        check_statistics_columns(configuration, before)
    _check_exclusions(configuration)
    _check_retentions(configuration, before)
    compliant = frozenset(complying)
    for feature in finish_order(configuration):
        feature.validate(configuration)
        if before is not None:
            binding = keeps_files and feature.name not in compliant
            feature.check_change(configuration, before, keeps_files=binding)
    check_declared(configuration, before)
    return configuration


def check_listing(name: str) -> TableFeature:
    """Return the feature with a name that a user wants a table to support (`addFeatureSupport`).

    Raises InvalidOperationError for one that is unknown, or that cannot be added by its name.
    """
    feature = known_feature(name)
    reason = feature.listing_unsupported_reason or feature.read_unsupported_reason
    if reason:
        raise InvalidOperationError(
            f"The table feature '{name}' cannot be enabled by its name: {reason}",
            error_class="DELTA_UNSUPPORTED_FEATURES_IN_CONFIG",
            feature=name,
        )
    return feature


def default_properties(given: Mapping[str, str], defaults: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a new table: those given, and the session's defaults for the others.

    Keys of `defaults` are those of the table, or without the prefix `delta.`, as in the session's settings
    `spark.databricks.delta.properties.defaults.*`. Defaults of unknown properties are left out with a warning, because
    the session may be for other versions too. Raises InvalidOptionError for a default with an illegal value.
    """
    merged = dict(given)
    for key, value in defaults.items():
        name = key if key.casefold().startswith("delta.") else f"delta.{key}"
        if lookup(given, name) is None and _is_valid_default(name, value):
            merged[name] = value
    return merged


def _is_valid_default(name: str, value: str) -> bool:
    setting = f"The session setting {DEFAULTS_PREFIX}{name[len('delta.') :]}"
    try:
        check_property(name, value)
    except InvalidOptionError as error:
        if error.error_class != "DELTA_UNKNOWN_CONFIGURATION":
            raise InvalidOptionError(
                f"{setting} applies to new tables. {error.message}", error_class=error.error_class, property=name
            ) from None
        warnings.warn(DeltaWarning(f"{setting} is ignored. {error.message}"), stacklevel=2)
        return False
    return True


# ------------------------------------------------------------------------------------------------- properties
@dataclass(frozen=True, slots=True)
class _Requested:
    """Requested properties, separated into those that the table stores and those that change the protocol."""

    stored: dict[str, str]
    features: tuple[str, ...]
    reader: int | None
    writer: int | None
    ignores_defaults: bool


def _split_properties(known_before: Mapping[str, str], properties: Mapping[str, str]) -> _Requested:
    stored: dict[str, str] = {}
    features: list[str] = []
    protocol: dict[str, str] = {}
    for key, value in properties.items():
        if known_before.get(key) == value:
            stored[key] = value
            continue
        check_property(key, value, internal=True)
        known = find_property(key)
        if key.casefold().startswith(FEATURE_PREFIX):
            features.append(_requested_feature(key[len(FEATURE_PREFIX) :], value))
        elif known is not None and known in _PROTOCOL_PROPERTIES:
            protocol[known.name] = value
        else:
            name = known.name if known is not None else key
            previous = next((k for k in stored if k.casefold() == name.casefold()), name)
            stored.pop(previous, None)
            stored[name] = value
    reader = int(protocol[MIN_READER_VERSION.name]) if MIN_READER_VERSION.name in protocol else None
    writer = int(protocol[MIN_WRITER_VERSION.name]) if MIN_WRITER_VERSION.name in protocol else None
    check_versions(reader or 1, writer or 1)
    return _Requested(stored, tuple(features), reader, writer, IGNORE_PROTOCOL_DEFAULTS.of(protocol))


def _requested_feature(name: str, value: str) -> str:
    feature = find_feature(name) or next(
        (f for f in all_features() for known in f.names if known.casefold() == name.casefold()), None
    )
    listed = next((known for known in feature.names if known.casefold() == name.casefold()), name) if feature else name
    if value.strip().casefold() not in ("supported", "enabled"):
        raise InvalidOptionError(
            f"The table property '{FEATURE_PREFIX}{name}' is '{value}'; the only valid value is 'supported', which "
            "adds the feature. Features are not removed by a property: drop the feature instead.",
            error_class="DELTA_UNSUPPORTED_FEATURE_STATUS",
            property=f"{FEATURE_PREFIX}{name}",
            value=value,
        )
    return listed


# --------------------------------------------------------------------------------------------------- protocol
def _base_protocol(before: TableConfiguration | None, asked: _Requested, protocol: Protocol | None) -> Protocol | None:
    """Return the protocol before requested features are added; it keeps every feature of the table."""
    wanted = features_of(protocol) if protocol is not None else frozenset[str]()
    if before is not None:
        versions = implied_features(asked.reader or 1, asked.writer or 1)
        return with_features(before.protocol, versions | wanted)
    least = (1, 1) if asked.ignores_defaults or protocol is not None else (1, MIN_WRITER_VERSION.default)
    reader, writer = asked.reader or least[0], asked.writer or least[1]
    return weakest_protocol(implied_features(reader, writer) | wanted)


def _enable_requested(configuration: TableConfiguration, before: TableConfiguration | None) -> TableConfiguration:
    """Support every feature that schema and properties use, and set the properties that this implies."""
    while True:
        requested = [feature for feature in all_features() if feature.is_requested(configuration)]
        properties = dict(configuration.properties)
        for feature in reversed(requested):  # dependent features come first
            if before is None or not feature.is_requested(before):
                for name, value in feature.implied_properties.items():
                    if lookup(properties, name) is None:
                        properties[name] = value
        protocol = with_features(configuration.protocol, [feature.name for feature in requested])
        if protocol == configuration.protocol and properties == dict(configuration.properties):
            return configuration
        metadata = replace(configuration.metadata, configuration=properties)
        configuration = TableConfiguration(protocol, metadata, configuration.location)


# ----------------------------------------------------------------------------------------------------- checks
def _check_schema(configuration: TableConfiguration) -> None:
    mapped = is_active(configuration, Feature.COLUMN_MAPPING)
    check_columns(configuration.schema, mapped=mapped)
    resolve_partitioning(configuration.schema, configuration.partition_columns)


def _check_retentions(configuration: TableConfiguration, before: TableConfiguration | None) -> None:
    """Check that the log keeps tombstones as long as deleted files are kept."""
    properties = configuration.properties
    log, files = LOG_RETENTION.of(properties), DELETED_FILE_RETENTION.of(properties)
    unchanged = before is not None and (LOG_RETENTION.of(before.properties), files) == (
        log,
        DELETED_FILE_RETENTION.of(before.properties),
    )
    if log < files and not unchanged:
        raise InvalidOptionError(
            f"The table property {LOG_RETENTION.name} ({format_interval(log)}) must not be shorter than "
            f"{DELETED_FILE_RETENTION.name} ({format_interval(files)}). Change one of the two properties.",
            error_class="DELTA_INVALID_RETENTION",
            property=LOG_RETENTION.name,
        )


def _check_exclusions(configuration: TableConfiguration) -> None:
    active = {feature.name for name in active_features(configuration) if (feature := find_feature(name)) is not None}
    for name in sorted(active):
        excluded = sorted(active.intersection(known_feature(name).excludes))
        if excluded:
            raise InvalidOperationError(
                f"The features '{name}' and '{excluded[0]}' cannot be combined, and the table would use both. "
                "Enable one, and set the property that enables the other to false.",
                error_class="DELTA_FEATURES_EXCLUDE_EACH_OTHER",
                feature=name,
                excluded=tuple(excluded),
            )
