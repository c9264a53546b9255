"""Checks of what a table declares: protocol, features, properties, schema, domains (P01 to P11, P13).

The rules are those that the features themselves enforce for writers of this package.
"""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from pyspark_delta.actions.model import DomainMetadata, Protocol
from pyspark_delta.errors import DeltaError, UnsupportedTableError
from pyspark_delta.features import (
    Feature,
    all_features,
    find_feature,
    is_active,
    is_supported,
    supported_features,
    unsupported_in_use,
)
from pyspark_delta.maintenance.checking.catalogue import REQUIRED_FEATURES, Severity
from pyspark_delta.maintenance.checking.findings import Findings
from pyspark_delta.maintenance.checking.state import TableState
from pyspark_delta.protocol.clustering import DOMAIN as CLUSTERING
from pyspark_delta.protocol.clustering import clustering_paths
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import FeatureKind, TableFeature
from pyspark_delta.protocol.properties import (
    COLUMN_MAPPING_MAX_ID,
    MATERIALIZED_ROW_COMMIT_VERSION,
    MATERIALIZED_ROW_ID,
    find_property,
    near_property_names,
)
from pyspark_delta.schema.column_ids import all_ids
from pyspark_delta.schema.column_mapping import mapping_mode, physical_schema
from pyspark_delta.schema.traversal import fields_in
from pyspark_delta.schema.types import VARIANT, ArrayType, MapType, StructType
from pyspark_delta.schema.widening import TYPE_CHANGES, check_type_changes

_READER_LIST, _WRITER_LIST = 3, 7
_MOST_CLUSTERED = 4
OF_SCHEMA = "P05"
ROW_TRACKING = "delta.rowTracking"
_SYSTEM_DOMAINS = {
    CLUSTERING: ("clusteringColumns",),
    ROW_TRACKING: ("rowIdHighWaterMark", "highWaterMark"),  # the second one is that of the specification (C332)
}


def check_declaration(state: TableState, findings: Findings) -> None:
    """Check protocol, metadata and domains of the newest version."""
    configuration, protocol = state.configuration, state.protocol
    if protocol is not None:
        _check_protocol(protocol, findings)
    if configuration is None:
        missing = "protocol" if protocol is None else "metaData"
        findings.add("P01" if protocol is None else "P05", f"The log has no {missing} action.", version=state.version)
        return
    _check_requirements(configuration, findings)
    _check_properties(configuration, findings)
    if not _check_schema(configuration, findings):
        return
    _check_use(configuration, findings)
    _check_features(configuration, findings)
    _check_row_id_columns(configuration, findings)
    _check_clustering(configuration, state.live_domains, findings)
    _check_domains(configuration, state.domains, findings)


def _check_protocol(protocol: Protocol, findings: Findings) -> None:
    reader, writer = protocol.min_reader_version, protocol.min_writer_version
    lists = protocol.reader_features, protocol.writer_features
    problems = []
    if reader < 1 or writer < 1:
        problems.append(f"versions begin at 1, found reader version {reader} and writer version {writer}")
    if reader == _READER_LIST and writer < _WRITER_LIST:
        problems.append(f"reader version 3 needs writer version 7, found {writer}")
    for name, listed, version, least in (
        ("readerFeatures", lists[0], reader, _READER_LIST),
        ("writerFeatures", lists[1], writer, _WRITER_LIST),
    ):
        if version == least and listed is None:
            problems.append(f"version {version} needs the list {name}, which is absent")
        elif version < least and listed:
            problems.append(f"{name} ({', '.join(sorted(listed))}) is listed at version {version} instead of {least}")
    only_read = (lists[0] or frozenset()) - (lists[1] or frozenset())
    if only_read:
        problems.append(f"readerFeatures has {', '.join(sorted(only_read))}, which writerFeatures lacks")
    for name in sorted((lists[1] or frozenset()) - (lists[0] or frozenset())):
        feature = find_feature(name)
        if feature is not None and feature.kind is FeatureKind.READER_WRITER and reader == _READER_LIST:
            problems.append(f"{name} concerns readers, and readerFeatures lacks it")
    for problem in problems:
        findings.add("P01", f"The protocol is inconsistent: {problem}.")


