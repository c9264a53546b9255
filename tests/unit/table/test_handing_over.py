"""Reads are handed to Polars, DuckDB, pandas and Arrow: the right rows, from no more files than needed."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from pyspark_delta.data import opened
from pyspark_delta.errors import DataFileError, InvalidOptionError, MissingDependencyError
from pyspark_delta.storage.counting import CountingStore, Counts
from pyspark_delta.table import Scan, Table
from pyspark_delta.table.arrow_conditions import split_condition

pl = pytest.importorskip("polars")
duckdb = pytest.importorskip("duckdb")
col, lit = pl.col, pl.lit

COLUMNS = (
    "i BIGINT, n INT, t TINYINT, s STRING, d DATE, z TIMESTAMP, w TIMESTAMP_NTZ, x DECIMAL(10, 2), "
    "big DECIMAL(38, 3), f DOUBLE, r FLOAT, b BOOLEAN, u BINARY, st STRUCT<a: INT, `odd.name`: STRING>, "
    "l ARRAY<INT>, m MAP<STRING, INT>, v INTERVAL DAY TO SECOND, p STRING"
).replace(", v INTERVAL DAY TO SECOND", "")


def row(k: int) -> dict[str, Any]:
    """Row k of file k // 4; every seventh value is null, and floats have NaN and both zeros."""
    values = {
        "i": k,
        "n": -k,
        "t": k % 5,
        "s": f"{chr(97 + k // 4)}{k % 4}",
        "d": date(2024, 1, 1 + k),
        "z": datetime(2024, 1, 1, k, tzinfo=UTC),
        "w": datetime(2024, 1, 1, k, 30, 0, 1),
        "x": Decimal(k) / 4,
        "big": Decimal(10) ** 30 + k,
        "f": [k / 2, math.nan, -0.0, math.inf][k % 4],
        "r": k / 2,
        "b": k % 2 == 0,
        "u": bytes([k, 255 - k]),
        "st": {"a": k, "odd.name": f"x{k}"},
        "l": [k, None],
        "m": {"k": k},
    }
    found = {name: None if (k + place) % 7 == 6 else value for place, (name, value) in enumerate(values.items())}
    return {**found, "p": f"p{k // 8}"}


ROWS = [row(k) for k in range(16)]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    made = Table.create(tmp_path_factory.mktemp("handing"), COLUMNS, partition_by=["p"])
    for start in range(0, len(ROWS), 4):
        made.append(ROWS[start : start + 4])
    return made


def is_same(found: pa.Table, expected: pa.Table) -> bool:
    """Return True for equal types and values; NaN equals NaN, which PyArrow denies."""
    return bool(found.schema.equals(expected.schema) and pl.from_arrow(found).equals(pl.from_arrow(expected)))


@pytest.fixture(scope="module")
def frame(table: Table) -> Any:
    return pl.from_arrow(table.to_arrow())


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counts]:
    """Count the data files that are opened, and the bytes read from them."""
    counted, store_for = Counts(), opened.store_for
    monkeypatch.setattr(opened, "store_for", lambda *given: CountingStore(store_for(*given), counted))
    return counted


