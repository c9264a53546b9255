"""The Arrow reader over hand-made files: positions, pruning, projections, errors."""

from __future__ import annotations

import pickle
import struct
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.data.planned import plan_of, rows_of, schema_of, write

from pyspark_delta.data.reader import output_schema, read_plan, read_task, read_tasks, tasks_of
from pyspark_delta.deletion_vectors import encode_inline, of_indexes
from pyspark_delta.errors import CorruptLogError, DataFileError, DeletionVectorError
from pyspark_delta.scan.plan import Missing, RowCommitVersion, RowId
from pyspark_delta.schema.arrow import to_arrow
from pyspark_delta.schema.types import (
    BINARY,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    STRING,
    VARIANT,
    VOID,
    ArrayType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)

X = schema_of(x=LONG)
ROW_ID = RowId(StructField("_row_id", LONG), "mat_id")
ROW_VERSION = RowCommitVersion(StructField("_row_commit_version", LONG), "mat_version")


def numbers(count: int, **options: int) -> pa.Table:
    return pa.table({"x": pa.array(range(count), pa.int64())})


def test_many_small_files_arrive_in_order_and_joined(tmp_path: Path) -> None:
    files = [write(tmp_path, pa.table({"x": pa.array([i])}), f"{i}.parquet") for i in range(200)]
    batches = list(read_plan(plan_of(tmp_path, X, files), threads=3))
    assert [v for b in batches for v in b.column(0).to_pylist()] == list(range(200))
    assert len(batches) < 10


@pytest.mark.parametrize(
    ("values", "schema"),
    [
        (pa.array(range(600_000)), X),
        (pa.repeat("text" * 20, 600_000), schema_of(x=STRING)),  # small in the file only
    ],
)
def test_batches_of_a_large_file_are_bounded(tmp_path: Path, values: pa.Array, schema: StructType) -> None:
    file = write(tmp_path, pa.table({"x": values}))
    batches = list(read_plan(plan_of(tmp_path, schema, [file])))
    assert sum(b.num_rows for b in batches) == len(values)
    assert len(batches) > 2
    assert max(b.nbytes for b in batches) <= 8 << 20


def test_deletion_vectors_and_row_ids_count_physical_rows_across_row_groups(tmp_path: Path) -> None:
    deleted = np.array([0, 1, 49, 50, 99, 149])
    file = write(tmp_path, numbers(150), row_group_size=50)
    file |= {
        "deletion_vector": encode_inline(of_indexes(deleted)),
        "base_row_id": 1000,
        "default_row_commit_version": 7,
    }
    rows = rows_of(tmp_path, X, [file], extra=[ROW_ID, ROW_VERSION])
    assert [r["x"] for r in rows] == [i for i in range(150) if i not in deleted]
    assert all(r["_row_id"] == r["x"] + 1000 and r["_row_commit_version"] == 7 for r in rows)


def test_skipped_row_groups_do_not_move_positions(tmp_path: Path) -> None:
    file = write(tmp_path, numbers(1000), row_group_size=100)
    vector = encode_inline(of_indexes(np.array([551, 552, 3])))
    file |= {"deletion_vector": vector, "base_row_id": 0, "default_row_commit_version": 0}
    rows = rows_of(tmp_path, X, [file], where="x BETWEEN 550 AND 553 OR x = 950", extra=[ROW_ID])
    assert [(r["x"], r["_row_id"]) for r in rows] == [(550, 550), (553, 553), (950, 950)]


def test_row_groups_outside_the_predicate_are_not_read(tmp_path: Path) -> None:
    file = write(tmp_path, numbers(1000), row_group_size=100, compression="none", use_dictionary=False)
    content = bytearray((tmp_path / "f.parquet").read_bytes())
    second = pq.read_metadata(tmp_path / "f.parquet").row_group(1).column(0)
    start = second.data_page_offset
    content[start : start + second.total_compressed_size] = b"\xff" * second.total_compressed_size
    (tmp_path / "f.parquet").write_bytes(content)
    assert len(rows_of(tmp_path, X, [file], where="x >= 200")) == 800
    with pytest.raises(DataFileError, match="cannot be read as Parquet"):
        rows_of(tmp_path, X, [file], where="x >= 150")


