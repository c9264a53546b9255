"""Copied row groups: equal to encoded ones for every reader, refused where they would not be, never damaged ones."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable as PeerTable
from deltalake import write_deltalake
from tests.lengths import length
from tests.rows_of_all_types import make, rows

from pyspark_delta.data.row_group_copy import AssembledFile, CopySource, read_footer
from pyspark_delta.data.row_group_rules import CopyRules, LargeRowGroups, copy_rules
from pyspark_delta.data.writer import FileLayout, WriteContext
from pyspark_delta.errors import DataFileError
from pyspark_delta.parquet import pages
from pyspark_delta.table import Table
from pyspark_delta.transaction.write_plan import FileOptions, write_context


def rules_of(context: WriteContext, rows: int = 1, **asked: Any) -> CopyRules:
    return copy_rules(context, large=LargeRowGroups(1 << 60, rows), **asked)


def context_of(table: Table) -> WriteContext:
    return write_context(table.snapshot.location, table.snapshot.configuration, FileOptions())


def sources(table: Table) -> list[CopySource]:
    found = table.snapshot.files(("path", "size", "stats")).to_pylist()
    places = [f"{table.snapshot.location}/{file['path']}" for file in found]
    return [
        CopySource(place, read_footer(place, file["size"], None), file["stats"])
        for place, file in zip(places, found, strict=True)
    ]


def by_id(rows_of: pa.Table) -> list[dict[str, Any]]:
    """The rows in their order, with NaN as text, which equals itself."""
    texts = [{name: str(value) for name, value in row.items()} for row in rows_of.to_pylist()]
    return sorted(texts, key=lambda row: int(row["id"]))


def replaced(table: Table, *parts: Any) -> Path:
    """Replace the files of a table by one that is assembled of sources and of rows; return it."""
    context = context_of(table)
    file = AssembledFile(context, FileLayout(context), (), 0, 0)
    for part in parts:
        if isinstance(part, CopySource):
            file.copy(part)
        else:
            for batch in part.to_batches():
                file.add(batch)
    file.end()
    written = file.publish()
    removes = [
        {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": False}}
        for path in table.snapshot.files(("path",))["path"].to_pylist()
    ]
    add = {
        "path": written.path,
        "partitionValues": {},
        "size": written.size,
        "modificationTime": 1,
        "dataChange": False,
        "stats": written.stats,
    }
    assert written.size == Path(file.location).stat().st_size
    log = Path(table.snapshot.location, "_delta_log", f"{table.version + 1:020}.json")
    log.write_text("\n".join(json.dumps(action) for action in [*removes, {"add": add}]))
    return Path(file.location)


@pytest.mark.parametrize("mapping", ["none", "name", "id"])
@pytest.mark.parametrize("version", ["1.0.0", "2.12.0"])
def test_copied_row_groups_are_read_by_every_engine(tmp_path: Path, mapping: str, version: str) -> None:
    path = tmp_path / "t"
    parts = rows(0, 2000), rows(5000, 700), rows(9000, 3)
    properties = {"delta.columnMapping.mode": mapping, "delta.parquet.format.version": version}
    table = make(path, *parts, **properties)
    expected = table.scan().to_arrow()
    one, two, _ = sources(table)
    encoded = table.scan(where="id >= 9000").to_arrow()
    file = replaced(table, one, encoded, two)
    footer = read_footer(str(file), file.stat().st_size, None)
    assert [group.num_rows for group in footer.row_groups] == [2000, 3, 700]
    assert rules_of(context_of(table)).reason(footer) is None
    found = Table.open(path)
    assert by_id(found.scan().to_arrow()) == by_id(expected)
    assert found.scan(where="id between 5100 and 5200").to_arrow().num_rows == 101
    assert found.scan(where="d > 1e9").to_arrow().num_rows == expected.filter(pa.compute.is_nan(expected["d"])).num_rows
    if mapping == "none":
        in_order = pa.concat_tables([expected.slice(0, 2000), encoded, expected.slice(2000, 700)])
        plain = pq.read_table(file)
        assert by_id(plain) == by_id(in_order)
        assert plain["id"].to_pylist() == in_order["id"].to_pylist()
        assert pl.read_parquet(file)["id"].to_list() == in_order["id"].to_pylist()
        assert pl.scan_parquet(file).filter(pl.col("id") > 8999).collect().height == 3
        for query in ("count(*), sum(id), count(s), max(y)", "count(distinct t), sum(len(l)), sum(small)"):
            wanted = duckdb.sql(f"select {query} from expected").fetchall()
            assert duckdb.sql(f"select {query} from '{file}'").fetchall() == wanted
        assert duckdb.sql(f"select count(*) from '{file}' where id between 5100 and 5200").fetchall() == [(101,)]
        peer = PeerTable(str(path)).to_pyarrow_table()
        assert by_id(peer.select(["id", "s", "t"])) == by_id(expected.select(["id", "s", "t"]))


def test_row_groups_of_other_writers_are_copied(tmp_path: Path) -> None:
    """parquet-rs, with page index; the answer is that of the file before."""
    data = pa.table({"id": pa.array(range(5000)), "s": [f"v{i % 9}" for i in range(5000)]})
    write_deltalake(str(tmp_path), data)
    write_deltalake(str(tmp_path), data.slice(0, 50), mode="append")
    table = Table.open(tmp_path)
    context, found = context_of(table), sources(table)
    assert {rules_of(context).reason(one.footer) for one in found} == {None}
    large = max(found, key=lambda one: one.footer.num_rows)
    file = replaced(table, large, data.slice(0, 50))
    assert pq.read_table(file).equals(pa.concat_tables([data, data.slice(0, 50)]).combine_chunks())
    assert PeerTable(str(tmp_path)).to_pyarrow_table().num_rows == 5050


def test_references_to_places_in_the_old_file_are_dropped(tmp_path: Path) -> None:
    table = make(tmp_path / "t", [{"id": i, "s": f"v{i}"} for i in range(100)], columns="id BIGINT, s STRING")
    (source,) = sources(table)
    pq.write_table(
        pq.read_table(source.location),
        source.location,
        write_page_index=True,
        bloom_filter_options={"s": {"ndv": 100}},
        compression="zstd",
        store_schema=False,
    )
    before = pq.read_metadata(source.location).row_group(0).column(1)
    assert before.has_column_index
    size = Path(source.location).stat().st_size
    file = replaced(table, replace(source, footer=read_footer(source.location, size, None)))
    after = pq.read_metadata(file).row_group(0).column(1)
    assert not after.has_column_index
    assert not after.has_offset_index
    assert after.bloom_filter_offset is None if hasattr(after, "bloom_filter_offset") else True
    assert pq.read_table(file).equals(pq.read_table(source.location))


# ----------------------------------------------------------------------------------------------------------- rules
PLAIN = pa.schema([pa.field("id", pa.int64()), pa.field("t", pa.timestamp("us", "UTC"))])
DATA = pa.table({"id": [1, 2, None], "t": pa.array([0, 1000, 2000], pa.timestamp("us", "UTC"))}, PLAIN)
USUAL: dict[str, Any] = {"compression": "zstd", "store_schema": False, "version": "1.0"}
PLAIN_CONTEXT = "id BIGINT, t TIMESTAMP"


def field_ids(schema: pa.Schema) -> pa.Schema:
    return pa.schema([f.with_metadata({"PARQUET:field_id": str(i)}) for i, f in enumerate(schema, 1)])


REFUSED: dict[str, tuple[pa.Table, dict[str, Any], dict[str, Any], str]] = {
    "codec": (DATA, {"compression": "snappy"}, {"compression": "zstd"}, "another codec"),
    "pages": (DATA, {"data_page_version": "2.0"}, {}, "another version"),
    "int96": (DATA, {"use_deprecated_int96_timestamps": True}, {}, "schema"),
    "order": (DATA.select(["t", "id"]), {}, {}, "schema"),
    "missing": (DATA.select(["id"]), {}, {}, "schema"),
    "type": (DATA.set_column(0, "id", DATA["id"].cast(pa.int32())), {}, {}, "schema"),
    "zone": (DATA.set_column(1, "t", DATA["t"].cast(pa.timestamp("us"))), {}, {}, "schema"),
    "unit": (DATA.set_column(1, "t", DATA["t"].cast(pa.timestamp("ms", "UTC"))), {}, {}, "schema"),
    "ids": (DATA.cast(field_ids(PLAIN)), {}, {}, "schema"),
    "required": (
        DATA.slice(0, 2).cast(pa.schema([PLAIN.field(0).with_nullable(False), PLAIN.field(1)])),
        {},
        {},
        "schema",
    ),
    "small": (DATA, {}, {"rows": 4}, "small"),
    "nulls": (DATA, {}, {"never_null": ["id"]}, "row ids"),
}


def footer_of(path: Path) -> Any:
    return read_footer(str(path), path.stat().st_size, None)


@pytest.mark.parametrize("case", REFUSED)
def test_what_encoding_would_change_is_refused(tmp_path: Path, case: str) -> None:
    table, options, asked, reason = REFUSED[case]
    context = context_of(Table.create(tmp_path / "t", PLAIN_CONTEXT))
    pq.write_table(DATA, tmp_path / "usual", **USUAL)
    pq.write_table(table, tmp_path / "unusual", **{**USUAL, **options})
    if case not in ("small", "nulls"):
        assert rules_of(context, **asked).reason(footer_of(tmp_path / "usual")) is None
    assert reason in (rules_of(context, **asked).reason(footer_of(tmp_path / "unusual")) or "")


def rules_and_footer(tmp_path: Path) -> tuple[CopyRules, Any]:
    context = context_of(Table.create(tmp_path / "t", PLAIN_CONTEXT))
    pq.write_table(DATA, tmp_path / "usual", **USUAL)
    return rules_of(context), footer_of(tmp_path / "usual")


@pytest.mark.parametrize(
    ("writer", "is_known"),
    [
        ("parquet-mr version 1.13.1 (build db4183109d5b734ec5930d870cdae161e408ddba)", True),
        ("parquet-mr version 1.10.0-databricks", True),
        ("parquet-mr version 1.8.1 (build x)", False),
        ("parquet-mr compatible Photon version 0.2", False),
        ("parquet-mr", False),
        ("parquet-cpp-arrow version 26.0.1", True),
        ("parquet-cpp version 1.2.0", False),
        ("parquet-rs version 56.2.0", True),
        ("delta-rs version py-1.6.6", True),
        ("delta-rs version 0.10.0", False),
        ("impala version 2.2.0", False),
        ("", False),
    ],
)
def test_only_writers_with_right_statistics_are_copied(tmp_path: Path, writer: str, is_known: bool) -> None:
    rules, footer = rules_and_footer(tmp_path)
    assert (rules.reason(replace(footer, created_by=writer)) is None) is is_known


def test_other_calendars_and_orders_are_refused(tmp_path: Path) -> None:
    rules, footer = rules_and_footer(tmp_path)
    assert rules.reason(replace(footer, key_values={b"org.apache.spark.version": b"3.5.0"})) is None
    assert "calendar" in (rules.reason(replace(footer, key_values={b"org.apache.spark.version": b"2.4.0"})) or "")
    assert "statistics" in (rules.reason(replace(footer, has_orders=False)) or "")


def test_int96_is_copied_where_the_table_may_have_it(tmp_path: Path) -> None:
    """As Spark writes instants by default; such files go together, not with encoded rows."""
    table = make(tmp_path / "t", columns=PLAIN_CONTEXT)
    context = context_of(table)
    pq.write_table(DATA, tmp_path / "x", **USUAL, use_deprecated_int96_timestamps=True)
    footer = footer_of(tmp_path / "x")
    assert rules_of(context, allows_int96=True).reason(footer) is None
    file = replaced(table, *[CopySource(str(tmp_path / "x"), footer, '{"numRecords":3}')] * 2)
    assert Table.open(tmp_path / "t").scan().to_arrow().to_pylist() == DATA.to_pylist() * 2
    assert pq.ParquetFile(file).schema.column(1).physical_type == "INT96"


def test_a_small_row_group_at_the_end_does_not_matter(tmp_path: Path) -> None:
    data = pa.table({"id": pa.array(range(1001)), "t": pa.nulls(1001, PLAIN.field(1).type)})
    context = context_of(Table.create(tmp_path / "t", PLAIN_CONTEXT))
    for size, is_copied in ((1000, True), (10, False)):
        pq.write_table(data, tmp_path / "x", row_group_size=size, **USUAL)
        assert (rules_of(context, 500).reason(footer_of(tmp_path / "x")) is None) is is_copied


# ---------------------------------------------------------------------------------------------------------- damage
@cache
def small_file(folder: Path) -> tuple[Table, CopySource, bytes]:
    table = make(folder / "t", rows(0, 60))
    (source,) = sources(table)
    return table, source, Path(source.location).read_bytes()


def flip(rng: random.Random, data: bytearray, begin: int) -> None:
    data[rng.randrange(begin, len(data))] ^= 1 << rng.randrange(8)


def scramble(rng: random.Random, data: bytearray, begin: int) -> None:
    at = rng.randrange(begin, len(data))
    data[at : at + 8] = rng.randbytes(min(8, len(data) - at))


def cut_out(rng: random.Random, data: bytearray, begin: int) -> None:
    at = rng.randrange(begin, len(data))
    del data[at : at + rng.randrange(1, 30)]


def cut_off(rng: random.Random, data: bytearray, begin: int) -> None:
    del data[rng.randrange(begin, len(data)) :]


MUTATIONS: list[Callable[[random.Random, bytearray, int], None]] = [flip, flip, flip, scramble, cut_out, cut_off]


def test_damaged_footers_are_an_error_and_never_a_wrong_file(tmp_path: Path) -> None:
    """A footer that still makes sense is copied; then the rows are those that were there, or cannot be read."""
    table, source, whole = small_file(tmp_path)
    context, rng = context_of(table), random.Random(1)
    rules = rules_of(context, compression="zstd")
    expected = by_id(pq.read_table(source.location))
    begin = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    path, refused, copied = tmp_path / "damaged", 0, 0
    for _ in range(length(500, 30_000)):
        data = bytearray(whole)
        rng.choice(MUTATIONS)(rng, data, begin)
        path.write_bytes(data)
        file = AssembledFile(context, FileLayout(context), (), 0, 0)
        try:
            footer = read_footer(str(path), len(data), None)
            if rules.reason(footer) is not None:
                refused += 1
                continue
            file.copy(CopySource(str(path), footer, source.stats))
        except DataFileError as error:
            refused += "damaged" in error.message
            file.discard()
            continue
        file.end()
        file.publish()
        copied += 1
        try:
            found = pq.read_table(file.location)
        except (OSError, pa.ArrowException):
            continue
        assert by_id(found) == expected
        Path(file.location).unlink()
    assert refused > 2 * copied > 0


def test_pages_that_are_not_where_the_footer_says_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the check of pages, the file would have the wrong bytes."""
    table, source, whole = small_file(tmp_path)
    path = tmp_path / "moved"
    chunk = source.footer.row_groups[0].chunks[3]
    start, end = chunk.start, chunk.start + chunk.size
    path.write_bytes(whole[:start] + whole[start + 1 : end] + whole[start : start + 1] + whole[end:])
    footer = read_footer(str(path), len(whole), None)
    context = context_of(table)
    for is_checked in (True, False):
        if not is_checked:
            monkeypatch.setattr(pages.PageCheck, "feed", lambda *_: None)
            monkeypatch.setattr(pages.PageCheck, "finish", lambda *_: None)
        file = AssembledFile(context, FileLayout(context), (), 0, 0)
        with pytest.raises(DataFileError, match=str(path)) if is_checked else nullcontext():
            file.copy(CopySource(str(path), footer, source.stats))
        file.discard()
        assert not Path(file.location).exists()


def test_missing_and_encrypted_files_are_errors(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match="does not exist"):
        read_footer(str(tmp_path / "none"), 100, None)
    (tmp_path / "x").write_bytes(b"PARE" + bytes(100) + b"PARE")
    with pytest.raises(DataFileError, match="encrypted"):
        read_footer(str(tmp_path / "x"), 108, None)
    (tmp_path / "x").write_bytes(b"PAR1")
    with pytest.raises(DataFileError, match="size"):
        read_footer(str(tmp_path / "x"), 4, None)


def test_long_page_headers_and_small_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages and their headers are cut anywhere by requests."""
    table, source, _ = small_file(tmp_path)
    expected = by_id(pq.read_table(source.location))
    for part in (1, 7, 100):
        monkeypatch.setattr("pyspark_delta.data.row_group_copy._PART", part)
        context = context_of(table)
        file = AssembledFile(context, FileLayout(context), (), 0, 0)
        file.copy(source)
        file.end()
        file.publish()
        assert by_id(pq.read_table(file.location)) == expected