# Conditions of Polars, and how many of the four files hold rows that may meet them (None: any number).
POLARS = [
    (col("i") > 11, 1),
    (lit(3) >= col("i"), 1),
    (col("i") == 5, 1),
    (col("i") != 5, 4),
    ((col("i") > 3) & (col("i") < 8), 1),
    ((col("i") < 2) | (col("i") > 13), 2),
    (~(col("i") < 12), 1),
    (~((col("i") < 12) | col("i").is_null()), 1),
    (col("i").is_between(4, 7), 1),
    (col("i").is_between(3, 8, closed="none"), 1),
    (col("i").is_in([1, 2, 15]), 2),
    (~col("i").is_in([1, 2, 15]), 4),
    (col("i").is_in([1, None]), None),
    (~col("i").is_in([1, None]), None),
    (col("i").is_in([1, None], nulls_equal=True), None),
    (~col("i").is_in([1, 2], nulls_equal=True), None),
    (col("i").is_null(), None),
    (col("i").is_not_null() & (col("i") < 1), 1),
    (col("i").eq_missing(5), 1),
    (col("i").ne_missing(5), None),
    (col("i").eq_missing(None), None),
    (col("i") > 11.5, None),
    (col("i") + 1 > 12, None),
    ((col("i") > 11) & (col("s").str.len_chars() == 2), 1),
    ((col("i") > 11) | (col("s").str.len_chars() == 1), None),
    (~((col("i") > 11) & (col("s").str.len_chars() == 2)), None),
    (col("n") < -11, 1),
    (col("t") == 4, None),
    (col("s") == "b1", 1),
    (col("s") > "d", 1),
    (col("s").str.starts_with("c"), 1),
    (~col("s").str.starts_with("c"), None),
    (col("s").is_in(["a0", "d1"]), 2),
    (col("d") >= date(2024, 1, 13), 1),
    (col("z") >= datetime(2024, 1, 1, 12, tzinfo=UTC), 1),
    (col("z") >= datetime(2024, 1, 1, 12, tzinfo=UTC).astimezone(), 1),
    (col("w") < datetime(2024, 1, 1, 3, 30), 1),
    (col("w").dt.hour() == 3, None),
    (col("x") == Decimal("1.50"), 1),
    (col("x") > Decimal("2.995"), None),
    (col("x") > 3, None),
    (col("big") > Decimal(10) ** 30 + 11, None),
    (col("f") == 1.0, None),
    (col("f") > 5.0, None),
    (~(col("f") > 5.0), None),
    (col("f") == 0.0, None),
    (col("f") == math.nan, None),
    (col("f").is_nan(), None),
    (col("r") >= 6.0, None),
    (col("b"), None),
    (~col("b"), None),
    (col("b") & (col("i") > 11), 1),
    (col("b") == True, None),  # noqa: E712
    (col("u") == b"\x05\xfa", None),
    (col("st").struct.field("a") > 11, 1),
    (col("st").struct.field("odd.name") == "x15", None),
    (col("st").is_null(), None),
    (col("l").list.len() == 2, None),
    (col("p") == "p1", 2),
    (col("p").is_in(["p1"]) & (col("i") > 12), 1),
    (col("i") > 100, 0),
]


class TestPolars:
    @pytest.mark.parametrize(("condition", "files"), POLARS, ids=lambda value: str(value)[:60])
    def test_conditions_give_the_rows_of_polars_and_skip_files(
        self, table: Table, frame: Any, counts: Counts, condition: Any, files: int | None
    ) -> None:
        found = table.to_polars().filter(condition).collect()
        assert found.equals(frame.filter(condition), null_equal=True)
        if files is not None:
            assert counts.calls["open_input"] == files
        some = table.to_polars().filter(condition).select("st", "i").collect()
        assert some.equals(frame.filter(condition).select("st", "i"))

    def test_columns_are_the_only_ones_read(self, table: Table, counts: Counts) -> None:
        table.to_polars().collect()
        everything = counts.bytes["open_input"]
        counts.reset()
        assert table.to_polars().select(col("i").sum()).collect().item() == sum(
            r["i"] for r in ROWS if r["i"] is not None
        )
        assert counts.bytes["open_input"] < everything

    def test_limits_open_no_more_files_than_they_need(self, table: Table, counts: Counts) -> None:
        assert table.to_polars().head(5).collect().height == 5
        assert counts.calls["open_input"] == 2

    def test_rows_without_columns_are_counted(self, table: Table) -> None:
        lazy = table.to_polars()
        assert lazy.select(pl.len()).collect().item() == len(ROWS)
        assert lazy.filter(col("i") > 3).select(pl.len()).collect().item() == 10

    def test_conditions_after_a_limit_are_on_its_rows(self, table: Table) -> None:
        first = table.scan(where="i >= 4").limit(3)
        expected = [value for value in first.to_arrow()["i"].to_pylist() if value != 5]
        assert first.to_polars().filter(col("i") != 5).collect()["i"].to_list() == expected
        assert table.to_polars().head(3).filter(col("i") > 1).collect()["i"].to_list() == [2]

    def test_the_conditions_of_scan_and_query_are_joined(self, table: Table, counts: Counts) -> None:
        lazy = table.scan(["s"], where="i > 3").to_polars()
        assert lazy.filter(col("s") < "c").collect()["s"].to_list() == [ROWS[k]["s"] for k in (4, 5, 7)]
        assert counts.calls["open_input"] == 1

    def test_a_frame_reads_the_version_it_was_made_of(self, tmp_path: Path) -> None:
        table = Table.write(tmp_path, {"i": [1]})
        lazy = table.to_polars()
        table.append({"i": [2]})
        assert (lazy.collect().height, table.to_polars().collect().height) == (1, 2)

    def test_functions_of_python_are_left_to_polars(self, table: Table) -> None:
        condition = col("i").map_batches(lambda values: values == 3, return_dtype=pl.Boolean)
        assert table.to_polars().filter(condition).collect()["i"].to_list() == [3]


