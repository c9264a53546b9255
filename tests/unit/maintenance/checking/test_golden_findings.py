"""What the checker finds in tables that other engines wrote: nothing, or what is listed here with its reason."""

from __future__ import annotations

import pytest
from tests.golden.catalogue import GoldenTable, golden_tables

from pyspark_delta.errors import TableNotFoundError
from pyspark_delta.maintenance.checking import CheckLevel, CheckRequest, check_table

_NO_SCHEMA = "its metaData has no schemaString"
_NO_TIMES = "managed by a catalog, and without in-commit timestamps"

KNOWN: dict[str, dict[str, str]] = {
    "dat/iceberg_compat_v1": {"P01": "a protocol (3, 7) lists columnMapping only for writers"},
    "delta-bench/basic_catalog_managed": {"T01": "the second commit was made by hand, without its time"},
    "delta-golden/corrupted-last-checkpoint-kernel": {"K07": "the hint is empty"},
    "delta-golden/data-reader-absolute-paths-escaped-chars": {"L03": "a path climbs out of its directory"},
    "delta-golden/deltalog-commit-info": {"L03": _NO_SCHEMA},
    "delta-golden/deltalog-state-reconstruction-from-checkpoint-missing-metadata": {
        "K01": "the checkpoint has no metaData",
        "L03": _NO_SCHEMA,
        "P05": "there is no metaData",
    },
    "delta-golden/deltalog-state-reconstruction-from-checkpoint-missing-protocol": {
        "K03": "the checkpoint has a metaData without its required members",
        "L03": _NO_SCHEMA,
    },
    "delta-golden/versions-not-contiguous": {"L01": "version 1 is missing", "L03": _NO_SCHEMA},
    "delta-hist/flink-connector__test-partitioned-delta-table-initial-state": {
        "P05": "a partition column is not in the schema"
    },
    "delta-hist/truncated-delta-log": {"L10": "the log is kept for no time"},
    "delta-rs-err/table_d": {"P04": _NO_TIMES},
    "delta-rs-err/table_e": {"P04": _NO_TIMES},
    "delta-rs-err/table_f": {"P04": _NO_TIMES},
    "delta-rs-err/table_i": {"P04": _NO_TIMES},
    "delta-rs-hist/simple_table_missing_commit": {"L01": "version 2 is missing"},
    "delta-rs/issue_1374": {"S03": "deltalake rounded the minimum of a timestamp up"},
    "delta-rs/simple_table_features": {"P01": "a feature is listed for readers alone"},
    "kernel-rs-hist/oussama_cdf": {"K03": "the checkpoint has a metaData without its required members"},
    "kernel-rs-hist/timestamp-nanos": {"P03": "timestampNanos without timestampNtz"},
    "kernel-rs/compacted-log-files-table": {"K08": "the compactions both add and remove a file"},
}
WITHOUT_FILES = {
    "delta-spark/table-with-dv-large",
    "delta-spark/table-with-dv-small",
    "delta-rs-err/table_e",
    "delta-rs-err/table_f",
    "delta-rs-err/table_i",
}
"""Tables that were published without some of their files; so were those of the kind `log-only`."""

VACUUMED = {
    "dat/no_replay": 3,
    "delta-golden/log-replay-special-characters-a": 1,
    "delta-golden/snapshot-vacuumed": 5,
    "delta-hist/deltalog-getChanges-ict-enabled": 1,
    "delta-rs-hist/delta-0.8.0-special-partition": 1,
}
"""The oldest version that has all its files (T05), of tables that do not have those of earlier ones."""

TABLES = golden_tables()


@pytest.mark.parametrize("table", TABLES, ids=[table.id for table in TABLES])
def test_golden_tables_have_only_known_findings(table: GoldenTable) -> None:
    has_files = table.kind == "table" and table.id not in WITHOUT_FILES
    level: CheckLevel = "data" if has_files else "log"
    try:
        result = check_table(str(table.path), CheckRequest(level))
    except TableNotFoundError:
        assert table.id == "kernel-rs/crc-malformed"  # it has nothing but a checksum
        return
    found = {finding.id: str(finding) for finding in (*result.errors, *result.warnings)}
    assert set(found) - {"L09"} == set(KNOWN.get(table.id, {})), found  # times are those of copying
    (reach,) = [finding.message for finding in result.infos if finding.id == "T05"] or [None]
    oldest = VACUUMED.get(table.id)
    assert (reach is None) if oldest is None else f"can be read completely is {oldest}." in str(reach)