def _check_requirements(configuration: TableConfiguration, findings: Findings) -> None:
    supported = supported_features(configuration)
    for name in sorted(supported):
        feature = find_feature(name)
        if feature is None or name in feature.preview_names:
            continue  # the requirements of a preview were not final
        for required in feature.requires:
            needed = find_feature(required)
            if needed is not None and supported.isdisjoint(needed.names):
                findings.add("P03", f"The feature {name} needs {required}, which the protocol does not list.")


def _check_use(configuration: TableConfiguration, findings: Findings) -> None:
    """Check that schema and properties use only features that the protocol supports (P02)."""
    for feature in unsupported_in_use(configuration):
        findings.add(
            "P02",
            f"Schema or properties use {feature.name}, which the protocol does not support.",
            severity=_severity_of_use(feature),
            repair=REQUIRED_FEATURES if feature.declaration_check == OF_SCHEMA else None,
        )


def _severity_of_use(feature: TableFeature) -> Severity:
    """Return how bad it is that a feature is used without support: otherwise writers and readers ignore it (C231)."""
    if feature.declaration_check == OF_SCHEMA:
        return Severity.ERROR  # a type that readers may not know
    return Severity.WARNING if feature.kind is FeatureKind.READER_WRITER else Severity.INFO


def _check_properties(configuration: TableConfiguration, findings: Findings) -> None:
    for name, value in configuration.properties.items():
        known = find_property(name)
        if known is not None:
            try:
                known.parse(value)
            except ValueError as error:
                findings.add("P04", f"The table property '{name}' has an illegal value: {error}.")
        elif name.casefold().startswith("delta.") and not _is_open(name) and (near := near_property_names(name)):
            findings.add(
                "P04",
                f"The table property '{name}' is not known; '{near[0]}' is.",
                severity=Severity.INFO,
                advice="Unset it if it is misspelled; an unknown property has no effect.",
            )


def _is_open(name: str) -> bool:
    return name.casefold().startswith(("delta.constraints.", "delta.feature.", "delta.universalformat."))


def _check_schema(configuration: TableConfiguration, findings: Findings) -> bool:
    """Check the schema (P05) and the names of mapped columns (P06); return True if it can be used."""
    try:
        schema = configuration.schema
    except UnsupportedTableError as error:
        findings.skip(error.message)  # a type that this client does not know
        return False
    except (DeltaError, RecursionError) as error:
        findings.add("P05", _sentence(error))
        return False
    try:
        physical_schema(schema, mapping_mode(configuration))
    except DeltaError as error:
        findings.add("P06", error.message, repair="")
        return False
    partitions = configuration.partition_columns
    if len(set(partitions)) != len(partitions):
        findings.add("P05", f"The partition columns name a column twice: {', '.join(partitions)}.")
    if partitions and len(partitions) == len(schema):
        findings.add("P05", "All columns are partition columns, so that files have none.", severity=Severity.WARNING)
    for name in partitions:
        field = schema.find(name)
        if field is not None and isinstance(field.type, StructType | ArrayType | MapType):
            findings.add("P05", f"The partition column '{name}' is of the nested type {field.type}.")
    return True


def _check_features(configuration: TableConfiguration, findings: Findings) -> None:
    """Check the rules that supported features set for schema and properties."""
    for feature in all_features():
        id_ = feature.declaration_check
        try:
            if feature.is_active(configuration):
                feature.validate(configuration)
                for other in feature.excludes:
                    excluded = find_feature(other)
                    if excluded is not None and excluded.is_active(configuration):
                        findings.add("P04", f"{feature.name} and {other} are both active, and exclude each other.")
        except (DeltaError, RecursionError) as error:
            findings.add(id_, _sentence(error), repair="" if id_ != "P06" or not _is_behind(configuration) else None)
    if not _is_active(configuration, Feature.TYPE_WIDENING):
        _check_changes(configuration, findings)
    if VARIANT in _partition_types(configuration):
        findings.add("P05", "A partition column is of the type variant.")


