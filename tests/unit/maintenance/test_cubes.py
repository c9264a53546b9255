"""Which files of a clustered table a run clusters, and what tags its files have."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa
import pytest

from pyspark_delta.actions.columns import CLUSTERING_PROVIDER, SIZE, TAGS
from pyspark_delta.maintenance.layout.columns import LayoutColumn
from pyspark_delta.maintenance.layout.cubes import CubeSizes, cube_tags, files_to_cluster, new_cubes
from pyspark_delta.schema.types import LONG

GIB = 1 << 30
COLUMNS = (LayoutColumn(("id",), ("id",), LONG), LayoutColumn(("a.b", "c"), ("x", "y"), LONG))
OTHER = COLUMNS[:1]
SIZES = CubeSizes(target=150, stable=100)

File = tuple[int, str | None, str | None]  # size, cube, provider


def files(*found: File, others: Sequence[str] = ()) -> pa.Table:
    tags = [
        None if cube is None else list(cube_tags(cube, OTHER if cube in others else COLUMNS).items())
        for _, cube, _ in found
    ]
    return pa.table(
        [
            pa.array([size for size, _, _ in found], SIZE.type),
            pa.array(tags, TAGS.type),
            pa.array([provider for _, _, provider in found], CLUSTERING_PROVIDER.type),
        ],
        schema=pa.schema([SIZE, TAGS, CLUSTERING_PROVIDER]),
    )


def chosen(table: pa.Table, full: bool = False) -> list[int]:
    found = files_to_cluster(table, COLUMNS, SIZES, full=full)
    rows: list[int] = found.mask.nonzero()[0].tolist()
    assert found.num_files == len(rows)
    assert found.num_bytes == sum(table["size"].take(pa.array(rows, pa.int64())).to_pylist())
    return rows


def test_c353_only_files_of_this_provider_or_of_none_are_clustered() -> None:
    table = files((10, None, None), (10, "a", "liquid"), (10, None, "other"), (10, "b", "other"), (10, None, "liquid"))
    assert chosen(table) == [0, 1, 4]
    assert chosen(table, full=True) == [0, 1, 4]


def test_c352_files_name_the_cube_and_its_columns() -> None:
    tags = cube_tags("some id", COLUMNS)
    assert tags["ZCUBE_ID"] == "some id"
    assert json.loads(tags["ZCUBE_ZORDER_BY"]) == ["id", "`a.b`.c"]


def test_stable_cubes_stay_and_partial_ones_are_merged_with_new_files() -> None:
    table = files((60, "a", "liquid"), (50, "a", "liquid"), (40, "b", "liquid"), (30, "c", "liquid"), (20, None, None))
    assert chosen(table) == [2, 3, 4]
    assert chosen(files((50, "a", "liquid"), (50, "b", "liquid"))) == [0, 1]


def test_a_partial_cube_waits_until_there_is_about_as_much_that_is_new() -> None:
    """Each append of a small part would otherwise rewrite all of a small table."""
    table = files((90, "a", "liquid"), (2, None, None))
    assert chosen(table) == [1]
    assert chosen(table, full=True) == [0, 1]
    assert chosen(files((90, "a", "liquid"), (15, "b", "liquid"), (30, "c", "liquid"), (2, None, None))) == [3]
    assert chosen(files((90, "a", "liquid"), (3, "b", "liquid"), (9, "c", "liquid"), (2, None, None))) == [1, 2, 3]


def test_a_series_of_appends_rewrites_each_row_a_few_times() -> None:
    cubes: list[int] = []
    written = 0
    for number in range(64):
        table = files(*((size, str(i), "liquid") for i, size in enumerate(cubes)), (1, None, None))
        taken = chosen(table)
        written += sum(table["size"].take(pa.array(taken)).to_pylist())
        left = [size for i, size in enumerate(cubes) if i not in taken]
        cubes = [*left, number + 1 - sum(left)]
    assert written <= 64 * 5  # an engine that merges everything writes 64 * 65 / 2
    assert len(cubes) <= 7


def test_with_a_limit_only_new_files_are_chosen() -> None:
    table = files((60, "a", "liquid"), (20, None, None), (30, None, None))
    limited = [files_to_cluster(table, COLUMNS, SIZES, limit=limit) for limit in (110, 109, 49, 19)]
    assert [one.mask.nonzero()[0].tolist() for one in limited] == [[0, 1, 2], [1, 2], [1], []]
    assert [one.is_cut for one in limited] == [False, True, True, True]


@pytest.mark.parametrize("full", [False, True])
def test_one_whole_cube_and_nothing_else_is_left_alone(full: bool) -> None:
    assert chosen(files((60, "a", "liquid"), (20, "a", "liquid")), full) == []
    assert chosen(files(), full) == []


def test_cubes_of_other_columns_stay_unless_all_is_clustered() -> None:
    table = files((60, "a", "liquid"), (500, "b", "liquid"), (500, "c", "liquid"), (20, None, None), others=["a", "b"])
    assert chosen(table) == [3]
    assert chosen(table, full=True) == [0, 1, 3]
    assert chosen(files((60, "a", "liquid"), others=["a"]), full=True) == [0]


def test_unreadable_tags_count_as_other_columns() -> None:
    table = files((60, "a", "liquid"), (20, None, None))
    broken = pa.array([[("ZCUBE_ID", "a"), ("ZCUBE_ZORDER_BY", "[id")], None], TAGS.type)
    assert chosen(table.set_column(1, TAGS, broken)) == [1]


def test_what_was_chosen_is_counted() -> None:
    found = files_to_cluster(
        files((10, "a", "liquid"), (20, "b", "liquid"), (5, "b", "liquid"), (30, None, None)), COLUMNS, SIZES
    )
    assert (found.cube_files, found.cube_bytes, found.other_files, found.other_bytes) == (3, 35, 1, 30)
    assert found.num_cubes == 2


def test_cubes_are_a_sixteenth_of_the_table_but_from_1_to_100_gib() -> None:
    assert [CubeSizes.of_table(size * GIB).target // GIB for size in (0, 10, 160, 100_000)] == [1, 1, 10, 100]
    sizes = CubeSizes.of_table(160 * GIB)
    assert len(new_cubes(35 * GIB, sizes)) == 3
    assert sizes.stable < 35 * GIB // 3
    assert len(set(new_cubes(1, sizes))) == 1
