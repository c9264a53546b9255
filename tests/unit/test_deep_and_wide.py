"""Schemas of 60 levels and of 5,000 columns: work grows with the fields there are, not with their square or worse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.work import TooMuchWorkError, at_most

from pyspark_delta.actions.model import Metadata, Protocol
from pyspark_delta.ddl.column_changes import NewColumn, add_columns, drop_columns, rename
from pyspark_delta.errors import CorruptLogError, InvalidOperationError, SchemaMismatchError
from pyspark_delta.expressions.sql import parse_predicate
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.statistics import table_stats_columns
from pyspark_delta.scan.planner import plan_scan, read_context, select_columns
from pyspark_delta.schema import column_ids, merge
from pyspark_delta.schema.arrow import schema_from_arrow, schema_to_arrow, schema_to_parquet
from pyspark_delta.schema.json import parse_schema, schema_to_json
from pyspark_delta.schema.store_assignment import check_storable
from pyspark_delta.schema.types import LONG, ArrayType, DataType, MapType, StructField, StructType
from pyspark_delta.schema.widening import check_type_changes
from pyspark_delta.table import Table
from pyspark_delta.testing.table_builder import TableBuilder, add, protocol
from pyspark_delta.transaction.column_rules import check_columns
from pyspark_delta.transaction.evolution import evolve

DEPTH, WIDTH = 60, 5_000
Forms = tuple[str, pa.Schema, StructType]  # a schema as JSON, of Arrow, and with column mapping
LINES = 1_000  # for each field, or fewer: the square of 5,000 is far beyond


def _deep(levels: int, wrap: Callable[[DataType], DataType] = lambda inner: inner) -> StructType:
    found: DataType = LONG
    for _ in range(levels):
        found = wrap(StructType((StructField("a", found), StructField("b", LONG))))
    return StructType((StructField("x", found), StructField("y", LONG)))


def _wide(columns: int = WIDTH) -> StructType:
    return StructType(tuple(StructField(f"c{i}", LONG) for i in range(columns)))


SCHEMAS = {
    "60 levels of structs": (_deep(DEPTH), 2 * DEPTH),
    "60 levels of structs in arrays": (_deep(DEPTH, ArrayType), 3 * DEPTH),
    "40 levels of structs in maps in arrays": (_deep(40, lambda t: ArrayType(MapType(LONG, t))), 5 * DEPTH),
    "5,000 columns": (_wide(), WIDTH),
    "5,000 fields of a struct": (StructType((StructField("s", _wide()), StructField("y", LONG))), WIDTH),
}
_MAPPED = Protocol(
    min_reader_version=3,
    min_writer_version=7,
    reader_features=frozenset({"columnMapping"}),
    writer_features=frozenset({"columnMapping"}),
)


def _configuration(schema: StructType, mapped: bool = False, **properties: str) -> TableConfiguration:
    configured = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "99999"} if mapped else {}
    metadata = Metadata(id="t", schema_string=schema_to_json(schema), configuration={**configured, **properties})
    plain = Protocol(min_reader_version=1, min_writer_version=2)
    return TableConfiguration(_MAPPED if mapped else plain, metadata, "/t")


def _leaf(schema: StructType) -> list[str]:
    path, found = [], schema
    while isinstance(found, StructType):
        path.append(found.fields[0].name)
        found = found.fields[0].type  # type: ignore[assignment]
    return path


def _forms(schema: StructType) -> Forms:
    mapped, _ = column_ids.assign_ids(schema, 0, column_ids.random_name)
    return schema_to_json(schema), schema_to_arrow(schema), mapped


@cache
def _forms_of(shape: str) -> Forms:
    return _forms(SCHEMAS[shape][0])


def _operations(schema: StructType, forms: Forms) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What is done with schemas, each with its name. What they are given is made before they are counted."""
    text, arrow, mapped = forms
    table, by_name = _configuration(schema), _configuration(mapped, mapped=True)
    names = ",".join(f"`{name}`" for name in schema.names)
    empty, leaf = StructType((StructField("new", LONG),)), _leaf(schema)
    yield "parse", lambda: parse_schema(text)
    yield "to arrow", lambda: schema_to_arrow(schema)
    yield "to parquet", lambda: schema_to_parquet(mapped)
    yield "from arrow", lambda: schema_from_arrow(arrow)
    yield "check", lambda: check_columns(schema)
    yield "check storable", lambda: check_storable(schema, mapped)
    yield "check type changes", lambda: check_type_changes(schema)
    yield "merge with the same", lambda: merge.merge_schemas(schema, mapped, widen=True)
    yield "merge with none of it", lambda: merge.merge_schemas(empty, schema, widen=True)
    yield "keep identities", lambda: merge.keep_identities(schema, mapped)
    yield "assign ids", lambda: column_ids.assign_ids(schema, 0, column_ids.random_name)
    yield "assign ids of elements", lambda: column_ids.assign_nested_ids(mapped, 0)
    yield "inherit ids by name", lambda: column_ids.inherit_ids(schema, mapped)
    yield "inherit ids by id", lambda: column_ids.inherit_ids(mapped, mapped)
    yield "missing ids", lambda: column_ids.missing_nested_ids(mapped)
    yield "read context", lambda: read_context("/t", by_name)
    yield "select", lambda: select_columns(schema.names, schema)
    yield (
        "statistics columns",
        lambda: table_stats_columns(_configuration(schema, **{"delta.dataSkippingStatsColumns": names})),
    )
    yield "new table", lambda: evolve(None, table.metadata, keeps_files=False)
    yield (
        "map columns",
        lambda: evolve(
            table, replace(table.metadata, configuration={"delta.columnMapping.mode": "name"}), keeps_files=True
        ),
    )
    yield "another description", lambda: evolve(by_name, replace(by_name.metadata, description="new"), keeps_files=True)
    yield "add columns", lambda: add_columns(_configuration(empty), [NewColumn(f) for f in schema])
    yield "drop columns", lambda: drop_columns(by_name, [[name] for name in schema.names[1:]])
    yield "rename", lambda: rename(by_name, leaf, "other")


