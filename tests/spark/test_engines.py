"""Every engine does the same to a table: each statement runs on copies of one table, under each engine forced.

Spark is the reference. Compared are the rows with their ids and commit versions, the change feed, the counts, the
metrics and parameters of the commit, and the deletion vectors. The commit itself says which engine ran.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.types import StringType, StructField, StructType
from tests.costs import ENGINES, SetCost, engine_of
from tests.lengths import FULL, length

from pyspark_delta import DeltaTable, Table
from pyspark_delta.data.reader import read_plan
from pyspark_delta.errors import ConstraintViolationError, DeltaError
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.api.builder import IdentityGenerator
from pyspark_delta.spark.api.merge_builder import DeltaMergeBuilder
from pyspark_delta.spark.engine.write.save import save

TASKS = "Arrow in tasks"
ARROW, SPARK, NOTHING = "Arrow", "Spark", "nothing"
"""Which engine changes rows where Arrow is allowed; `NOTHING` if there is no commit."""
VECTORS = {"delta.enableDeletionVectors": "true"}
REWRITE = {"delta.enableDeletionVectors": "false"}
FEED = {"delta.enableChangeDataFeed": "true"}
ROW_IDS = {"delta.enableRowTracking": "true"}
MAPPED = {"delta.columnMapping.mode": "name"}
LAYOUT = ("TimeMs", "BytesAdded", "AddedBytes", "FilesAdded", "AddedFiles", "AddedChangeFiles")
"""The ends of the names of metrics that depend on how new rows are spread over files."""


@dataclass(frozen=True)
class Statement:
    """A statement, and who runs it where Arrow is allowed."""

    run: Callable[[DeltaTable], DataFrame]
    shown: str
    by: str = ARROW


def delete(condition: str, by: str = ARROW) -> Statement:
    return Statement(lambda table: table.delete(condition), f"delete {condition}", by)


def update(condition: str | None, values: dict[str, Any], by: str = ARROW) -> Statement:
    return Statement(lambda table: table.update(condition, values), f"update {condition} {values}", by)


def merge(
    source: str, on: str, clauses: Callable[[DeltaMergeBuilder], DeltaMergeBuilder], by: str = ARROW
) -> Statement:
    def run(table: DeltaTable) -> DataFrame:
        return clauses(table.merge(table._spark.sql(source).alias("s"), on)).execute()

    return Statement(run, f"merge on {on}", by)


def write(session: SparkSession, path: Path, rows: str, *partition_by: str, **options: str) -> DeltaTable:
    save(session.sql(rows), str(path), "append", options=options, partition_by=list(partition_by) or None)
    return DeltaTable.forPath(session, str(path))


# ------------------------------------------------------------------------------------------------- what is compared
def state(path: Path, result: Any, first_new: int, *, same_files: bool) -> dict[str, Any]:
    """What the newest commit made of a table; `first_new` is the first row id that the statements may give.

    With `same_files`, the engines found the same files, so that what concerns them is the same as well.
    """
    table = Table.open(str(path))
    snapshot = table.snapshot
    properties = snapshot.configuration.properties
    has_ids = properties.get("delta.enableRowTracking") == "true"
    rows = read_plan(plan_scan(Snapshot.load(str(path)), row_ids=has_ids)).read_all().to_pylist()
    if has_ids:  # those of new rows depend on the order in which they are written
        assert len({row["_row_id"] for row in rows}) == len(rows)
        rows = [{**row, "_row_id": min(row["_row_id"], first_new)} for row in rows]
    found: dict[str, Any] = {"result": result, "version": table.version, "rows": sorted(map(repr, rows))}
    if properties.get("delta.enableChangeDataFeed") == "true":
        changes = table.changes(starting_version=table.version).to_arrow().drop_columns(["_commit_timestamp"])
        found["changes"] = sorted(map(repr, changes.to_pylist()))
    [newest] = table.history(1)
    metrics = newest["operationMetrics"]
    found["parameters"], found["names of metrics"] = newest["operationParameters"], sorted(metrics)
    if same_files:
        found["metrics"] = {name: n for name, n in metrics.items() if not name.endswith(LAYOUT)}
        found["has change files"] = any(n != "0" for name, n in metrics.items() if "ChangeFiles" in name)
        files = snapshot.files(("path", "deletion_vector")).to_pylist()
        marked = [(file["path"], file["deletion_vector"]) for file in files if file["deletion_vector"] is not None]
        found["vectors"] = sorted((path, vector["cardinality"]) for path, vector in marked)
    else:
        found["counts"] = [metrics.get(name) for name in ("numUpdatedRows", "numDeletedRows", "numSourceRows")]
    return found


def run(session: SparkSession, path: Path, statements: Sequence[Statement], engine: str) -> list[Any]:
    """What each statement made of a table, or the error that it raised."""
    table, found = DeltaTable.forPath(session, str(path)).alias("t"), []
    mark = Table.open(str(path)).snapshot.domains().get("delta.rowTracking")
    first_new = 0 if mark is None else int(mark.configuration.strip("{}").split(":")[1]) + 1
    for number, statement in enumerate(statements):
        before, files = Table.open(str(path)).version, set(path.rglob("*.parquet"))
        try:
            result = statement.run(table).collect()
        except PySparkException as error:
            found.append((type(error), error.getCondition(), str(error) if isinstance(error, DeltaError) else None))
            assert Table.open(str(path)).version == before
            if isinstance(error, ConstraintViolationError):
                assert set(path.rglob("*.parquet")) == files, statement.shown
            continue
        found.append(state(path, result, first_new, same_files=number == 0))
        assert (found[-1]["version"] == before) is (statement.by == NOTHING), statement.shown
        if statement.by == NOTHING:
            continue
        # The sides of a small merge are joined in the driver, wherever the rows of the table were found.
        by = {ARROW: "Arrow in the driver" if statement.shown.startswith("merge") else engine, SPARK: SPARK}
        assert engine_of(str(path)) == (SPARK if engine == SPARK else by[statement.by]), statement.shown
    return found


def assert_same(
    session: SparkSession,
    cost: SetCost,
    base: Path,
    statements: Sequence[Statement],
    engines: Sequence[str] = (),
    in_tasks: int | None = None,
) -> list[Any]:
    """Run statements, one after another, on copies of a table under each engine; return what each has made of it.

    Tasks run the first `in_tasks` of them, by default all.
    """
    found: dict[str, list[Any]] = {}
    for engine in (SPARK, *(engines or [name for name in ENGINES if name != SPARK])):
        copy = base.with_name(f"{base.name} {engine} {len(list(base.parent.iterdir()))}")
        shutil.copytree(base, copy)
        cost(session, **ENGINES[engine])
        found[engine] = run(session, copy, statements[: in_tasks if engine == TASKS else None], engine)
    for engine, states in found.items():
        for statement, state, expected in zip(statements, states, found[SPARK], strict=engine != TASKS):
            assert state == expected, f"{statement.shown} by {engine}"
    return found[SPARK]


# ------------------------------------------------------------------------------------------------- rows of all types
ROWS = """
    select id, id % 3 p, if(id % 4 = 0, null, 'a b/c=ü%') q, cast(id % 100 as tinyint) tiny, cast(id as smallint) small,
    if(id % 6 = 0, null, cast(id % 5 as int)) n, id * 100 big, cast(id / 7 as float) f,
    case id % 5 when 0 then double('nan') when 1 then -0.0D when 2 then 0.0D when 3 then null else id / 3 - 5 end d,
    cast(id % 10 as decimal(12, 2)) e, cast(id / 3 as decimal(38, 18)) w, if(id % 6 = 5, null, concat('v', id % 19)) s,
    cast(concat('b', id) as binary) b, id % 2 = 0 t, date'2024-02-28' + cast(id % 4 as int) dt,
    timestamp'2024-03-09 20:00:00' + make_dt_interval(0, id) ts, timestamp_ntz'2024-03-10 02:30:00' ntz,
    if(id % 7 = 0, null, named_struct('x', cast(id % 8 as int), 'y', array(map('k', cast(null as string))))) st,
    parse_json('[1, {}]') j, cast(null as void) v
    from range(0, 120, 1, 4)
