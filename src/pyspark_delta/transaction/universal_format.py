"""Universal Format: what a table must declare for formats whose metadata is written after each commit."""

from __future__ import annotations

import warnings
from dataclasses import replace

from pyspark_delta.errors import DeltaWarning, InvalidOperationError
from pyspark_delta.features import Feature, is_active
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.properties import ENABLE_DELETION_VECTORS, UNIVERSAL_FORMATS

_COMPATIBLE = (Feature.ICEBERG_COMPAT_V1, Feature.ICEBERG_COMPAT_V2, Feature.ICEBERG_COMPAT_V3)


def with_valid_formats(configuration: TableConfiguration, before: TableConfiguration | None) -> TableConfiguration:
    """Return the configuration with formats whose rules it keeps.

    A change that disables Iceberg compatibility also removes the format `iceberg`, with a warning. Raises
    InvalidOperationError for another change to a table that is not as its formats require. A table that another writer
    has made so can still be changed.
    """
    broken = _broken_rules(configuration)
    if before is not None:
        broken = {name: rule for name, rule in broken.items() if name not in _broken_rules(before)}
        if "iceberg" in broken and _has_compatibility(before):
            del broken["iceberg"]
            configuration = _without_iceberg(configuration)
    for name, rule in broken.items():
        raise InvalidOperationError(
            f"The table property {UNIVERSAL_FORMATS.name} has the format {name}, which {rule} Nothing was written.",
            error_class="DELTA_UNIVERSAL_FORMAT_VIOLATION",
            sqlstate="KD00E",
            format=name,
        )
    return configuration


def _broken_rules(configuration: TableConfiguration) -> dict[str, str]:
    """Return by format the rule that a table does not keep, and what to do."""
    formats, broken = _formats(configuration), {}
    if "iceberg" in formats and not _has_compatibility(configuration):
        broken["iceberg"] = "requires Iceberg compatibility. Set delta.enableIcebergCompatV2 to true as well."
    if "hudi" in formats and is_active(configuration, Feature.DELETION_VECTORS):
        broken["hudi"] = f"does not allow deletion vectors. Set {ENABLE_DELETION_VECTORS.name} to false."
    return broken


def _formats(configuration: TableConfiguration) -> list[str]:
    return UNIVERSAL_FORMATS.of(configuration.properties).split(",")


def _has_compatibility(configuration: TableConfiguration) -> bool:
    return any(is_active(configuration, feature) for feature in _COMPATIBLE)


def _without_iceberg(configuration: TableConfiguration) -> TableConfiguration:
    name = UNIVERSAL_FORMATS.name
    left = ",".join(one for one in _formats(configuration) if one != "iceberg")
    properties = {k: v for k, v in configuration.properties.items() if k.casefold() != name.casefold()}
    if left:
        properties[name] = left
    text = f"The format iceberg is removed from {name}: it requires Iceberg compatibility, which the "
    warnings.warn(DeltaWarning(f"{text}table no longer has."), stacklevel=2)
    return replace(configuration, metadata=replace(configuration.metadata, configuration=properties))