# Conditions of DuckDB, and how many of the four files hold rows that may meet them (None: any number).
DUCKDB = [
    ("i > 11", 1),
    ("i = 5", 1),
    ("i <> 5", 4),
    ("i BETWEEN 4 AND 7", 1),
    ("i IN (1, 2, 15)", 2),
    ("i NOT IN (1, 2, 15)", 4),
    ("i IN (1, NULL)", None),
    ("i < 2 OR i > 13", 2),
    ("i < 2 OR s = 'd3'", 2),
    ("NOT (i < 12)", 1),
    ("i IS NULL", None),
    ("i IS NOT NULL AND i < 1", 1),
    ("i IS DISTINCT FROM 5", None),
    ("i > 11.5", None),
    ("i % 2 = 0 AND i > 11", 1),
    ("n < -11", 1),
    ("t = 4", None),
    ("s = 'b1'", 1),
    ("s LIKE 'c%'", None),
    ("s > 'd' AND b", 1),
    ("d >= '2024-01-13'", 1),
    ("z >= TIMESTAMPTZ '2024-01-01 12:00:00+00'", 1),
    ("w < '2024-01-01 03:30:00'", 1),
    ("x = 1.50", 1),
    ("x > 2.995", None),
    ("big > 1000000000000000000000000000011", None),
    ("f > 5", None),
    ("f = 'nan'", None),
    ("f = 0", None),
    ("r >= 6", None),
    ("b", None),
    ("NOT b", None),
    ("b = true AND i > 11", 1),
    ("u = '\\x05\\xFA'::BLOB", None),
    ("st.a > 11", 1),
    ("st.\"odd.name\" = 'x15'", None),
    ("st IS NULL", None),
    ("p = 'p1'", 2),
    ("p = 'p1' AND i > 12", 1),
    ("i > 100", 0),
]


