"""Objects show themselves in a line and in notebooks: short, escaped, and without reading anything."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from pyspark_delta.schema.json import parse_schema
from pyspark_delta.schema.types import LONG, StructField, StructType
from pyspark_delta.table import ChangeResult, Table
from pyspark_delta.transaction.transaction import Transaction

HOSTILE = "<script>alert('&\"')</script>"


class Cells(HTMLParser):
    """Collects the elements and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.elements.add(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    made = Table.create(
        tmp_path_factory.mktemp("<b>tables") / "t",
        {HOSTILE: "string", "n": "bigint"},
        properties={"delta.columnMapping.mode": "name", "delta.enableChangeDataFeed": True},
    )
    made.append({HOSTILE: [HOSTILE], "n": [1]})
    return made


SHOWN: dict[str, tuple[Callable[[Table], Any], str, list[str]]] = {
    "table": (lambda t: t, "Table('LOCATION', version=1)", [HOSTILE, "columnMapping"]),
    "snapshot": (lambda t: t.snapshot, "Snapshot('LOCATION', version=1)", [HOSTILE]),
    "scan": (
        lambda t: t.scan(["n"], where="n > 0").limit(5),
        "Scan('LOCATION', version=1, 1 file, at most 5 rows: n: long)",
        ["n > 0L", "5"],
    ),
    "changes": (
        lambda t: t.changes(0, where="n > 0", columns=["n", "_change_type"]),
        "Changes('LOCATION', versions 0 to 1: n: long, _change_type: string)",
        ["n > 0L"],
    ),
    "schema": (
        lambda t: t.schema,
        f"StructType({HOSTILE}: string, n: long)",
        [f" |-- {HOSTILE}: string (nullable = true)"],
    ),
    "plan": (
        lambda t: t.delete(f"`{HOSTILE}` = 'x'", plan=True),
        "ChangePlan(DELETE on version 1: 0 rows, 0 files, nothing)",
        ["DELETE", HOSTILE],
    ),
    "result": (
        lambda t: ChangeResult(3, {"numOutputRows": 2}),
        "ChangeResult(version=3, numOutputRows=2)",
        ["numOutputRows"],
    ),
    "merge": (
        lambda t: t.merge({"n": [1]}, f"t.n = s.n AND t.`{HOSTILE}` = 'x'").when_matched_delete("s.n > 0"),
        f"TableMerge(on t.n = s.n AND t.`{HOSTILE}` = 'x', WHEN MATCHED THEN DELETE)",
        [HOSTILE, "s.n > 0"],
    ),
    "alter": (lambda t: t.alter(), "TableAlter('LOCATION')", ["LOCATION"]),
    "transaction": (lambda t: Transaction.on(t.snapshot), "Transaction('LOCATION', base=1, open)", ["LOCATION"]),
}


@pytest.mark.parametrize("kind", SHOWN)
def test_objects_show_what_they_are(table: Table, kind: str) -> None:
    make, line, contained = SHOWN[kind]
    shown = make(table)
    assert repr(shown) == line.replace("LOCATION", table.location)
    page = Cells(shown._repr_html_())
    assert page.elements <= {"table", "caption", "tr", "th", "td"}
    for text in contained:
        assert text.replace("LOCATION", table.location) in "\n".join(page.texts)


def test_nothing_is_read(tmp_path: Path) -> None:
    table = Table.write(tmp_path / "t", {"n": [1]})
    shown = [table, table.snapshot, table.scan(), table.schema, table.alter(), Transaction.on(table.snapshot)]
    before = [(repr(item), item._repr_html_()) for item in shown]
    shutil.rmtree(tmp_path / "t")
    assert [(repr(item), item._repr_html_()) for item in shown] == before


def test_wide_schemas_stay_short(tmp_path: Path) -> None:
    wide = StructType(tuple(StructField(f"column {n}", LONG) for n in range(1000)))
    assert repr(wide).endswith(" more)")
    assert len(repr(wide)) < 150
    deep = wide
    for _ in range(5):
        deep = StructType((StructField("inner", deep),))
    assert len(repr(deep)) < 150
    assert len(Table.create(tmp_path, {f"c{n}": "bigint" for n in range(200)})._repr_html_()) < 2000


def test_a_schema_prints_as_the_tree_of_pyspark() -> None:
    types = pytest.importorskip("pyspark.sql.types")
    schema = parse_schema(NESTED)
    assert schema.tree() + "\n" == types.StructType.fromJson(json.loads(NESTED)).treeString()
    assert schema.tree().splitlines()[:2] == ["root", " |-- id: long (nullable = false)"]


NESTED = """{"type":"struct","fields":[
  {"name":"id","type":"long","nullable":false,"metadata":{}},
  {"name":"x","type":"decimal(10,2)","nullable":true,"metadata":{}},
  {"name":"at","type":"timestamp_ntz","nullable":true,"metadata":{}},
  {"name":"l","nullable":true,"metadata":{},"type":{"type":"array","containsNull":false,"elementType":
    {"type":"struct","fields":[{"name":"a","type":"byte","nullable":true,"metadata":{}}]}}},
  {"name":"m","nullable":true,"metadata":{},"type":{"type":"map","keyType":"string","valueContainsNull":true,
    "valueType":{"type":"array","elementType":"integer","containsNull":true}}}]}"""


def test_builders_of_spark_show_what_they_would_do(table: Table) -> None:
    pytest.importorskip("pyspark")
    from pyspark_delta.ddl.create import CreateMode
    from pyspark_delta.spark.api.builder import DeltaTableBuilder
    from pyspark_delta.spark.api.merge_builder import DeltaMergeBuilder
    from pyspark_delta.spark.api.transaction import DeltaTransaction
    from pyspark_delta.statements.merge.merge import Merge

    unused: Any = None
    builder: Any = DeltaTableBuilder(unused, CreateMode.REPLACE, unused)
    builder.location("/data/t").property("delta.appendOnly", HOSTILE).partitionedBy("p").comment("text")
    assert repr(builder) == "DeltaTableBuilder(replace, /data/t)"
    assert {HOSTILE, "p", "text"} <= set(Cells(builder._repr_html_()).texts)
    merge = DeltaMergeBuilder(Merge(unused, f"t.n = '{HOSTILE}'", ()), unused, unused).whenMatchedDelete("n = 1")
    assert repr(merge) == f"DeltaMergeBuilder(on t.n = '{HOSTILE}', WHEN MATCHED THEN DELETE)"
    assert f"t.n = '{HOSTILE}'" in Cells(merge._repr_html_()).texts
    transaction = DeltaTransaction(unused, table.snapshot, Transaction.on(table.snapshot))
    assert repr(transaction) == f"DeltaTransaction({table.location!r}, base=1, open)"
    assert table.location in Cells(transaction._repr_html_()).texts
