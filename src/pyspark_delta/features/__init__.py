"""The table features, one module each, found by looking into this package.

To add a feature, add a module that declares one `TableFeature` named `FEATURE`; nothing else has to know.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Mapping
from functools import cache, lru_cache

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import TableFeature

__all__ = ["active_features", "all_features", "find_feature", "finish_order", "listed_features", "supported_features"]


_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@cache
def all_features() -> tuple[TableFeature, ...]:
    """Every known feature, each after the features it requires, otherwise by name."""
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


@lru_cache(maxsize=256)  # logs may name anything
def find_feature(name: str) -> TableFeature | None:
    """The feature with that final or preview name; None for an unknown one.

    One whose module has its name (`rowTracking` in `row_tracking`) is found without importing the others, which takes
    longer than opening a table.
    """
    return _named_like_its_module(name) or _by_name().get(name)


def listed_features(configuration: TableConfiguration) -> frozenset[str]:
    """The names in either feature list of the protocol, unknown ones too."""
    protocol = configuration.protocol
    return (protocol.reader_features or frozenset()) | (protocol.writer_features or frozenset())


def supported_features(configuration: TableConfiguration) -> frozenset[str]:
    """The features that the protocol lists, or implies by a legacy version, by the names the protocol uses (C231)."""
    implied = (feature.listed_name(configuration) for feature in all_features())
    return listed_features(configuration) | {name for name in implied if name is not None}


def active_features(configuration: TableConfiguration) -> frozenset[str]:
    """The supported features that the metadata makes use of (C231); unknown ones count as active."""
    return frozenset(
        name
        for name in supported_features(configuration)
        if (feature := find_feature(name)) is None or feature.is_active(configuration)
    )


def finish_order(configuration: TableConfiguration) -> tuple[TableFeature, ...]:
    """The known features that a table supports, each after those it requires: the order in which hooks are called."""
    return tuple(feature for feature in all_features() if feature.listed_name(configuration) is not None)


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