class TestDuckDB:
    @pytest.mark.parametrize(("condition", "files"), DUCKDB)
    def test_conditions_give_the_rows_of_duckdb_and_skip_files(
        self, table: Table, counts: Counts, condition: str, files: int | None
    ) -> None:
        whole = table.to_arrow()
        with duckdb.connect() as connection:
            expected = connection.from_arrow(whole).filter(condition).project("st, i, s").fetchall()
            counts.reset()
            found = table.to_duckdb(connection).filter(condition).project("st, i, s").fetchall()
        assert found == expected
        if files is not None:
            assert counts.calls["open_input"] == files

    def test_columns_and_relations_of_a_scan(self, table: Table) -> None:
        relation = table.scan(["s", "i"], where="i > 3").to_duckdb()
        assert relation.columns == ["s", "i"]
        for _ in range(2):  # each query reads the rows again
            assert relation.aggregate("count(*), min(i)").fetchall() == [(10, 4)]
        assert len(table.to_duckdb().limit(3).fetchall()) == 3

    def test_conditions_after_a_limit_are_on_its_rows(self, table: Table) -> None:
        first = table.scan(where="i >= 4").limit(3)
        expected = [value for value in first.to_arrow()["i"].to_pylist() if value != 5]
        assert [i for (i,) in first.to_duckdb().filter("i <> 5").project("i").fetchall()] == expected

    def test_joins_and_sql(self, table: Table) -> None:
        with duckdb.connect() as connection:
            table.to_duckdb(connection).create_view("numbers")
            found = connection.sql(
                "SELECT count(*) FROM numbers a JOIN numbers b ON a.i = b.i WHERE b.i < 4"
            ).fetchall()
        assert found == [(4,)]

    @pytest.mark.findings("F01")
    def test_an_error_of_a_data_file_is_raised(self, tmp_path: Path) -> None:
        table = Table.write(tmp_path, {"i": [1]})
        relation = table.to_duckdb()
        next(tmp_path.glob("*.parquet")).unlink()
        with pytest.raises(Exception, match="does not exist, though the log says"):
            relation.fetchall()
        with pytest.raises(Exception, match="does not exist, though the log says"):
            table.to_polars().collect()
        with pytest.raises(DataFileError):
            table.to_arrow()

    def test_every_condition_of_arrow_that_is_translated_means_the_same(self, table: Table) -> None:
        """The conditions that DuckDB pushes have exact counterparts: another PyArrow must not lose them silently."""
        field = pc.field
        conditions = [
            (field("i") > 11) & (field("s") == "d1"),
            ~(field("x") <= Decimal("3.00")),
            field("st", "a") >= pa.scalar(12, pa.int32()),
            field("z") >= pa.scalar(datetime(2024, 1, 1, 12, tzinfo=UTC), pa.timestamp("us", "UTC")),
            field("w") >= pa.scalar(datetime(2024, 1, 1, 12), pa.timestamp("us")),
            field("d") >= date(2024, 1, 13),
            field("t") == pa.scalar(3, pa.int8()),
            field("r") > pa.scalar(1.5, pa.float32()),
            field("u") > b"\x0b",
            field("b") == True,  # noqa: E712
            field("i").isin([1, 2]) | field("i").is_null(),
            ~field("i").isin([1, 2]),
            pc.if_else(field("i").is_valid(), field("i").isin([1, 2]), pa.scalar(None, pa.bool_())),
        ]
        whole = table.to_arrow()
        for condition in conditions:
            found, is_complete = split_condition(condition, table.schema)
            assert is_complete, condition
            assert is_same(table._reader(where=found).read_all(), whole.filter(condition)), condition


