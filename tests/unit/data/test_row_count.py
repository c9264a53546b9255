"""`Table.count`: from the log alone where it tells, from Parquet footers where it does not."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.synthetic_log import SyntheticLog, write_log
from deltalake import DeltaTable

from pyspark_delta.errors import DataFileError
from pyspark_delta.table import Table
from pyspark_delta.testing.table_builder import TableBuilder, add, deletion_vector, metadata, protocol, remove


@pytest.mark.parametrize("struct_stats", [False, True])
def test_as_deltalake_counts(tmp_path: Path, struct_stats: bool) -> None:
    write_log(tmp_path, SyntheticLog(3000, struct_stats=struct_stats, json_stats=not struct_stats))
    # The table has no data files: opening one would fail.
    assert Table.open(tmp_path).count() == DeltaTable(tmp_path).count() > 3_000_000


def test_c408_deleted_rows_are_not_counted_at_any_version(tmp_path: Path) -> None:
    builder = TableBuilder(tmp_path)
    features = ["deletionVectors"]
    marked = deletion_vector("ab^-aqEH.-t@S}K{vb[*k^")  # of cardinality 2
    builder.commit(
        0,
        [protocol(3, 7, features, features), metadata(), add("a", stats='{"numRecords":10}'), with_count("b", 5)],
    )
    builder.commit(1, [remove("a"), add("a", stats='{"numRecords":10}', deletionVector=marked)])
    builder.commit(2, [remove("b")])
    assert [Table.open(tmp_path, version=version).count() for version in range(3)] == [15, 13, 8]


@pytest.mark.parametrize(
    "stats",
    [None, "", "{}", "{", '{"numRecords":null}', '{"numRecords":-3}', '{"numRecords":"3"}', '{"minValues":{"id":1}}'],
)
def test_footers_tell_what_the_log_does_not(tmp_path: Path, stats: str | None) -> None:
    builder = TableBuilder(tmp_path)
    more = {} if stats is None else {"stats": stats}
    builder.commit(0, [protocol(), metadata(), with_count("known", 7), add("unknown", **more)])
    with pytest.raises(DataFileError, match="unknown"):
        Table.open(tmp_path).count()
    pq.write_table(pa.table({"id": [1, 2, 3]}), tmp_path / "unknown")
    assert Table.open(tmp_path).count() == 10  # `known` is never opened


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (['{"numRecords":0}', '{"numRecords":999999999999999999,"minValues":{}}'], 999999999999999999),
        (['{"numRecords":1000000000000000000}', '{"numRecords":1}'], 1000000000000000001),
        (['{"numRecords":7,"x":"}"}', '{ "numRecords" : 8 }'], 15),
        (['{"numRecords":7.0}', '{"minValues":{"numRecords":5},"numRecords":2}'], 9),
        (['{"numRecords":7e1}', '{"numRecords":1}'], 71),
        (['{"numRecords":7}', '{"numRecords":12}', '{"numRecords":345,"nullCount":{}}'], 364),
    ],
)
def test_any_spelling_of_the_number(tmp_path: Path, texts: list[str], expected: int) -> None:
    files = [add(str(number), stats=text) for number, text in enumerate(texts)]
    TableBuilder(tmp_path).commit(0, [protocol(), metadata(), *files])
    assert Table.open(tmp_path).count() == expected


def with_count(path: str, rows: int) -> object:
    return add(path, stats=f'{{"numRecords":{rows}}}')
