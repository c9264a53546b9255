"""The table features, one module each, discovered in this package.

To add a feature, add a module that declares one `TableFeature` named `FEATURE`; no other code changes. Code that
depends on one feature calls `is_supported` or `is_active`, which handle legacy versions and preview names, and names
the feature by a member of `Feature`.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Mapping
from contextlib import suppress
from enum import StrEnum
from functools import cache, lru_cache

from pyspark_delta.errors import DeltaError
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import TableFeature

__all__ = [
    "Feature",
    "active_features",
    "all_features",
    "find_feature",
    "finish_order",
    "is_active",
    "is_requested",
    "is_supported",
    "supported_features",
    "unsupported_in_use",
]


class Feature(StrEnum):
    """The features that code outside this package refers to; the values are their final names in the protocol."""

    APPEND_ONLY = "appendOnly"
    CATALOG_MANAGED = "catalogManaged"
    CHANGE_DATA_FEED = "changeDataFeed"
    CHECKPOINT_PROTECTION = "checkpointProtection"
    CLUSTERING = "clustering"
    COLUMN_MAPPING = "columnMapping"
    DELETION_VECTORS = "deletionVectors"
    DOMAIN_METADATA = "domainMetadata"
    ICEBERG_COMPAT_V1 = "icebergCompatV1"
    ICEBERG_COMPAT_V2 = "icebergCompatV2"
    ICEBERG_COMPAT_V3 = "icebergCompatV3"
    IN_COMMIT_TIMESTAMP = "inCommitTimestamp"
    ROW_TRACKING = "rowTracking"
    TYPE_WIDENING = "typeWidening"
    V2_CHECKPOINT = "v2Checkpoint"
    VACUUM_PROTOCOL_CHECK = "vacuumProtocolCheck"
    VARIANT_SHREDDING = "variantShredding"


_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@cache
def all_features() -> tuple[TableFeature, ...]:
    """Return every known feature, each after the features it requires, otherwise by name."""
    known = {feature.name: feature for feature in sorted(_discover(), key=lambda feature: feature.name)}
    ordered: dict[str, TableFeature] = {}

    def place(feature: TableFeature) -> None:
        if feature.name not in ordered:
            for name in feature.requires:
                place(known[name])
            ordered[feature.name] = feature

    for feature in known.values():
        place(feature)
    return tuple(ordered.values())


@lru_cache(maxsize=256)  # the name comes from the log and may be anything
def find_feature(name: str) -> TableFeature | None:
    """Return the feature with that final or preview name; None for an unknown one.

    If its module has its name (`rowTracking` in `row_tracking`), the others are not imported, which would take longer
    than opening a table.
    """
    return _named_like_its_module(name) or _by_name().get(name)


def is_supported(configuration: TableConfiguration, feature: Feature) -> bool:
    """True if the protocol lists the feature, by any of its names, or has versions that imply it (C231, C235). Use this
    for reading: files and commits may use the feature even if it is no longer active.
    """
    return _known(feature).listed_name(configuration) is not None


def is_active(configuration: TableConfiguration, feature: Feature) -> bool:
    """True if the protocol supports the feature and the metadata use it (C231).

    Use this for writing: the feature then changes what is written or refused.
    """
    return _known(feature).is_active(configuration)


def is_requested(configuration: TableConfiguration, feature: Feature) -> bool:
    """True if schema or properties use the feature, supported or not: changing to them enables it."""
    return _known(feature).is_requested(configuration)


def supported_features(configuration: TableConfiguration) -> frozenset[str]:
    """Return the features that the protocol lists, or implies by a legacy version, by its names for them (C231)."""
    implied = (feature.listed_name(configuration) for feature in all_features())
    return configuration.protocol.listed_features | {name for name in implied if name is not None}


def active_features(configuration: TableConfiguration) -> frozenset[str]:
    """Return the supported features that the metadata use (C231); unknown ones count as active."""
    return frozenset(
        name
        for name in supported_features(configuration)
        if (feature := find_feature(name)) is None or feature.is_active(configuration)
    )


def unsupported_in_use(configuration: TableConfiguration) -> tuple[TableFeature, ...]:
    """Return the features that schema or properties use and the protocol does not support (C227)."""
    found = []
    for feature in all_features():
        with suppress(DeltaError):  # an illegal property, or a schema that cannot be used
            if feature.is_requested(configuration) and feature.listed_name(configuration) is None:
                found.append(feature)
    return tuple(found)


def finish_order(configuration: TableConfiguration) -> tuple[TableFeature, ...]:
    """Return the known features of a table, each after those it requires: the order of calling hooks."""
    return tuple(feature for feature in all_features() if feature.listed_name(configuration) is not None)


@cache
def _known(feature: Feature) -> TableFeature:
    found = find_feature(feature)
    assert found is not None, feature
    return found


def _named_like_its_module(name: str) -> TableFeature | None:
    module = _WORD_START.sub("_", name).lower()
    if not name.isalnum() or all(info.name != module for info in pkgutil.iter_modules(__path__)):
        return None
    feature = getattr(importlib.import_module(f"{__name__}.{module}"), "FEATURE", None)
    return feature if isinstance(feature, TableFeature) and feature.name == name else None


@cache
def _by_name() -> Mapping[str, TableFeature]:
    return {name: feature for feature in all_features() for name in feature.names}


def _discover() -> list[TableFeature]:
    modules = (importlib.import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__))
    return [feature for module in modules if isinstance(feature := getattr(module, "FEATURE", None), TableFeature)]
