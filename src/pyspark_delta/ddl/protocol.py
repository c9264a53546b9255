"""Change the protocol of a table: higher versions, more features (Protocol Evolution; C184-C191)."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from pyspark_delta.actions.model import Protocol
from pyspark_delta.ddl.change import TableChange, with_properties
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import Operation
from pyspark_delta.protocol.properties import MIN_READER_VERSION, MIN_WRITER_VERSION
from pyspark_delta.transaction.evolution import check_listing, evolve


def upgrade_protocol(configuration: TableConfiguration, reader_version: int, writer_version: int) -> TableChange | None:
    """Raise the versions to at least these; return None if the table already has them. A protocol is never lowered
    (C187).
    """
    before = configuration.protocol
    reader_version = max(reader_version, before.min_reader_version)
    writer_version = max(writer_version, before.min_writer_version)
    if (reader_version, writer_version) == (before.min_reader_version, before.min_writer_version):
        return None
    asked = {MIN_READER_VERSION.name: str(reader_version), MIN_WRITER_VERSION.name: str(writer_version)}
    return _upgrade(configuration, asked)


def add_feature(configuration: TableConfiguration, name: str) -> TableChange | None:
    """Support one feature, and those that it requires; return None if the table already supports it.

    Raises InvalidOperationError naming the nearest features for an unknown one.
    """
    check_listing(name)
    return _upgrade(configuration, {}, (name,))


def _upgrade(
    configuration: TableConfiguration, asked: Mapping[str, str], features: tuple[str, ...] = ()
) -> TableChange | None:
    metadata = with_properties(configuration.metadata, {**configuration.properties, **asked})
    protocol = evolve(configuration, metadata, features=features).protocol
    if protocol == configuration.protocol:
        return None
    operation = Operation("UPGRADE PROTOCOL", {"newProtocol": orjson.dumps(_json(protocol)).decode()})
    return TableChange(operation=operation, metadata=metadata, features=features)


def _json(protocol: Protocol) -> dict[str, object]:
    values: dict[str, object] = {
        "minReaderVersion": protocol.min_reader_version,
        "minWriterVersion": protocol.min_writer_version,
    }
    if protocol.reader_features is not None:
        values["readerFeatures"] = sorted(protocol.reader_features)
    if protocol.writer_features is not None:
        values["writerFeatures"] = sorted(protocol.writer_features)
    return values