@pytest.mark.parametrize(
    ("values", "where", "expected"),
    [
        (pa.array([1.5, float("nan"), 3.0]), "x > 100", ["nan"]),
        (pa.array([1.5, float("nan"), 3.0]), "x = 'NaN'", ["nan"]),
        (pa.array(["a" * 80, "b"]), f"x > '{'a' * 79}'", ["a" * 80, "b"]),
        (pa.array([None, 5]), "x IS NULL", [None]),
        (pa.array([None, None], pa.int64()), "x IS NOT NULL", []),
    ],
)
def test_footer_statistics_never_lose_a_row(
    tmp_path: Path, values: pa.Array, where: str, expected: list[object]
) -> None:
    kind = {pa.float64(): "double", pa.string(): "string", pa.int64(): "long"}[values.type]
    from pyspark_delta.schema.types import PrimitiveType

    file = write(tmp_path, pa.table({"x": values}), row_group_size=1)
    rows = rows_of(tmp_path, schema_of(x=PrimitiveType(kind)), [file], where=where)
    assert [str(r["x"]) if isinstance(r["x"], float) else r["x"] for r in rows] == expected


@pytest.mark.parametrize("poisoned", [(1.25,), (7.5,), (1.25, 7.5)], ids=["least", "greatest", "both"])
@pytest.mark.parametrize("kind", [FLOAT, DOUBLE])
@pytest.mark.parametrize("where", ["x < 2", "x BETWEEN 7 AND 8", "x = 7.5", "x IN (1.25, 9)", "x >= 7 AND x < 'NaN'"])
def test_nan_in_a_footer_is_no_bound(
    tmp_path: Path, poisoned: tuple[float, ...], kind: PrimitiveType, where: str
) -> None:
    values = pa.array([1.25, float("nan"), 7.5], to_arrow(kind))
    file = write(tmp_path, pa.table({"x": values}), use_dictionary=False)
    content = (tmp_path / "f.parquet").read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    tail, form = content[footer:], "<f" if kind == FLOAT else "<d"
    for bound in poisoned:
        assert struct.pack(form, bound) in tail
        tail = tail.replace(struct.pack(form, bound), struct.pack(form, float("nan")))
    (tmp_path / "f.parquet").write_bytes(content[:footer] + tail)
    rows = rows_of(tmp_path, schema_of(x=kind), [file], where=where)
    assert [r["x"] for r in rows] == [1.25 if "2" in where else 7.5]


def test_a_projection_without_columns_keeps_the_row_count(tmp_path: Path) -> None:
    file = write(tmp_path, numbers(100_000)) | {"deletion_vector": encode_inline(of_indexes(np.arange(10)))}
    table = read_plan(plan_of(tmp_path, X, [file, file], output=[])).read_all()
    assert (table.num_rows, table.num_columns) == (199_980, 0)


def test_a_residual_without_output_columns_counts_the_matches(tmp_path: Path) -> None:
    file = write(tmp_path, numbers(1000))
    assert read_plan(plan_of(tmp_path, X, [file], output=[], where="x < 10")).read_all().num_rows == 10


def test_columns_of_the_residual_are_dropped_again(tmp_path: Path) -> None:
    file = write(tmp_path, pa.table({"x": [1, 2, 3], "y": ["a", "b", "c"]}))
    schema = StructType((*X.fields, StructField("y", STRING)))
    assert rows_of(tmp_path, schema, [file], where="x > 1", output=["y"]) == [{"y": "b"}, {"y": "c"}]


def test_a_file_without_rows_gives_none(tmp_path: Path) -> None:
    file = write(tmp_path, numbers(0))
    assert (
        read_plan(plan_of(tmp_path, X, [file]))
        .read_all()
        .equals(output_schema(plan_of(tmp_path, X, []).context).empty_table())
    )


