"""Which features can be dropped from a table, and the protocol without one (C229: no other client drops features)."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark_delta.actions.model import Protocol
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.features import Feature, all_features, find_feature, supported_features
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import TableFeature
from pyspark_delta.protocol.properties import find_property
from pyspark_delta.protocol.removal import FileTraces, Removal
from pyspark_delta.schema.traversal import fields_in
from pyspark_delta.transaction.column_rules import INVALID_CHARACTERS
from pyspark_delta.transaction.protocol_upgrade import features_of, weakest_protocol


@dataclass(frozen=True, slots=True)
class Drop:
    """A feature to drop: `names` are those that the table lists or implies.

    With `truncate`, versions that have traces of the feature are deleted before it is dropped.
    """

    feature: TableFeature
    removal: Removal
    names: frozenset[str]
    truncate: bool

    @property
    def is_protected(self) -> bool:
        """True if the history stays, and its checkpoints are protected."""
        return self.removal.protects_history and not self.truncate

    def protocol_after(self, protocol: Protocol) -> Protocol:
        """Return the protocol of the lowest versions that has every other feature, and those that the drop needs."""
        kept = features_of(protocol) - self.names
        return weakest_protocol(kept | {Feature.CHECKPOINT_PROTECTION.value} if self.is_protected else kept)


def find_drop(configuration: TableConfiguration, name: str, truncate: bool) -> Drop:
    """Return the feature to drop. Raises InvalidOperationError if it cannot be dropped from such a table."""
    feature = known_feature(name)
    removal = feature.removal
    if removal is None:
        raise _not_removable(feature)
    names = supported_features(configuration).intersection(feature.names)
    if not names:
        raise InvalidOperationError(
            f"The table does not support the feature '{name}', so there is nothing to drop. Its features are "
            f"{', '.join(sorted(supported_features(configuration))) or 'none'}.",
            error_class="DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT",
            sqlstate="55000",
            feature=name,
        )
    drop = Drop(feature, removal, names, truncate)
    _check_truncation(drop)
    _check_dependents(drop, configuration)
    feature.check_removal(configuration)
    if removal.files is FileTraces.PHYSICAL_NAMES:
        _check_names(configuration)
    return drop


def known_feature(name: str) -> TableFeature:
    """Return the feature with a name, in any case. Raises InvalidOperationError if there is none."""
    folded = name.casefold()
    found = find_feature(name) or next(
        (feature for feature in all_features() for known in feature.names if known.casefold() == folded), None
    )
    if found is None and find_property(name) is not None:
        raise InvalidOperationError(
            f"'{name}' is a table property, not a table feature. Unset the property, or name the feature.",
            error_class="DELTA_FEATURE_DROP_FEATURE_IS_DELTA_PROPERTY",
            sqlstate="42000",
            property=name,
        )
    if found is None:
        removable = sorted(feature.name for feature in all_features() if feature.removal is not None)
        raise InvalidOperationError(
            f"The feature '{name}' is unknown. Features that can be dropped are {', '.join(removable)}.",
            error_class="DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE",
            sqlstate="0AKDC",
            feature=name,
        )
    return found


def _not_removable(feature: TableFeature) -> InvalidOperationError:
    foreign = feature.read_unsupported_reason or feature.write_unsupported_reason
    if foreign or feature.name == Feature.CATALOG_MANAGED:
        advice = foreign or "The catalog of the table decides about it."
        return InvalidOperationError(
            f"pyspark-delta cannot drop the feature '{feature.name}'. {advice}",
            error_class="DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE",
            sqlstate="0AKDC",
            feature=feature.name,
        )
    return InvalidOperationError(
        f"The feature '{feature.name}' cannot be dropped from a table, because other engines may rely on it. Write the "
        "rows to a new table without it.",
        error_class="DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE",
        sqlstate="0AKDC",
        feature=feature.name,
    )


def _check_truncation(drop: Drop) -> None:
    removal = drop.removal
    if drop.truncate and not (removal.protects_history or removal.needs_truncation):
        raise InvalidOperationError(
            f"The history need not be truncated to drop the feature '{drop.feature.name}', because every client can "
            "read it. Drop it without truncating.",
            error_class="DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED",
            sqlstate="42000",
            feature=drop.feature.name,
        )
    if removal.needs_truncation and not drop.truncate:
        raise InvalidOperationError(
            f"The feature '{drop.feature.name}' protects versions that clients could misread. It can be dropped only "
            "with these versions: drop it with truncation of the history.",
            error_class="DELTA_FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION",
            sqlstate="55000",
            feature=drop.feature.name,
        )


def _check_names(configuration: TableConfiguration) -> None:
    """Check that names of columns are possible without column mapping."""
    wrong = [field.name for field in fields_in(configuration.schema) if set(field.name) & set(INVALID_CHARACTERS)]
    if wrong:
        raise InvalidOperationError(
            f"The names of the columns {', '.join(repr(name) for name in wrong)} need column mapping, because they "
            "contain one of ' ,;{}()\\n\\t='. Rename these columns first.",
            error_class="DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING",
            sqlstate="42K05",
            columns=tuple(wrong),
        )


def _check_dependents(drop: Drop, configuration: TableConfiguration) -> None:
    others = sorted(
        name
        for name in supported_features(configuration)
        if (other := find_feature(name)) is not None and drop.feature.name in other.requires
    )
    if others:
        raise InvalidOperationError(
            f"The feature '{drop.feature.name}' cannot be dropped, because the table supports features that need it: "
            f"{', '.join(others)}. Drop these first.",
            error_class="DELTA_FEATURE_DROP_DEPENDENT_FEATURE",
            sqlstate="55000",
            feature=drop.feature.name,
            dependent=tuple(others),
        )
