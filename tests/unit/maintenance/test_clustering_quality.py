"""The clustering quality of a table, against counts of files for queries on its rows."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pyspark_delta.errors import InvalidOperationError, InvalidOptionError
from pyspark_delta.maintenance.layout.quality import BOX, estimate
from pyspark_delta.table import Table

ROWS, FILES = 16_000, 32
CHANCE = np.random.default_rng(4)
IDS = CHANCE.integers(0, 1 << 40, ROWS)
TIMES = np.arange(ROWS) + CHANCE.normal(0, 200, ROWS)
SKEWED = np.minimum(CHANCE.zipf(1.4, ROWS), 10**6)


def layout(name: str) -> np.ndarray:
    """The file of each row."""
    if name == "in order":
        return np.argsort(np.argsort(TIMES)) * FILES // ROWS
    if name == "mixed":  # half of the files are sorted by id, the others are not sorted
        ranks = np.argsort(np.argsort(IDS)) * (FILES // 2) // ROWS
        return np.where(np.arange(ROWS) % 2 == 0, ranks, FILES // 2 + np.arange(ROWS) // 2 % (FILES // 2))
    return np.arange(ROWS) % FILES


@pytest.fixture(params=["at random", "in order", "mixed"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    files = layout(request.param)
    made = Table.create(tmp_path, "id BIGINT, at DOUBLE, skewed BIGINT, s STRING, day DATE", cluster_by=["id", "at"])
    for number in range(FILES):
        rows = np.flatnonzero(files == number)
        days = [date(2020, 1, 1) + timedelta(days=int(at) // 100) for at in TIMES[rows]]
        texts = [f"user-{n:014d}" for n in IDS[rows]]
        made.append({"id": IDS[rows], "at": TIMES[rows], "skewed": SKEWED[rows], "s": texts, "day": days})
    return made


def brute_force(table: Table, column: str, share: float) -> float:
    """The average number of files with rows between two values that a share of the rows lies between."""
    rows = table.scan(columns=[column]).to_arrow()[column]
    values = np.sort(rows.to_numpy() if column != "day" else rows.cast(pa.int32()).to_numpy())
    stats = table.stats()
    bounds = [stats[name].combine_chunks().field(column) for name in ("minValues", "maxValues")]
    low, high = ((b if column != "day" else b.cast(pa.int32())).to_numpy(zero_copy_only=False) for b in bounds)
    width = int(share * len(values))
    starts = np.random.default_rng(0).integers(0, len(values) - width, 1_000)
    met = [((low <= values[at + width]) & (high >= values[at])).sum() for at in starts]
    return float(np.mean(met))


@pytest.mark.parametrize("column", ["id", "at", "skewed", "day"])
def test_expected_files_are_those_that_queries_meet(table: Table, column: str) -> None:
    for row in table.clustering_quality([column]).to_arrow().to_pylist():
        expected = brute_force(table, column, row["share"] or 0)
        assert row["files"] == pytest.approx(expected, rel=0.12, abs=0.3), row


def test_boxes_are_counted_around_rows(table: Table) -> None:
    (row,) = [one for one in table.clustering_quality().to_arrow().to_pylist() if one["query"] == "box"]
    stats = table.stats()
    inside = []
    ranks = {name: np.sort(values) for name, values in (("id", IDS), ("at", TIMES))}
    for at in np.random.default_rng(1).integers(0, ROWS, 400).tolist():
        met = np.ones(FILES, np.bool_)
        for name, value in (("id", IDS[at]), ("at", TIMES[at])):
            first = np.clip(np.searchsorted(ranks[name], value) - BOX * ROWS / 2, 0, ROWS * (1 - BOX) - 1)
            begin, end = ranks[name][int(first)], ranks[name][int(first + BOX * ROWS)]
            low, high = (stats[bound].combine_chunks().field(name).to_numpy() for bound in ("minValues", "maxValues"))
            met &= (low <= end) & (high >= begin)
        inside.append(met.sum())
    assert row["files"] == pytest.approx(np.mean(inside), rel=0.15, abs=0.3)


def test_texts_overlap_as_the_numbers_do_that_they_spell(table: Table) -> None:
    numbers, texts = (table.clustering_quality([name]).average_depth[name] for name in ("id", "s"))
    assert texts == pytest.approx(numbers, rel=0.1)


def test_files_without_statistics_are_read_by_every_query_and_those_with_only_nulls_by_none(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "id BIGINT, x BIGINT", properties={"delta.dataSkippingStatsColumns": "id"})
    for start in (0, 10, 20):
        table.append({"id": list(range(start, start + 10)), "x": [1] * 10})
    table.append({"id": pa.nulls(10, pa.int64()), "x": [1] * 10})
    found = table.clustering_quality(["id"])
    assert (found.num_files, found.num_records, found.files_without_statistics) == (4, 40, 0)
    assert found.average_depth["id"] == pytest.approx(1.0)
    unknown = table.clustering_quality(["x"])
    assert (unknown.files_without_statistics, unknown.average_depth["x"]) == (4, 4.0)


def test_a_table_without_files_and_one_with_equal_values(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "id BIGINT", cluster_by=["id"])
    assert table.clustering_quality().to_arrow()["files"].to_pylist() == [0.0] * 4
    for _ in range(3):
        table.append({"id": [5, 5]})
    assert table.clustering_quality().average_depth["id"] == pytest.approx(3.0)


def test_the_best_layout_is_the_bound_of_a_grid(table: Table) -> None:
    best = {row["share"]: row["best_files"] for row in table.clustering_quality(["id"]).to_arrow().to_pylist()}
    assert best[None] == pytest.approx(1.0)
    both = table.clustering_quality().to_arrow().to_pylist()
    assert both[0]["best_files"] == pytest.approx(FILES**0.5)
    assert both[0]["files"] * both[1]["files"] >= 0.9 * FILES  # no layout is better by all columns


def test_it_shows_itself(table: Table) -> None:
    found = table.clustering_quality()
    assert repr(found).startswith(f"ClusteringQuality('{table.location}', version={FILES}, 32 files, depth id=")
    assert str(found).splitlines()[0].endswith("by id, at: 32 files, 16,000 rows")
    assert "one value of id" in str(found)
    assert "10 % of at" in found._repr_html_()


def test_columns_are_checked(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "id BIGINT, p STRING, l ARRAY<INT>", partition_by=["p"])
    with pytest.raises(InvalidOptionError, match="no clustering columns"):
        table.clustering_quality()
    for name, error_class in (
        ("p", "DELTA_ZORDERING_ON_PARTITION_COLUMN"),
        ("l", "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"),
        ("nothing", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
    ):
        with pytest.raises(InvalidOperationError) as caught:
            table.clustering_quality([name])
        assert caught.value.error_class == error_class


def test_nested_and_mapped_columns(tmp_path: Path) -> None:
    mapping: dict[str, Any] = {"delta.columnMapping.mode": "name"}
    table = Table.create(tmp_path, "s STRUCT<x: BIGINT>, y BIGINT", properties=mapping, cluster_by=["s.x"])
    for start in (0, 5):
        table.append([{"s": {"x": n}, "y": 0} for n in range(start, start + 5)])
    found = table.clustering_quality()
    assert found.columns == ("s.x",)
    assert found.average_depth["s.x"] == pytest.approx(1.0)


def test_intervals_at_one_point_keep_their_rows() -> None:
    """A mass of one point among distances of any size: nothing is lost in the sums."""
    low = np.array([0, 0, 2])
    begin, end = estimate(low, np.array([0, 2, 2]), np.array([1.0, 1e18]), np.array([5.0, 1.0, 5.0]))
    assert end[0] - begin[0] == pytest.approx(5 / 11, abs=0.1)
    assert end[1] - begin[1] == pytest.approx(1.0)