def test_void_columns_and_fields_are_null(tmp_path: Path) -> None:
    schema = schema_of(x=LONG, s=StructType((StructField("v", VOID), StructField("w", LONG))))
    file = write(tmp_path, pa.table({"x": [1], "s": pa.array([{"w": 2}])}))
    rows = rows_of(tmp_path, schema, [file], extra=[Missing(StructField("v", VOID))])
    assert rows == [{"x": 1, "s": {"v": None, "w": 2}, "v": None}]


def test_null_structs_stay_null_when_no_wanted_member_is_in_the_file(tmp_path: Path) -> None:
    stored = pa.array([{"old": 1}, None, {"old": None}], pa.struct([("old", pa.int64())]))
    schema = schema_of(s=StructType((StructField("new", LONG),)))
    file = write(tmp_path, pa.table({"s": stored}))
    assert rows_of(tmp_path, schema, [file]) == [{"s": {"new": None}}, {"s": None}, {"s": {"new": None}}]


def test_nested_missing_members_are_null_inside_lists_and_maps(tmp_path: Path) -> None:
    inner = StructType((StructField("a", LONG), StructField("b", STRING)))
    schema = schema_of(l=ArrayType(inner), m=MapType(STRING, inner))
    stored = pa.table(
        {
            "l": pa.array([[{"a": 1}], None, []], pa.list_(pa.struct([("a", pa.int64())]))),
            "m": pa.array([[("k", {"a": 2})], [], None], pa.map_(pa.string(), pa.struct([("a", pa.int64())]))),
        }
    )
    rows = rows_of(tmp_path, schema, [write(tmp_path, stored)])
    assert rows == [
        {"l": [{"a": 1, "b": None}], "m": [("k", {"a": 2, "b": None})]},
        {"l": None, "m": []},
        {"l": [], "m": None},
    ]


def test_only_the_leaves_that_are_needed_are_read(tmp_path: Path) -> None:
    stored = pa.table({"s": pa.array([{"a": 1, "b": 2, "c.d": 3}]), "s.a": [9]})
    schema = schema_of(s=StructType((StructField("a", LONG), StructField("c.d", LONG))))
    file = write(tmp_path, stored)
    assert rows_of(tmp_path, schema, [file]) == [{"s": {"a": 1, "c.d": 3}}]
    assert rows_of(tmp_path, schema_of(**{"s.a": LONG}), [file]) == [{"s.a": 9}]


def test_dictionary_large_and_view_columns_of_arrow_writers(tmp_path: Path) -> None:
    stored = pa.table(
        {
            "d": pa.array(["a", "b", "a"]).dictionary_encode(),
            "big": pa.array(["x", None, "z"], pa.large_string()),
            "ll": pa.array([[1], None, [2, 3]], pa.large_list(pa.int32())),
            "fl": pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int32(), 2)),
        }
    )
    schema = schema_of(d=STRING, big=STRING, ll=ArrayType(LONG), fl=ArrayType(INTEGER))
    rows = rows_of(tmp_path, schema, [write(tmp_path, stored)])
    assert rows[0] == {"d": "a", "big": "x", "ll": [1], "fl": [1, 2]}
    assert rows[1] == {"d": "b", "big": None, "ll": None, "fl": None}
    assert rows[2] == {"d": "a", "big": "z", "ll": [2, 3], "fl": [3, 4]}


@pytest.mark.parametrize("vector", [False, True])
def test_views_of_writers_in_rust(tmp_path: Path, vector: bool) -> None:
    text, views = pa.string_view(), pa.list_(pa.string_view())
    stored = pa.table(
        {
            "s": pa.array(["a", None, "z" * 20], text),
            "b": pa.array([b"a", b"", None], pa.binary_view()),
            "l": pa.array([["a"], None, [None, "c"]], views),
            "n": pa.array(
                [{"x": ["a"], "m": [("k", "v")]}, None, {"x": None, "m": []}],
                pa.struct([("x", views), ("m", pa.map_(text, text))]),
            ),
        }
    )
    schema = schema_of(
        s=STRING,
        b=BINARY,
        l=ArrayType(STRING),
        n=StructType((StructField("x", ArrayType(STRING)), StructField("m", MapType(STRING, STRING)))),
    )
    file = write(tmp_path, stored)
    assert pq.read_schema(tmp_path / file["path"]).field("s").type == text
    if vector:
        file |= {"deletion_vector": encode_inline(of_indexes(np.array([1])))}
    expected = [row for i, row in enumerate(stored.to_pylist()) if i != 1 or not vector]
    assert rows_of(tmp_path, schema, [file]) == expected