_NAMES = [name for name, _ in _operations(_wide(2), _forms(_wide(2)))]


@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize("shape", SCHEMAS)
def test_work_grows_with_the_fields(shape: str, name: str) -> None:
    schema, fields = SCHEMAS[shape]
    operation = dict(_operations(schema, _forms_of(shape)))[name]
    with at_most(10_000 + LINES * fields):
        assert operation() is not False


def test_too_much_work_is_noticed() -> None:
    with pytest.raises(TooMuchWorkError), at_most(100):
        parse_schema(schema_to_json(_wide(100)))


@pytest.mark.parametrize("shape", ["60 levels of structs", "5,000 columns"])
def test_rows_are_read_with_work_for_each_field(tmp_path: Path, shape: str) -> None:
    schema, fields = SCHEMAS[shape]
    rows = pa.table([_values(f.type) for f in schema], schema_to_arrow(schema, all_nullable=True))
    pq.write_table(rows, tmp_path / "f.parquet")
    described = {"format": {"provider": "parquet", "options": {}}, "partitionColumns": [], "configuration": {}}
    metadata = {"metaData": {"id": "t", "schemaString": schema_to_json(schema), **described}}
    statistics = {"numRecords": 1, "minValues": _bounds(schema), "maxValues": _bounds(schema)}
    stored = add("f.parquet", stats=orjson.dumps(statistics).decode())
    TableBuilder(tmp_path).commit(0, [protocol(), metadata, stored])
    where = f"{'.'.join(_leaf(schema))} = 1"
    with at_most(50_000 + LINES * fields):
        found = Table.open(tmp_path).scan(where=where).to_arrow()
    assert found.equals(rows)
    with at_most(50_000 + LINES * fields):
        Table.open(tmp_path).checkpoint()
    predicate = parse_predicate(where, schema)
    with at_most(50_000 + LINES * fields):
        assert plan_scan(Table.open(tmp_path).snapshot, schema.names, predicate).files.num_rows == 1


def _values(data_type: DataType) -> pa.Array:
    if not isinstance(data_type, StructType):
        return pa.array([1], pa.int64())
    return pa.StructArray.from_arrays([_values(f.type) for f in data_type], names=list(data_type.names))


def _bounds(data_type: DataType) -> Any:
    return {f.name: _bounds(f.type) for f in data_type} if isinstance(data_type, StructType) else 1


def test_columns_that_differ_in_case_are_found_at_any_depth() -> None:
    twice = StructType((StructField("a", LONG), StructField("A", LONG)))
    schema = StructType((StructField("x", ArrayType(MapType(LONG, StructType((StructField("s", twice),))))),))
    with pytest.raises(SchemaMismatchError, match=r"in s with the same name, ignoring case.*'a' and 'A'"):
        check_columns(schema)


def test_fields_are_found_exactly_before_regardless_of_case() -> None:
    struct = StructType((StructField("AB", LONG), StructField("ab", ArrayType(LONG)), StructField("straße", LONG)))
    assert struct.find("ab") is struct.fields[1]
    assert struct.find("Ab") is struct.fields[0]
    assert struct.find("STRASSE") is struct.fields[2]
    assert struct.find("c") is None


def test_columns_dropped_together_are_each_there_once() -> None:
    schema = StructType((*_wide(3), StructField("s", _wide(2))))
    table = _configuration(column_ids.assign_ids(schema, 0, column_ids.random_name)[0], mapped=True)

    def left(*paths: list[str]) -> tuple[str, ...]:
        return parse_schema(drop_columns(table, paths).metadata.schema_string).names

    assert left(["s", "c0"], ["s"], ["C1"]) == ("c0", "c2")
    for paths, says in (
        ([["c0"], ["C0"]], "no column 'C0'|no column 'c0'"),
        ([["c0"], ["c1"], ["c2"], ["s"]], "the only one of the table"),
        ([["s", "c0"], ["s", "c1"]], "the only one of the struct 's'"),
    ):
        with pytest.raises(InvalidOperationError, match=says):
            left(*paths)


@pytest.mark.parametrize("levels", [128, 500, 5_000])
def test_nesting_that_is_too_deep_is_an_error_of_ours(levels: int) -> None:
    text, arrow = '"long"', pa.int64()
    for _ in range(levels + 1):
        text = f'{{"type":"struct","fields":[{{"name":"a","type":{text},"nullable":true,"metadata":{{}}}}]}}'
        if levels < 1_000:
            arrow = pa.struct([("a", arrow)])
    with pytest.raises(CorruptLogError, match=r"nested more than 128 levels|not valid JSON"):
        parse_schema(text)
    if levels < 1_000:
        with pytest.raises(SchemaMismatchError, match="nested more than 128 levels deep"):
            schema_from_arrow(pa.schema([("x", arrow)]))


def test_nesting_that_is_allowed_is_written_and_read_back() -> None:
    schema = _deep(127)
    assert parse_schema(schema_to_json(schema)) == schema
    assert schema_from_arrow(schema_to_arrow(schema)) == schema
