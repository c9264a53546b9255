"""SQL text stored in a table: only listed functions run, from every API."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.hand_made import HandMade, field, metadata
from tests.spark.rule_cases import table_of, with_a_file

from pyspark_delta.errors import DeltaError, InvalidOperationError
from pyspark_delta.expressions.stored_functions import CURRENT, FUNCTIONS, SYNTAX, UNITS
from pyspark_delta.expressions.stored_sql import NotAllowedError, check_stored_sql
from pyspark_delta.spark.api.table import DeltaTable
from pyspark_delta.spark.engine.write.save import save
from pyspark_delta.spark.frames.catalyst.nodes import elements, kind_of, texts
from pyspark_delta.table import Table

MARK = "pyspark_delta.attack"
ATTACK = f"java_method('java.lang.System', 'setProperty', '{MARK}', 'done')"


@pytest.fixture
def unharmed(spark: SparkSession) -> Iterator[None]:
    """Afterwards, no attack has run in the JVM."""
    system = spark._jvm.java.lang.System  # type: ignore[union-attr]
    yield
    assert system.clearProperty(MARK) is None


HOSTILE: dict[str, Callable[[Path], str]] = {
    "constraint": lambda path: table_of(
        path, field("id"), field("n", "string"), configuration={"delta.constraints.c": f"id > 0 or {ATTACK} = ''"}
    ),
    "invariant": lambda path: table_of(
        path, field("id"), field("n", "string", **{"delta.invariants": f"n is not null or {ATTACK} = ''"})
    ),
    "generated": lambda path: table_of(
        path, field("id"), field("n", "string", **{"delta.generationExpression": ATTACK})
    ),
    "default": lambda path: table_of(path, field("id"), field("n", "string", CURRENT_DEFAULT=ATTACK)),
    "file": lambda path: table_of(
        path, field("id"), field("n", "string", CURRENT_DEFAULT="(select max(value) from text.`/etc/hostname`)")
    ),
    "secret": lambda path: table_of(path, field("id"), field("n", "string", CURRENT_DEFAULT="'${env:HOME}'")),
}


def _merge(spark: SparkSession, location: str) -> None:
    table = DeltaTable.forPath(spark, location).alias("t")
    table.merge(spark.range(5).alias("s"), "t.id = s.id").whenNotMatchedInsert(values={"id": "s.id"}).execute()


DOORS: dict[str, Callable[[SparkSession, str], object]] = {
    "append": lambda spark, location: save(spark.range(5), location, "append"),
    "overwrite": lambda spark, location: spark.range(5).write.format("delta").mode("overwrite").save(location),
    "update": lambda spark, location: DeltaTable.forPath(spark, location).update("id >= 0", {"id": "id + 1"}),
    "merge": _merge,
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_text_is_not_evaluated(
    delta_spark: SparkSession, unharmed: None, tmp_path: Path, kind: str, door: str
) -> None:
    location = HOSTILE[kind](tmp_path / "t")
    with_a_file(location)
    before = Table.open(location).version, sorted(Path(location).rglob("*.parquet"))
    with pytest.raises(DeltaError, match="is not evaluated, because its text uses"):
        DOORS[door](delta_spark, location)
    assert (Table.open(location).version, sorted(Path(location).rglob("*.parquet"))) == before


@pytest.mark.since("4.0")
def test_the_data_source_refuses_hostile_tables(plain_spark: SparkSession, unharmed: None, tmp_path: Path) -> None:
    location = HOSTILE["constraint"](tmp_path / "t")
    with pytest.raises(Exception, match="java_method"):
        plain_spark.range(5).selectExpr("id", "'a' n").write.format("delta").mode("append").save(location)
    assert Table.open(location).version == 0


def test_hostile_text_is_not_declared(spark: SparkSession, unharmed: None, tmp_path: Path) -> None:
    location = str(tmp_path / "t")
    save(spark.range(1, 3), location)
    alter = DeltaTable.forPath(spark, location).alter()
    builder = DeltaTable.create(spark).location(str(tmp_path / "new"))
    for declare in (
        lambda: alter.addConstraint("c", f"{ATTACK} = ''"),
        lambda: alter.setDefault("id", "'${env:HOME}'"),
        lambda: builder.addColumn("g", "STRING", generatedAlwaysAs=ATTACK).execute(),
    ):
        with pytest.raises(InvalidOperationError, match="is not evaluated"):
            declare()
    assert Table.open(location).version == 0


def test_one_of_two_hostile_constraints_can_be_dropped(spark: SparkSession, unharmed: None, tmp_path: Path) -> None:
    names = {f"delta.constraints.{name}": f"{ATTACK} = '{name}'" for name in ("a", "b")}
    location = table_of(tmp_path / "t", field("id"), configuration=names)
    DeltaTable.forPath(spark, location).alter().dropConstraint("a").dropConstraint("b")
    save(spark.range(3), location, "append")
    assert Table.open(location).version == 3


@pytest.mark.since("4.0")  # for the Python Data Source
def test_a_default_for_rows_before_the_column_is_not_evaluated(
    delta_spark: SparkSession, plain_spark: SparkSession, unharmed: None, tmp_path: Path
) -> None:
    """Spark has one in the schemas of its own tables; in Delta, a column that a file lacks is null."""
    table = HandMade(tmp_path / "t")
    table.commit(
        0,
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        metadata(field("id"), field("n", "string", EXISTS_DEFAULT=ATTACK, CURRENT_DEFAULT=ATTACK)),
        table.data("a.parquet", {"id": [1]}),
    )
    for session in (delta_spark, plain_spark):
        read = session.read.format("delta").load(str(table.path))
        assert [tuple(row) for row in read.collect()] == [(1, None)]
        assert read.schema["n"].metadata == {}


@pytest.mark.since("4.1")  # older releases lack a few of them
def test_functions_on_the_list_are_those_of_spark(spark: SparkSession) -> None:
    """Another name could be a function that the session registered. The rest has a syntax of its own."""
    known = {function.name for function in spark.catalog.listFunctions()}
    assert known | {"timestampadd", "timestampdiff", "try_cast"} >= FUNCTIONS | CURRENT


@pytest.mark.since("4.2")
def test_a_function_of_the_user_does_not_replace_one_of_spark(spark: SparkSession) -> None:
    spark.udf.register("soundex", lambda text: "replaced")
    try:
        assert spark.sql("select soundex('Robert')").first() == ("R163",)
    finally:
        spark.sql("drop temporary function if exists soundex")


# ---------------------------------------------------------------------------- what Spark's own parser makes of it
COLUMNS = ["id", "s", "select", "from", "values", "using", "with", "table", "reduce", "map"]
PIECES = """
id s select from values using with table map reduce abs concat exists transform java_method my_udf identifier any over
filter in not and or is null like case when then end cast try_cast as int decimal date timestamp interval year day
extract trim both current_date user x e t 1 2. .5 1e 3L 1.5BD + - * / = < > <=> ! ~ . , : :: -> => || | ( ( ( ( ) ) )
) () [ ] 'a' 'b''c' '\\'' "d" "\\"" r'\\' R"x" X'AB' x'00 ` `abs` `id` `a``b` -- /* */ /*+ ? ; { } $ @ # \\ ' \"
"""


def soup(source: random.Random) -> str:
    """Pieces of SQL, often in an order that Spark can parse."""
    kinds = (
        "{}",
        "{}",
        "({})",
        "abs({})",
        "id = {}",
        "{} + 1",
        "exists(s, e -> {})",
        "(select {})",
        "map({}) using 'x'",
    )
    text = " ".join(source.choice(PIECES.split()) for _ in range(source.randint(1, 4)))
    for _ in range(source.randint(0, 3)):
        text = source.choice(kinds).format(text)
    return text.replace(" ", "") if source.random() < 0.2 else text


@pytest.mark.since("4.0")  # 3.5 reads `!` alone as a name
def test_spark_reads_nothing_else_in_text_that_is_allowed(spark: SparkSession) -> None:
    """The check knows tokens only; of what it allows, Spark's parser makes no function or query that is not listed."""
    parser = spark._jsparkSession.sessionState().sqlParser()  # type: ignore[attr-defined]
    source, parsed = random.Random(19), 0
    for text in _allowed(source, 300):
        try:
            tree = parser.parseExpression(text)
        except Exception:  # not SQL
            continue
        parsed += 1
        for node in _nodes(tree):
            kind = kind_of(node)
            assert "ubquery" not in kind, text
            assert kind not in ("WindowExpression", "UnresolvedGenerator", "Literal$"), text
            # A word of the syntax is a name where the syntax has no place for it.
            if kind == "UnresolvedFunction":
                [name] = texts(node.nameParts())
                assert name.lower() in FUNCTIONS | CURRENT | SYNTAX, text
            if kind == "UnresolvedAttribute":
                assert texts(node.nameParts())[0].lower() in {*COLUMNS, *CURRENT, *SYNTAX, *UNITS}, text
    assert parsed > 50


def _allowed(source: random.Random, count: int) -> Iterator[str]:
    while count:
        text = soup(source)
        try:
            check_stored_sql(text, COLUMNS, current=True)
        except NotAllowedError:
            continue
        count -= 1
        yield text


def _nodes(tree: Any) -> Iterator[Any]:
    yield tree
    for child in elements(tree.children()):
        yield from _nodes(child)