class TestArrow:
    def test_the_pycapsule_interface_gives_all_rows_again_and_again(self, table: Table) -> None:
        whole = table.to_arrow()
        for rows in (table, table.scan()):
            for _ in range(2):
                assert is_same(pa.table(rows), whole)
            assert pa.schema(rows).equals(whole.schema)
            assert is_same(rows.to_reader().read_all(), whole)
            assert is_same(pa.Table.from_batches(rows.to_batches()), whole)
        assert is_same(ds.Scanner.from_batches(table.to_reader()).to_table(), whole)
        assert pl.DataFrame(table).height == len(ROWS)
        scan = table.scan(["i"])  # noqa: F841 - DuckDB finds it by its name
        assert duckdb.sql("SELECT sum(i) FROM scan").fetchall() == [(sum(r["i"] for r in ROWS if r["i"] is not None),)]

    def test_a_requested_schema_casts_the_columns(self, table: Table) -> None:
        wanted = pa.schema([("i", pa.int32()), ("s", pa.string_view())])
        assert pa.table(table.scan(["i", "s"]), schema=wanted).schema == wanted
        with pytest.raises((ValueError, TypeError)):
            pa.table(table.scan(["i"]), schema=pa.schema([("i", pa.date32())]))

    def test_pandas(self, table: Table) -> None:
        pytest.importorskip("pandas")
        found = table.scan(["s", "i"], where="i < 4").to_pandas(types_mapper={pa.string(): None}.get)
        assert (list(found.columns), found["i"].tolist()) == (["s", "i"], [0, 1, 2, 3])
        assert table.to_pandas().shape == (16, 17)

    def test_changes_are_handed_over_too(self, tmp_path: Path, counts: Counts) -> None:
        table = Table.create(tmp_path, "i BIGINT, s STRING", properties={"delta.enableChangeDataFeed": True})
        for k in range(4):
            table.append({"i": [2 * k, 2 * k + 1], "s": ["a", "b"]})
        changes = table.changes(1)
        frame = pl.from_arrow(changes.to_arrow())
        condition = (col("_commit_version") >= 4) & (col("i") > 6)
        counts.reset()
        assert changes.to_polars().filter(condition).collect().equals(frame.filter(condition))
        assert counts.calls["open_input"] == 1
        assert changes.to_duckdb().filter("_commit_version = 2 AND s = 'a'").project("i").fetchall() == [(2,)]
        narrowed = table.changes(1, columns=["i"], where="s = 'b'").to_polars().filter(col("i") > 3).collect()
        assert narrowed.to_dict(as_series=False) == {"i": [5, 7]}
        counts.reset()
        assert changes.head(3)["i"].to_pylist() == [0, 1, 2]
        assert counts.calls["open_input"] == 2
        assert changes.limit(3).to_polars().filter(col("i") > 1).collect()["i"].to_list() == [2]
        assert pa.table(changes).num_rows == 8


class TestLimits:
    def test_files_after_the_last_row_are_not_opened(self, table: Table, counts: Counts) -> None:
        for n, files in ((0, 0), (1, 1), (4, 1), (5, 2), (16, 4), (100, 4)):
            counts.reset()
            assert table.head(n).num_rows == min(n, 16)
            assert counts.calls["open_input"] == files
        counts.reset()
        assert table.scan(where="i % 2 = 1").limit(2).to_arrow()["i"].to_pylist() == [1, 3]
        assert counts.calls["open_input"] == 1

    def test_limits_of_limits_and_columns(self, table: Table) -> None:
        scan = table.scan(["i"]).limit(6)
        assert isinstance(scan, Scan)
        assert scan.limit(10).to_arrow()["i"].to_pylist() == [0, 1, 2, 3, 4, 5]
        assert scan.head(2)["i"].to_pylist() == [0, 1]
        assert table.scan([]).limit(3).to_arrow().num_rows == 3
        for wrong in (-1, 1.5, True, "3"):
            with pytest.raises(InvalidOptionError, match="number of rows is a whole number"):
                table.head(wrong)  # type: ignore[arg-type]

    @pytest.mark.findings("F02")
    def test_row_groups_after_the_last_row_are_not_read(self, tmp_path: Path, counts: Counts) -> None:
        table = Table.create(tmp_path, "i BIGINT")
        table.append({"i": list(range(400_000))})
        [path] = tmp_path.glob("*.parquet")
        pq.write_table(pq.read_table(path), path, row_group_size=100_000, compression="none", use_dictionary=False)
        assert table.head(10)["i"].to_pylist() == list(range(10))
        assert counts.bytes["open_input"] < 0.5 * path.stat().st_size

    def test_a_limit_of_many_small_files_reads_them_together(self, tmp_path: Path, counts: Counts) -> None:
        table = Table.create(tmp_path, "i BIGINT")
        table.append({"i": list(range(40))}, max_records_per_file=2)
        assert table.head(21).num_rows == 21
        assert counts.calls["open_input"] == 11


@pytest.mark.parametrize("package", ["pandas", "polars", "duckdb"])
def test_a_missing_package_is_named_with_what_to_install(
    table: Table, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependencyError, match=f"needs {package}, which is not installed: pip install {package}"):
        getattr(table, f"to_{package}")()