"""
CHANGES = [
    update("id % 3 = 1", {"n": "n + 1", "big": "id * -3 % 100"}),
    update("n is null or d = 0.0", {"d": "-d", "s": "'x'"}),
    update("isnan(d) or abs(d) > 5", {"d": "d * 2 + 1", "f": "1.1"}),
    update("e >= 3.5 and t.id < 70", {"e": "7", "w": "t.e", "t.small": "tiny"}),
    update("ts >= '2024-03-10 05:00:00'", {"ts": "timestamp'2024-11-03 12:00:00'", "dt": "'1500-03-01'", "ntz": "dt"}),
    update("s like 'v1%' and ntz < '2024-03-11'", {"s": "substring(s, 1, 2)", "t": "not (n > 2 and d < 3)"}),
    update("st.x = 3", {"n": "st.x", "s": "id", "b": "X'00FF'"}),
    update("p = 1 and q is null", {"p": "2", "q": "coalesce(s, 'none')", "d": "-0.0"}),
    update("id > 1000", {"n": "1"}, NOTHING),  # as the statistics of files say
    update("n = 77 and big = 77", {"n": "1"}, NOTHING),
    update(None, {"d": "-0.0D", "big": "null", "ts": "ts"}),
    update("initcap(s) = 'V1'", {"n": "n + 1"}, SPARK),
    update("id % 2 = 0", {"st.x": "5", "s": "initcap(s)"}, SPARK),
    delete("id % 7 = 2"),
    delete("coalesce(n, 9) = 9 and -d < 5"),
    delete("p = 2 and length(s) = 2"),
    delete("cbrt(id) between 1.4 and 1.6", SPARK),
    delete("st.x is null"),
    update("id % 2 = 1", {"st.x": "n", "st.y": "st.y", "j": "j"}),
    delete("id % 200 = 199", NOTHING),
]
KINDS: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "rewritten, with a feed": ({**REWRITE, **FEED}, ()),
    "all at once": ({**VECTORS, **FEED, **ROW_IDS, **MAPPED}, ("p", "q")),
}


@pytest.fixture
def new_york(delta_spark: SparkSession) -> SparkSession:
    session = delta_spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "America/New_York")
    return session


@pytest.mark.since("4.0")  # for VARIANT
@pytest.mark.parametrize("kind", KINDS if FULL else ["all at once"])
def test_c341_rows_of_all_types_change_as_by_spark(
    new_york: SparkSession, tmp_path: Path, cost: SetCost, kind: str
) -> None:
    properties, partition_by = KINDS[kind]
    write(new_york, tmp_path / "t", ROWS, *partition_by, **properties)
    # Tasks run the same functions as the driver: the first statements send them values of all types.
    found = assert_same(new_york, cost, tmp_path / "t", CHANGES, in_tasks=length(8, len(CHANGES)))
    assert all(isinstance(one, dict) for one in found)


# --------------------------------------------------------------------------------------------- what tables declare
def evolved(session: SparkSession, path: Path) -> None:
    """Columns were added, renamed, dropped and widened, and files of every age are there."""
    table = write(
        session,
        path,
        "select id, cast(id as int) n, concat('v', id) v, 1 gone, if(id % 3 = 0, null, 'a') p from range(0, 20, 1, 2)",
        "p",
        **{**VECTORS, **FEED, **ROW_IDS, **MAPPED, "delta.enableTypeWidening": "true"},
    )
    table.delete("id = 4")
    table.alter().renameColumn("v", "text")
    table.alter().dropColumns("gone")
    table.alter().changeType("n", "bigint")
    rows = "select id, id * 1000000000 n, concat('w', id) text, 'b' p, cast(id as int) late from range(20, 40, 1, 2)"
    write(session, path, rows, mergeSchema="true")


def ruled(session: SparkSession, path: Path) -> None:
    """Rows must meet conditions; a column has a default value."""
    builder = DeltaTable.create(session).location(str(path)).addColumn("id", "bigint").addColumn("n", "int", False)
    limited = StructField("v", StringType(), metadata={"__CHAR_VARCHAR_TYPE_STRING": "varchar(3)"})
    builder = builder.addColumns(StructType([limited])).addColumn("p", "string")
    for name, value in {**REWRITE, **FEED, "delta.feature.allowColumnDefaults": "supported"}.items():
        builder = builder.property(name, value)
    table = builder.property("delta.constraints.small", "n < 100 or v is null").partitionedBy("p").execute()
    table.alter().setDefault("n", "40 + 2")
    write(session, path, "select id, cast(id as int) n, concat('v', id) v, 'x' p from range(0, 20, 1, 2)")


def computed(session: SparkSession, path: Path) -> None:
    """Values are generated, and identity values are allocated."""
    builder = DeltaTable.create(session).location(str(path)).addColumn("id", "bigint").addColumn("n", "int")
    builder = builder.addColumn("twice", "bigint", generatedAlwaysAs="n * 2L")
    builder = builder.addColumn("number", "bigint", generatedAlwaysAs=IdentityGenerator(10, 5))
    for name, value in {**VECTORS, **FEED, **ROW_IDS}.items():
        builder = builder.property(name, value)
    builder.execute()
    write(session, path, "select id, cast(id as int) n from range(0, 20, 1, 2)")


def upsert(merging: DeltaMergeBuilder) -> DeltaMergeBuilder:
    return merging.whenMatchedUpdateAll().whenNotMatchedInsertAll()


DECLARED: dict[str, tuple[Callable[[SparkSession, Path], None], list[Statement]]] = {
    "columns that have changed": (
        evolved,
        [
            update("n > 25000000000 or text = 'v3'", {"n": "n * 2", "late": "7"}),
            update("late is null and p = 'a'", {"text": "'abc'", "p": "''"}),
            delete("p is null and n % 2 = 0"),
            merge(
                "select id + 15 id, 5000000000L n, 'm' text, 'c' p, 1 late from range(10)",
                "t.id = s.id and t.n < 21",
                upsert,
            ),
            delete("late is null"),
        ],
    ),
    "rules of rows": (
        ruled,
        [
            update("id > 3", {"n": "n + 1", "v": "'abc'"}),
            update("id between 1 and 8", {"n": "id * 90"}),
            update("id between 1 and 8", {"v": "'abcd'"}),
            update("id between 1 and 8", {"n": "null"}),
            update("id = 2", {"n": "default", "p": "''"}),
            merge("select 3L id, 7 n, 'm' v, '' p union all select 30, 8, 'new', 'y'", "t.id = s.id", upsert),
            merge("select 3L id, 700 n, 'm' v, 'x' p", "t.id = s.id", upsert),
            merge("select 3L id, cast(null as int) n, 'm' v, 'x' p", "t.id = s.id", upsert),
            delete("n % 3 = 0 and id > 5"),
        ],
    ),
    "computed columns": (
        computed,
        [
            delete("n % 5 = 1"),
            update("n > 10", {"n": "n + 1"}),
            update("n > 10", {"twice": "1L"}),
            update("n > 12", {"twice": "n * 2", "id": "id + 1"}),
            merge(
                "select 3L id, 70 n",
                "t.id = s.id",
                lambda m: m.whenMatchedUpdate(set={"n": "s.n"}).whenNotMatchedInsert(values={"id": "s.id", "n": "s.n"}),
            ),
            delete("twice > 30 and number >= 10"),
        ],
    ),
}


@pytest.mark.parametrize("name", DECLARED)
def test_c341_c385_c390_what_tables_declare_holds_under_every_engine(
    delta_spark: SparkSession, tmp_path: Path, cost: SetCost, name: str
) -> None:
    make, statements = DECLARED[name]
    make(delta_spark, tmp_path / "t")
    assert_same(delta_spark, cost, tmp_path / "t", statements)


@pytest.mark.parametrize("ansi", [True, False] if FULL else [False])
def test_numbers_that_are_too_large_are_what_the_session_says(
    delta_spark: SparkSession, tmp_path: Path, cost: SetCost, ansi: bool
) -> None:
    session = delta_spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", ansi)
    rows = "select id, cast(if(id in (3, 13), 2147483647, id) as int) n, 'v' v from range(0, 20, 1, 2)"
    write(session, tmp_path / "t", rows, **{**VECTORS, **FEED})
    found = assert_same(
        session,
        cost,
        tmp_path / "t",
        [
            update("n > 1", {"n": "n + 1"}, SPARK),  # Arrow leaves a number that is too large to Spark
            delete("n + 1 < 0" if not ansi else "n + 1 > 100"),
            merge(
                "select 5L id, 2147483647 n",
                "t.id = s.id",
                lambda m: m.whenMatchedUpdate(set={"n": "t.n + s.n"}),
                SPARK,
            ),
        ],
    )
    assert [isinstance(one, tuple) for one in found] == [ansi] * 3


# ------------------------------------------------------------------------------------------------------------ MERGE
TABLE = """
    select id, cast(id % 7 as int) n, case when id % 5 <> 0 then concat('v', id % 3) end v,
        cast(id * 1.25 as decimal(12, 2)) amount,
        case id % 4 when 0 then double('NaN') when 1 then -0.0D else id / 3 end d,
        date_add(date'2024-01-01', cast(id as int)) day, timestamp_seconds(id * 100000 - 5000000000) at,
        named_struct('x', id, 'y', array('a', null)) st, cast(id % 2 as string) p
    from range(0, 60, 1, 6)