def test_a_missing_data_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match=r"gone\.parquet' does not exist.*vacuumed"):
        rows_of(tmp_path, X, [{"path": "gone.parquet", "size": 1}])


@pytest.mark.parametrize("cut", [0, 3, 100, -1])
def test_a_truncated_data_file_is_named(tmp_path: Path, cut: int) -> None:
    file = write(tmp_path, numbers(1000))
    path = tmp_path / "f.parquet"
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(DataFileError, match=r"f\.parquet' cannot be read as Parquet"):
        rows_of(tmp_path, X, [file])


def test_a_type_that_is_no_widening_names_file_column_and_types(tmp_path: Path) -> None:
    file = write(tmp_path, pa.table({"s": pa.array([{"x": "text"}])}))
    schema = schema_of(s=StructType((StructField("x", LONG),)))
    with pytest.raises(DataFileError, match=r"f\.parquet' holds column 's\.x' as string, which is not long"):
        rows_of(tmp_path, schema, [file])


def test_a_value_beyond_its_type_is_refused_not_wrapped(tmp_path: Path) -> None:
    from pyspark_delta.schema.types import BYTE

    file = write(tmp_path, pa.table({"x": pa.array([1, 300], pa.int32())}))
    with pytest.raises(DataFileError, match=r"Column 'x' of data file .* not of type byte"):
        rows_of(tmp_path, schema_of(x=BYTE), [file])


def test_ambiguous_names_are_refused(tmp_path: Path) -> None:
    file = write(tmp_path, pa.table({"X": [1], "x ": [1]}).rename_columns(["Y", "y"]))
    assert rows_of(tmp_path, schema_of(y=LONG), [file]) == [{"y": 1}]
    file = write(tmp_path, pa.table({"a": [1], "b": [1]}).rename_columns(["YY", "Yy"]))
    with pytest.raises(DataFileError, match="2 columns that match 'yy'"):
        rows_of(tmp_path, schema_of(yy=LONG), [file])


def test_a_deletion_vector_beyond_the_file_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path, numbers(10)) | {"deletion_vector": encode_inline(of_indexes(np.array([10])))}
    with pytest.raises(DeletionVectorError, match="contains row 10, but the file has only 10 rows"):
        rows_of(tmp_path, X, [file])


def test_row_ids_need_a_base(tmp_path: Path) -> None:
    file = write(tmp_path, numbers(10))
    with pytest.raises(CorruptLogError, match="no baseRowId for data file"):
        rows_of(tmp_path, X, [file], extra=[ROW_ID])


def test_one_bad_file_stops_the_read(tmp_path: Path) -> None:
    files = [write(tmp_path, numbers(10), f"{i}.parquet") for i in range(100)]
    files.insert(50, {"path": "gone.parquet", "size": 1 << 30})
    with pytest.raises(DataFileError, match="gone"):
        rows_of(tmp_path, X, files)


def test_a_reader_can_be_abandoned(tmp_path: Path) -> None:
    files = [write(tmp_path, numbers(100_000), f"{i}.parquet") | {"size": 1 << 30} for i in range(8)]
    reader = read_plan(plan_of(tmp_path, X, files), threads=2)
    assert reader.read_next_batch().num_rows
    reader.close()


def test_a_task_and_its_context_travel_and_read_the_same(tmp_path: Path) -> None:
    file = write(tmp_path, numbers(10)) | {"partition_values": {"p": "5"}}
    plan = plan_of(tmp_path, schema_of(x=LONG, p=INTEGER), [file], partitions=["p"], where="x > 7")
    context, tasks = pickle.loads(pickle.dumps((plan.context, list(tasks_of(plan.files)))))
    batches = list(read_task(context, tasks[0]))
    assert pa.Table.from_batches(batches).equals(read_plan(plan).read_all())
    assert batches[0].to_pylist() == [{"x": 8, "p": 5}, {"x": 9, "p": 5}]


