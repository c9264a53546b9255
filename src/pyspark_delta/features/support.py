"""Check if this client may read or write a table, by versions and by features (C184-C191, C222-C226).

Reading requires only reader features; writer features never prevent it.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark_delta.actions.model import Protocol
from pyspark_delta.errors import AppendOnlyTableError, InvalidTableError, UnsupportedFeatureError, UnsupportedTableError
from pyspark_delta.features import Feature, find_feature, is_active, supported_features
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.feature import FeatureKind

MAX_READER_VERSION = 3
MAX_WRITER_VERSION = 7
_READER_FEATURES_VERSION = 3
_WRITER_FEATURES_VERSION = 7
_UNKNOWN = "This version does not know it: upgrade pyspark-delta, or use an engine that supports it."


def check_readable(configuration: TableConfiguration, location: str = "") -> None:
    """Check that this client may read the table. The schema is not checked.

    Raises UnsupportedTableError for an unsupported version or data files of another format than Parquet (C019),
    UnsupportedFeatureError naming each reader feature that is unknown or not supported, InvalidTableError for a
    protocol that is inconsistent.
    """
    protocol = configuration.protocol
    _check_reader_version(protocol, location)
    _refuse(_unreadable(protocol), "read", location)
    _check_provider(configuration.metadata.format_provider, location)


def check_writable(configuration: TableConfiguration, location: str = "") -> None:
    """Check that this client may add rows to the table, which includes reading it.

    Raises the errors of `check_readable`, and UnsupportedFeatureError naming each feature whose rules for writers are
    not supported, or are not supported while the metadata use it.
    """
    check_readable(configuration, location)
    protocol = configuration.protocol
    _check_writer_version(protocol, location)
    reasons = {}
    for name in sorted(supported_features(configuration)):
        feature = find_feature(name)
        if feature is None:
            reasons[name] = _UNKNOWN
        elif feature.hinders_writing(configuration):
            reasons[name] = feature.write_unsupported_reason
    _refuse(reasons, "write", location)
    _check_requirements(configuration, location)


def check_removable(configuration: TableConfiguration, operation: str) -> None:
    """Check that rows may be changed or removed, before anything is written (C376). Raises AppendOnlyTableError."""
    if is_active(configuration, Feature.APPEND_ONLY):
        raise AppendOnlyTableError(
            f"{operation} would change or remove rows, but the table property delta.appendOnly is true. Set it to "
            "false first, or only append rows."
        )


def check_known(configuration: TableConfiguration, location: str = "") -> None:
    """Check that every feature of a table is known: its log may then be rearranged, even if rows cannot be added.

    Raises the errors of `check_readable`, and UnsupportedFeatureError naming each unknown feature.
    """
    check_readable(configuration, location)
    _check_writer_version(configuration.protocol, location)
    unknown = dict.fromkeys(_unknown(supported_features(configuration)), _UNKNOWN)
    _refuse(unknown, "write", location)


def _check_provider(provider: str, location: str) -> None:
    if provider.lower() != "parquet":
        raise UnsupportedTableError(
            f"Cannot read the table{_at(location)}: its data files are of the format '{provider}', which only early "
            "Delta versions allowed. Only parquet is supported: rewrite the table with an engine that reads it.",
            location=location,
        )


def _check_reader_version(protocol: Protocol, location: str) -> None:
    reader, writer = protocol.min_reader_version, protocol.min_writer_version
    if reader < 1 or writer < 1:
        raise _contradiction(location, f"it has reader version {reader} and writer version {writer}, which begin at 1")
    if reader > MAX_READER_VERSION or (reader == _READER_FEATURES_VERSION and writer > MAX_WRITER_VERSION):
        raise _beyond_support(protocol, "read", location)
    if reader == _READER_FEATURES_VERSION:
        if writer < _WRITER_FEATURES_VERSION:
            raise _contradiction(location, f"reader version 3 needs writer version 7, found {writer}")
        if protocol.reader_features is None:
            raise _contradiction(location, "reader version 3 needs the list readerFeatures, which is absent")
    elif protocol.reader_features:  # an empty list means none, and checkpoints may hold one in place of null
        listed = ", ".join(sorted(protocol.reader_features))
        raise _contradiction(location, f"it lists readerFeatures ({listed}) at reader version {reader} instead of 3")
    _check_writer_lists(protocol, location)


def _check_writer_lists(protocol: Protocol, location: str) -> None:
    writer = protocol.min_writer_version
    if writer == _WRITER_FEATURES_VERSION and protocol.writer_features is None:
        raise _contradiction(location, "writer version 7 needs the list writerFeatures, which is absent")
    if writer < _WRITER_FEATURES_VERSION and protocol.writer_features:
        listed = ", ".join(sorted(protocol.writer_features))
        raise _contradiction(location, f"it lists writerFeatures ({listed}) at writer version {writer} instead of 7")


def _check_writer_version(protocol: Protocol, location: str) -> None:
    if protocol.min_writer_version > MAX_WRITER_VERSION:
        raise _beyond_support(protocol, "write", location)
    reader_only = (protocol.reader_features or frozenset()) - (protocol.writer_features or frozenset())
    if reader_only:
        listed = ", ".join(sorted(reader_only))
        raise _contradiction(location, f"readerFeatures lists features that writerFeatures lacks: {listed}")


def _check_requirements(configuration: TableConfiguration, location: str) -> None:
    supported = supported_features(configuration)
    for name in sorted(supported):
        feature = find_feature(name)
        if feature is None or name in feature.preview_names:
            continue  # the requirements of a preview were not final
        for required in feature.requires:
            needed = find_feature(required)
            if needed is not None and supported.isdisjoint(needed.names):
                raise _contradiction(location, f"the feature '{name}' needs '{required}', which is not supported")


def _unreadable(protocol: Protocol) -> dict[str, str]:
    """Return the listed features that prevent reading, with the reason.

    A reader-writer feature that only writerFeatures lists counts too: the table was written with it.
    """
    reasons = {}
    for name in sorted(protocol.reader_features or ()):
        feature = find_feature(name)
        if feature is None:
            reasons[name] = _UNKNOWN
        elif feature.read_unsupported_reason:
            reasons[name] = feature.read_unsupported_reason
    for name in sorted(protocol.writer_features or ()):
        feature = find_feature(name)
        if feature is not None and feature.kind is FeatureKind.READER_WRITER and feature.read_unsupported_reason:
            reasons[name] = feature.read_unsupported_reason
    return reasons


def _refuse(reasons: dict[str, str], operation: str, location: str) -> None:
    if reasons:
        advice = " ".join(dict.fromkeys(reasons.values()))
        raise UnsupportedFeatureError(reasons, operation, advice, location)


def _beyond_support(protocol: Protocol, operation: str, location: str) -> UnsupportedTableError:
    reader, writer = protocol.min_reader_version, protocol.min_writer_version
    unknown = (
        _unknown(protocol.reader_features or ()) if operation == "read" else _unknown(protocol.writer_features or ())
    )
    features = f", with the unknown features {', '.join(unknown)}" if unknown else ""
    return UnsupportedTableError(
        f"Cannot {operation} the table{_at(location)}: it needs reader version {reader} and writer version {writer}"
        f"{features}. This version of pyspark-delta supports reader versions up to {MAX_READER_VERSION} and writer "
        f"versions up to {MAX_WRITER_VERSION}. Upgrade pyspark-delta, or use an engine that supports the table.",
        error_class="DELTA_INVALID_PROTOCOL_VERSION",
        min_reader_version=reader,
        min_writer_version=writer,
        location=location,
    )


def _unknown(names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if find_feature(name) is None)


def _contradiction(location: str, what: str) -> InvalidTableError:
    return InvalidTableError(
        f"The protocol of the table{_at(location)} is inconsistent: {what}. "
        "The writer of the latest protocol action broke the rules; have it write a valid one.",
        error_class="DELTA_INVALID_PROTOCOL",
        location=location,
    )


def _at(location: str) -> str:
    return f" '{location}'" if location else ""