"""
SOURCE = """
    select id * 3 as id, cast(id as int) n, case when id % 2 = 0 then 'new' end v, cast(-1.5 as decimal(12, 2)) amount,
        -0.0D d, date'1999-12-31' day, timestamp'1890-01-01 00:00:00' at,
        named_struct('x', -id, 'y', cast(array() as array<string>)) st, cast(id % 3 as string) p, id % 4 = 1 gone
    from range(0, 30) union all select null, 1, 'null', null, null, null, null, null, null, false
"""
NAMES = ("id", "n", "v", "amount", "d", "day", "at", "st", "p")
BOTH = "feed, vectors"
MERGED: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    BOTH: ({**FEED, **VECTORS, **ROW_IDS, "delta.columnMapping.mode": "id"}, ()),
    "partitioned": (FEED, ("p",)),
    "vectors": (VECTORS, ()),
    "rewritten": ({}, ()),
    "feed": ({**FEED, **ROW_IDS}, ()),
}
MERGES: dict[str, tuple[str, Callable[[DeltaMergeBuilder], DeltaMergeBuilder], str, tuple[str, ...]]] = {
    "upsert": ("t.id = s.id", upsert, ARROW, tuple(MERGED)),
    "clauses in turn": (
        "s.id = t.id and t.n < 6",
        lambda m: (
            m.whenMatchedDelete("s.gone")
            .whenMatchedUpdate("s.n > t.n + 5", {"v": "s.v", "n": "t.n * 2 + s.n", "p": "'moved'"})
            .whenMatchedUpdate("s.v is null", {"amount": "s.amount", "d": "1.5", "st": "s.st"})
            .whenNotMatchedInsert("s.id % 2 = 0", {name: f"s.{name}" for name in NAMES})
            .whenNotMatchedInsert("s.n > 20", {"id": "s.id", "v": "'late'"})
        ),
        ARROW,
        tuple(MERGED),
    ),
    "inserts": ("t.id = s.id", lambda m: m.whenNotMatchedInsertAll("s.gone"), ARROW, (BOTH,)),
    "deletes": ("t.id = s.id and t.p = s.p", lambda m: m.whenMatchedDelete(), ARROW, (BOTH, "partitioned")),
    "deletes and inserts": (
        "t.id = s.id",
        lambda m: m.whenMatchedDelete("t.v = 'v1'").whenNotMatchedInsert(values={"id": F.col("s.id"), "v": "s.v"}),
        ARROW,
        (BOTH,),
    ),
    "values as columns": (
        "t.id = s.id",
        lambda m: (
            m.whenMatchedUpdate(F.col("s.gone"), {"n": F.lit(5), "v": F.lit(None), "amount": F.expr("s.amount")})
            .whenMatchedUpdate(set={"n": F.col("t.n") + F.col("s.n") % 5, "d": F.col("s.d").alias("x")})
            .whenNotMatchedInsert(values={"id": F.col("s.id"), "n": -F.col("s.n") * 2, "p": F.coalesce("s.v", "s.p")})
        ),
        ARROW,
        ("partitioned",),
    ),
    "several keys": ("t.v = s.v and s.day = t.day and t.at = s.at and s.amount = t.amount", upsert, ARROW, (BOTH,)),
    "a part of a struct": (
        "t.st.x = s.id",
        lambda m: m.whenMatchedUpdate(set={"day": "s.day", "d": "t.d"}),
        ARROW,
        (BOTH,),
    ),
    "a smaller key": ("s.id = t.n", lambda m: m.whenMatchedDelete(), ARROW, (BOTH,)),
    "rows of the table alone": ("t.id = s.id", lambda m: m.whenNotMatchedBySourceDelete("t.n = 3"), ARROW, (BOTH,)),
    "a condition that is no key": ("t.id > s.id + 55", lambda m: m.whenMatchedDelete(), ARROW, (BOTH,)),
    "all kinds of rows": (
        "t.id <=> s.id",
        lambda m: (
            m.whenMatchedUpdate(set={"st.x": "s.n", "n": "s.n", "st.y": "s.st.y"})
            .whenNotMatchedInsert("s.n > 25 or s.id is null", {"id": "s.id", "st.x": "s.st.x", "v": "s.v", "p": "s.p"})
            .whenNotMatchedBySourceDelete("n = 3")
            .whenNotMatchedBySourceUpdate("t.v = 'v1'", {"n": "n + 1", "p": "'by source'"})
        ),
        ARROW,
        (BOTH, "partitioned"),
    ),
    "a function": ("t.id = s.id", lambda m: m.whenMatchedUpdate(set={"v": "initcap(s.v)"}), SPARK, (BOTH,)),
    "a function in a condition": ("t.id = s.id", lambda m: m.whenMatchedDelete("initcap(s.v) = 'New'"), SPARK, (BOTH,)),
    "a function in a key": ("t.id = s.id and initcap(t.v) = 'V0'", lambda m: m.whenMatchedDelete(), SPARK, (BOTH,)),
    "one member of a struct": ("t.id = s.id", lambda m: m.whenMatchedUpdate(set={"st.x": "5"}), ARROW, (BOTH,)),
    "floating numbers": ("t.d = s.d and t.id = s.n", lambda m: m.whenMatchedUpdate(set={"n": "t.d"}), SPARK, (BOTH,)),
}
"""The condition of each merge, its clauses, who runs it, and the kinds of tables that it changes."""
SEARCHED_BY_TASKS = {
    *((BOTH, name) for name in ("clauses in turn", "deletes", "several keys", "a part of a struct")),
    *(("partitioned", "upsert"), ("partitioned", "deletes"), ("rewritten", "upsert")),
}
"""Which merges look for rows in tasks at the usual length."""
OF_ALL_ROWS = ("rows of the table alone", "a condition that is no key", "all kinds of rows")


@pytest.mark.parametrize("kind", MERGED if FULL else [BOTH, "partitioned", "rewritten"])
def test_c252_a_merge_does_the_same_under_every_engine(
    delta_spark: SparkSession, tmp_path: Path, cost: SetCost, kind: str
) -> None:
    properties, partition_by = MERGED[kind]
    write(delta_spark, tmp_path / "t", TABLE, *partition_by, **properties).delete("id = 41")
    for name, (on, clauses, by, kinds) in MERGES.items():
        if kind in kinds:
            # Arrow says the same in tasks; or tasks are not asked, because all rows of the table would be collected.
            # They only look for rows, by keys and values of one or several columns.
            searched = FULL or (kind, name) in SEARCHED_BY_TASKS
            engines = ["Arrow in the driver"] if by == SPARK or name in OF_ALL_ROWS or not searched else []
            assert_same(delta_spark, cost, tmp_path / "t", [merge(SOURCE, on, clauses, by)], engines)


STORED = [("true", SPARK), ("false", "Arrow in the driver"), ("true", TASKS)]
"""By each engine, with deletion vectors or without, at the usual length."""


@pytest.mark.parametrize(
    ("vectors", "engine"), [(v, e) for v in ("true", "false") for e in ENGINES] if FULL else STORED
)
def test_statements_write_with_the_keys_that_were_given_for_the_table(
    delta_spark: SparkSession, s3_options: dict[str, str], cost: SetCost, engine: str, vectors: str
) -> None:
    """No key is in the environment: only the storage options of the table have it."""
    cost(delta_spark, **ENGINES[engine])
    path = f"s3://contract/{uuid.uuid4().hex}"
    keys = {
        "fs.s3a.access.key": s3_options["AWS_ACCESS_KEY_ID"],
        "fs.s3a.secret.key": s3_options["AWS_SECRET_ACCESS_KEY"],
        "fs.s3a.endpoint": s3_options["AWS_ENDPOINT_URL"],
        "fs.s3a.endpoint.region": s3_options["AWS_REGION"],
    }
    declared = {"delta.enableDeletionVectors": vectors, **FEED}
    rows = delta_spark.range(0, 4, 1, 1).selectExpr("id", "'old' v")
    rows.write.format("delta").options(**keys, **declared).save(path)
    table = DeltaTable.forPath(delta_spark, path, keys)
    table.update("id = 1", {"v": "'updated'"})
    table.delete("id = 2")
    source = delta_spark.sql("select 3L id, 'merged' v union all select 9L, 'merged'")
    merge = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert {(row.id, row.v) for row in table.toDF().collect()} == {
        (0, "old"), (1, "updated"), (3, "merged"), (9, "merged")
    }  # fmt: skip
    changes = {(row.id, row._change_type) for row in table.changes(1).collect()}
    assert {(1, "update_postimage"), (2, "delete"), (3, "update_preimage"), (9, "insert")} <= changes
