"""Protocols as sets of features: the lowest versions that support a set, and protocol upgrades (C225-C235).

A protocol with feature lists is used only if no pair of older versions implies exactly the same features.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark_delta.actions.model import Protocol
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.features import all_features, find_feature
from pyspark_delta.features.support import MAX_READER_VERSION, MAX_WRITER_VERSION
from pyspark_delta.protocol.feature import FeatureKind, TableFeature

_FEATURE_READER, _FEATURE_WRITER = 3, 7


def implied_features(reader: int, writer: int) -> frozenset[str]:
    """Return the features that a pair of versions implies without a list (C235); none from writer version 7 on."""
    return frozenset(feature.name for feature in all_features() if feature.is_implied(reader, writer))


def features_of(protocol: Protocol) -> frozenset[str]:
    """Return the features that a protocol lists or implies, including unknown ones, by the names it uses."""
    return protocol.listed_features | implied_features(protocol.min_reader_version, protocol.min_writer_version)


def weakest_protocol(names: Iterable[str]) -> Protocol:
    """Return the protocol of the lowest versions that supports exactly these features.

    Raises InvalidOperationError for a feature that is not known.
    """
    names = frozenset(names)
    known = [known_feature(name) for name in names]
    if all(feature.legacy_writer_version is not None for feature in known):
        reader = max((feature.legacy_reader_version or 1 for feature in known), default=1)
        writer = max((feature.legacy_writer_version or 1 for feature in known), default=1)
        if implied_features(reader, writer) == names:
            return Protocol(min_reader_version=reader, min_writer_version=writer)
    reader = max((_reader_version(feature) for feature in known), default=1)
    readers = (name for name in names if known_feature(name).kind is FeatureKind.READER_WRITER)
    return Protocol(
        min_reader_version=reader,
        min_writer_version=_FEATURE_WRITER,
        reader_features=frozenset(readers) if reader == _FEATURE_READER else None,
        writer_features=names,
    )


def with_features(protocol: Protocol | None, names: Iterable[str]) -> Protocol:
    """Return the protocol with the features and those that they require; the same one if it supports them already.

    None stands for a new table without other requirements. A preview name in the protocol counts as the feature. Raises
    InvalidOperationError for a feature that is not known.
    """
    before = features_of(protocol) if protocol is not None else frozenset[str]()
    after = _with_requirements(before, names)
    if protocol is not None and after == before:
        return protocol
    return weakest_protocol(after)


def with_versions(protocol: Protocol, reader: int, writer: int) -> Protocol:
    """Return the protocol raised to these versions: it gains the features that they imply, and never loses one.

    Versions (3, 7) imply nothing by themselves: features are added by name. Raises InvalidOperationError for versions
    that do not exist.
    """
    check_versions(reader, writer)
    return with_features(protocol, implied_features(reader, writer))


def check_versions(reader: int, writer: int) -> None:
    """Check that such protocol versions exist (C226). Raises InvalidOperationError."""
    if not (1 <= reader <= MAX_READER_VERSION and 1 <= writer <= MAX_WRITER_VERSION):
        raise InvalidOperationError(
            f"There is no protocol of reader version {reader} and writer version {writer}: reader versions go from 1 "
            f"to {MAX_READER_VERSION}, writer versions from 1 to {MAX_WRITER_VERSION}.",
            error_class="DELTA_INVALID_PROTOCOL_VERSION",
            min_reader_version=reader,
            min_writer_version=writer,
        )


def check_no_downgrade(before: Protocol, after: Protocol) -> None:
    """Check that a protocol keeps every feature of the one before it (C229). Raises InvalidOperationError."""
    lost = features_of(before) - features_of(after)
    if lost:
        raise InvalidOperationError(
            f"The protocol cannot be lowered: the table would lose {', '.join(sorted(lost))}, which existing files may "
            "use. Drop the feature first.",
            error_class="DELTA_INVALID_PROTOCOL_DOWNGRADE",
            features=tuple(sorted(lost)),
        )


def known_feature(name: str) -> TableFeature:
    """Return the feature with that name. Raises InvalidOperationError if there is none."""
    feature = find_feature(name)
    if feature is None:
        raise InvalidOperationError(
            f"The table feature '{name}' is unknown to this version. Known features are "
            f"{', '.join(sorted(known.name for known in all_features()))}.",
            error_class="DELTA_UNSUPPORTED_FEATURES_IN_CONFIG",
            feature=name,
        )
    return feature


def _with_requirements(supported: frozenset[str], names: Iterable[str]) -> frozenset[str]:
    found = set(supported)
    todo = list(names)
    while todo:
        name = todo.pop()
        feature = known_feature(name)
        if found.isdisjoint(feature.names):
            found.add(str(name))
        todo.extend(required for required in feature.requires if found.isdisjoint(known_feature(required).names))
    return frozenset(found)


def _reader_version(feature: TableFeature) -> int:
    if feature.kind is FeatureKind.WRITER:
        return 1
    return feature.legacy_reader_version or _FEATURE_READER
