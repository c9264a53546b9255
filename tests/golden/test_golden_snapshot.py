"""Every golden table's log: version, protocol, files, transactions, domains and times against the expectations."""

from __future__ import annotations

import hashlib
import json
import warnings

import pytest
from tests.golden.catalogue import GoldenTable, parametrize

from pyspark_delta.errors import DeltaError, DeltaWarning
from pyspark_delta.schema.json import schema_to_json
from pyspark_delta.snapshot import Snapshot


def live_files(snapshot: Snapshot) -> list[str]:
    """The live files as the catalogue spells them: `path`, or `path|dvId`."""
    found = []
    for row in snapshot.files(("path", "deletion_vector")).to_pylist():
        vector = row["deletion_vector"]
        suffix = ""
        if vector is not None:
            offset = "" if vector["offset"] is None else f"@{vector['offset']}"
            suffix = f"|{vector['storage_type']}{vector['path_or_inline_dv']}{offset}"
        found.append(row["path"] + suffix)
    return sorted(found)


@parametrize("table", "log-only")
def test_snapshot_facts(table: GoldenTable) -> None:
    snapshot, expected = Snapshot.load(str(table.path)), table.expected
    assert snapshot.version == expected["latest_version"]
    files = live_files(snapshot)
    assert len(files) == expected["num_files"] == snapshot.num_files()
    assert hashlib.sha256("\n".join(files).encode()).hexdigest() == expected["live_files_sha256"]
    protocol = snapshot.protocol
    assert protocol.min_reader_version == expected["protocol"]["minReaderVersion"]
    assert protocol.min_writer_version == expected["protocol"]["minWriterVersion"]
    for found, name in ((protocol.reader_features, "readerFeatures"), (protocol.writer_features, "writerFeatures")):
        assert sorted(found or ()) == sorted(expected["protocol"].get(name) or ())
    assert dict(snapshot.properties) == expected["configuration"]
    assert list(snapshot.configuration.partition_columns) == expected["partition_columns"]
    if "schema_json" in expected:
        assert json.loads(schema_to_json(snapshot.schema)) == expected["schema_json"]


@parametrize("table", "log-only")
def test_transactions_and_domains(table: GoldenTable) -> None:
    snapshot, expected = Snapshot.load(str(table.path)), table.expected
    assert {app: t.version for app, t in snapshot.transactions().items()} == expected["set_transactions"]
    assert {name: d.configuration for name, d in snapshot.domains().items()} == expected["domain_metadata"]


@parametrize("table", "log-only")
def test_versions_and_times(table: GoldenTable) -> None:
    for version, expected in table.expected.get("versions", {}).items():
        if expected.get("num_files") is not None:
            assert len(live_files(Snapshot.load(str(table.path), version=int(version)))) == expected["num_files"]
    for version, time in table.expected.get("in_commit_timestamps", {}).items():
        snapshot = Snapshot.load(str(table.path), version=int(version))
        info = snapshot.commit_info()
        assert info is not None
        assert info.in_commit_timestamp == time
        if "inCommitTimestamp" in table.expected["active_features"]:
            assert snapshot.timestamp == time


# The checkpoint that its log begins with has no schema.
FIRST_VERSION_UNREADABLE = {"kernel-rs-hist/oussama_cdf"}


@parametrize("table", "log-only", only=lambda table: table.id not in FIRST_VERSION_UNREADABLE)
def test_updates_and_loaded_columns_give_the_same(table: GoldenTable) -> None:
    first = table.expected["first_available_version"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeltaWarning)
        earlier = Snapshot.load(str(table.path), version=first)
        for _ in range(3):
            live_files(earlier)
        earlier.transactions()
        earlier.domains()
        updated = earlier.update()
    latest = Snapshot.load(str(table.path))
    assert updated.version == latest.version
    assert live_files(updated) == live_files(latest)
    assert updated.transactions() == latest.transactions()
    assert updated.domains() == latest.domains()
    assert updated.protocol == latest.protocol
    assert updated.schema == latest.schema


# Their checksum files lack required fields, so they count as absent.
CHECKSUM_INCOMPLETE = {"delta-spark/dbr_8_0_non_generated_columns", "delta-spark/dbr_8_1_generated_columns"}


def _has_checksum(table: GoldenTable) -> bool:
    return (
        table.id not in CHECKSUM_INCOMPLETE
        and (table.path / "_delta_log" / f"{table.expected['latest_version']:020}.crc").exists()
    )


@parametrize("table", "log-only", only=_has_checksum)
def test_version_checksums_fit_the_log(table: GoldenTable) -> None:
    snapshot = Snapshot.load(str(table.path))
    assert snapshot.checksum() is not None
    # Transactions and domains that have expired, and engine-specific keys, may differ; counts must not.
    differing = [d for d in snapshot.checksum_differences() if d.startswith(("numFiles", "tableSizeBytes"))]
    assert differing == []


@parametrize("error")
def test_tables_that_must_not_open(table: GoldenTable) -> None:
    if table.expected["error"]["stage"] != "snapshot":
        assert Snapshot.load(str(table.path)).version >= 0
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeltaWarning)
        with pytest.raises(DeltaError) as raised:
            _ = Snapshot.load(str(table.path)).schema
    assert str(table.path) in raised.value.message