def _partition_types(configuration: TableConfiguration) -> list[object]:
    found = (configuration.schema.find(name) for name in configuration.partition_columns)
    return [field.type for field in found if field is not None]


def _check_changes(configuration: TableConfiguration, findings: Findings) -> None:
    """Check recorded type changes where the feature is not active any more: old files may still need them."""
    if not any(TYPE_CHANGES in field.metadata for field in fields_in(configuration.schema)):
        return
    try:
        check_type_changes(configuration.schema)
    except DeltaError as error:
        findings.add("P11", error.message)


def _is_behind(configuration: TableConfiguration) -> bool:
    """True if the largest column id is below one that is in use, which can be repaired."""
    try:
        return COLUMN_MAPPING_MAX_ID.of(configuration.properties) < max(all_ids(configuration.schema), default=0)
    except DeltaError:
        return False


def _check_row_id_columns(configuration: TableConfiguration, findings: Findings) -> None:
    active = _is_active(configuration, Feature.ROW_TRACKING)
    for column in (MATERIALIZED_ROW_ID, MATERIALIZED_ROW_COMMIT_VERSION):
        if active and not column.of(configuration.properties):
            findings.add("R05", f"Row tracking is enabled, and the property '{column.name}' is not set.")


# ----------------------------------------------------------------------------------------------------------- domains
def _check_clustering(
    configuration: TableConfiguration, domains: Mapping[str, DomainMetadata], findings: Findings
) -> None:
    paths = clustering_paths(domains)
    if not paths:
        return
    if configuration.partition_columns:
        findings.add("P09", "The table is both clustered and partitioned.", repair="")
    if len(paths) > _MOST_CLUSTERED:
        findings.add("P09", f"The table has {len(paths)} clustering columns, and four are the most.", repair="")
    schema = physical_schema(configuration.schema, mapping_mode(configuration))
    for path in paths:
        if not column_exists(schema, path):
            findings.add("P09", f"The clustering column '{'.'.join(path)}' is not in the table.")


def column_exists(schema: StructType, path: tuple[str, ...]) -> bool:
    """Return True if a schema has a column at a path of names."""
    current: object = schema
    for name in path:
        field = current.find(name) if isinstance(current, StructType) else None
        if field is None:
            return False
        current = field.type
    return True


def _check_domains(
    configuration: TableConfiguration, domains: Mapping[str, DomainMetadata], findings: Findings
) -> None:
    live = [name for name, domain in domains.items() if not domain.removed]
    if live and not is_supported(configuration, Feature.DOMAIN_METADATA):
        findings.add(
            "P13",
            f"The log has metadata domains, such as '{live[0]}', and the protocol does not support them.",
            repair=REQUIRED_FEATURES,
        )
    for name, members in _SYSTEM_DOMAINS.items():
        domain = domains.get(name)
        if domain is None or domain.removed:
            continue
        try:
            value = orjson.loads(domain.configuration)
        except orjson.JSONDecodeError as error:
            findings.add("P13", f"The metadata domain '{name}' is not valid JSON: {error}.")
            continue
        if not isinstance(value, dict) or value.keys().isdisjoint(members):
            findings.add("P13", f"The metadata domain '{name}' has no member '{members[0]}'.")


def _is_active(configuration: TableConfiguration, feature: Feature) -> bool:
    """Return True if a feature is active; False if a property does not say."""
    try:
        return is_active(configuration, feature)
    except DeltaError:
        return False


def _sentence(error: Exception) -> str:
    return error.message if isinstance(error, DeltaError) else "The schema is nested too deeply."