def test_every_output_column_admits_null() -> None:
    schema = StructType((StructField("x", ArrayType(StructType((StructField("y", LONG, False),)), False), False),))
    found = output_schema(plan_of(Path("/t"), schema, []).context)
    assert found.field("x").nullable
    assert found.field("x").type.value_field.nullable
    assert found.field("x").type.value_type.field("y").nullable


def test_a_plain_variant_is_read_in_either_order(tmp_path: Path) -> None:
    value, metadata = b"\x0c\x05", b"\x01\x00\x00"
    for order in (("value", "metadata"), ("metadata", "value")):
        kind = pa.struct([pa.field(name, pa.binary(), nullable=False) for name in order])
        stored = pa.table({"v": pa.array([{"value": value, "metadata": metadata}, None], kind)})
        rows = rows_of(tmp_path, schema_of(v=VARIANT), [write(tmp_path, stored)])
        assert rows == [{"v": {"value": value, "metadata": metadata}}, {"v": None}]


def test_wide_rows_come_in_smaller_batches(tmp_path: Path) -> None:
    wide = pa.table({"x": [f"{i:05}" * 20_000 for i in range(1500)], "n": list(range(1500))})
    file = write(tmp_path, wide, compression="zstd", use_dictionary=False)
    schema = schema_of(x=STRING, n=LONG)
    sizes = [b.num_rows for b in read_plan(plan_of(tmp_path, schema, [file], output=["x"]))]
    assert sum(sizes) == 1500
    assert max(sizes) <= 400
    narrow = plan_of(tmp_path, schema_of(n=LONG), [file])
    assert [b.num_rows for b in read_plan(narrow)] == [1500]


@pytest.mark.parametrize("output", [["x", "_row_id"], []])
@pytest.mark.parametrize("size", [3, 7, 40, 150])
def test_shares_of_a_file_are_all_of_it(tmp_path: Path, size: int, output: list[str]) -> None:
    file = write(tmp_path, numbers(150), row_group_size=size)
    file |= {"deletion_vector": encode_inline(of_indexes(np.array([0, 49, 149]))), "base_row_id": 1000}
    plan = plan_of(tmp_path, X, [file], extra=[ROW_ID], output=output)
    for of in (1, 2, 4, 200):
        tasks = [replace(task, share=(number, of)) for task in tasks_of(plan.files) for number in range(of)]
        shares = [[row for batch in read_task(plan.context, task) for row in batch.to_pylist()] for task in tasks]
        together = [row for share in shares for row in share]
        assert len(together) == 147
        assert sum(bool(share) for share in shares) == min(of, -(-150 // size))
        if output:
            assert [row["x"] for row in together] == [i for i in range(150) if i not in (0, 49, 149)]
            assert all(row["_row_id"] == row["x"] + 1000 for row in together)


def test_tasks_are_read_together(tmp_path: Path) -> None:
    files = [write(tmp_path, numbers(3), f"{i}.parquet") | {"partition_values": {"p": str(i)}} for i in range(5)]
    plan = plan_of(tmp_path, schema_of(x=LONG, p=INTEGER), files, partitions=["p"])
    (batch,) = read_tasks(plan.context, list(tasks_of(plan.files)))
    assert batch.to_pylist() == [{"x": x, "p": p} for p in range(5) for x in range(3)]


def test_row_groups_of_decimals_are_chosen_by_their_bounds(tmp_path: Path) -> None:
    values = pa.array([Decimal(i) / 100 for i in range(400)], pa.decimal128(9, 2))
    file = write(tmp_path, pa.table({"x": values}), row_group_size=100)
    rows = rows_of(tmp_path, schema_of(x=DecimalType(9, 2)), [file], where="x BETWEEN 0.98 AND 1.02 OR x = 3.99")
    assert [r["x"] for r in rows] == [Decimal(n) / 100 for n in (98, 99, 100, 101, 102, 399)]
