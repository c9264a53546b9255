"""The requirements of the catalog and of the protocol for a table created in a catalog (C449, C450)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark_delta.catalog.connections import known_table
from pyspark_delta.catalog.contract import StagingTable
from pyspark_delta.errors import InvalidOptionError
from pyspark_delta.features import find_feature
from pyspark_delta.protocol.catalog_table import CatalogTable
from pyspark_delta.protocol.configuration import CATALOG_MANAGED
from pyspark_delta.protocol.properties import ENABLE_IN_COMMIT_TIMESTAMPS, FEATURE_PREFIX

_ALWAYS = {ENABLE_IN_COMMIT_TIMESTAMPS.name: "true"}


@dataclass(frozen=True, slots=True)
class Creation:
    """The features that a new table supports in addition to those it uses, and its properties."""

    features: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)


def creation_of(table: CatalogTable | None, given: Mapping[str, str]) -> Creation:
    """Return the features and properties of a new table; `given` are the properties that the user requests.

    A table that is not created in a catalog gets only these. A catalog adds what it requires, and what it suggests
    unless the user sets the same property. Raises InvalidOptionError for a property that differs from the value that
    the catalog requires, and for one that the catalog cannot store.
    """
    found = known_table(table)
    if found is None or not isinstance(found[1], StagingTable):
        return Creation(properties=dict(given))
    staging = found[1]
    managed = {f"{FEATURE_PREFIX}{name}".casefold() for name in CATALOG_MANAGED}
    properties = {key: value for key, value in given.items() if key.casefold() not in managed}
    folded = {key.casefold(): (key, value) for key, value in properties.items()}
    for key, required in {**staging.required_properties, **_ALWAYS}.items():
        asked = folded.get(key.casefold())
        if asked is None:
            if required is not None:
                properties[key] = required
        elif required is not None and asked[1].casefold() != required.casefold():
            raise InvalidOptionError(
                f"The table property '{asked[0]}' is '{asked[1]}', but the catalog of {staging.name} requires "
                f"'{required}'. Omit the property.",
                property=asked[0],
                value=asked[1],
            )
    for key, suggested in staging.suggested_properties.items():
        if key.casefold() not in folded and suggested is not None:
            properties.setdefault(key, suggested)
    _check_lengths(staging, properties)
    suggested_features = {name for name in staging.suggested_features if _is_written(name)}
    return Creation(tuple(sorted({CATALOG_MANAGED[0], *staging.required_features, *suggested_features})), properties)


def _check_lengths(staging: StagingTable, properties: Mapping[str, str]) -> None:
    for key, value in properties.items():
        length, longest = max(len(key), len(value)), staging.longest_property
        if longest is not None and length > longest:
            raise InvalidOptionError(
                f"The table property '{key[:60]}' has {length} characters, and the catalog of {staging.name} stores at "
                f"most {longest}. Use a shorter one.",
                property=key[:60],
                length=length,
            )


def _is_written(name: str) -> bool:
    feature = find_feature(name)
    return feature is not None and not feature.write_unsupported_reason and not feature.read_unsupported_reason
