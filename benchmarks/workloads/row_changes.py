"""DELETE, UPDATE and MERGE by every peer, each time on a table of its own that is as new."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.model import ARROW, OURS, Goal, Peer, Prepared
from benchmarks.workloads.merge_sources import source_file

_HERE = __name__
DELTA_SPARK, DELTALAKE, BY_HAND = "delta-spark", "deltalake", "Spark by hand"
INNER, PROCESSES, FILES = 3, 2, 40
PEERS = (
    Peer(OURS, f"{_HERE}:ours", inner=INNER, processes=PROCESSES, session=True),
    Peer(DELTA_SPARK, f"{_HERE}:delta_spark", "delta-spark", INNER, PROCESSES, session=True),
    Peer(BY_HAND, "benchmarks.workloads.by_hand:change", inner=INNER, processes=PROCESSES, session=True),
    Peer(ARROW, f"{_HERE}:arrow", inner=INNER, processes=PROCESSES),
    Peer(DELTALAKE, f"{_HERE}:deltalake", inner=INNER, processes=PROCESSES, against=ARROW),
)
AS_DELTA_SPARK, AS_DELTALAKE = Goal(DELTA_SPARK, 1), Goal(DELTALAKE, 1)
ALL = (None,)  # the condition of the one clause that inserts


def ours(location: str, plain: str, **statement: Any) -> Prepared:
    """By pyspark-delta on Spark."""
    from benchmarks.spark_sessions import session
    from pyspark_delta import DeltaTable

    spark = session("ours")
    return on_copies(location, lambda path: _run(DeltaTable.forPath(spark, path), spark, statement), statement)


def delta_spark(location: str, plain: str, **statement: Any) -> Prepared:
    """By delta-spark, in SQL: what its Python methods call."""
    from benchmarks.spark_sessions import session

    spark = session("delta-spark")

    def change(path: str) -> None:
        spark.sql(_sql(f"delta.`{path}`", spark, statement)).collect()

    return on_copies(location, change, statement)


def arrow(location: str, plain: str, **statement: Any) -> Prepared:
    """By pyspark-delta without Spark."""
    from pyspark_delta import Table

    def change(path: str) -> None:
        table = Table.open(path)
        match statement["kind"]:
            case "delete":
                table.delete(statement.get("where"))
            case "update":
                table.update(statement["set"], where=statement["where"])
            case _:
                merge = table.merge(_arrow_source(statement), _condition(statement), target_alias="t", source_alias="s")
                if statement.get("updates", True):
                    merge = merge.when_matched_update_all()
                if statement.get("deletes"):
                    merge = merge.when_matched_delete()
                for condition in statement.get("inserts", ALL):
                    merge = merge.when_not_matched_insert_all(condition)
                merge.execute()

    return on_copies(location, change, statement)


def deltalake(location: str, plain: str, **statement: Any) -> Prepared:
    """By deltalake, which writes no deletion vectors: on the table without them."""
    from deltalake import DeltaTable

    def change(path: str) -> None:
        table = DeltaTable(path)
        match statement["kind"]:
            case "delete":
                table.delete(statement.get("where"))
            case "update":
                table.update(updates=statement["set"], predicate=statement["where"])
            case _:
                merge = table.merge(
                    _arrow_source(statement), predicate=_condition(statement), source_alias="s", target_alias="t"
                )
                if statement.get("updates", True):
                    merge = merge.when_matched_update_all()
                if statement.get("deletes"):
                    merge = merge.when_matched_delete()
                for condition in statement.get("inserts", ALL):
                    merge = merge.when_not_matched_insert_all(condition)
                merge.execute()

    return on_copies(plain, change, statement)


def _run(table: Any, spark: Any, statement: Mapping[str, Any]) -> None:
    match statement["kind"]:
        case "delete":
            table.delete(statement.get("where")).collect()
        case "update":
            table.update(statement["where"], statement["set"]).collect()
        case _:
            merge = table.alias("t").merge(_source(spark, statement).alias("s"), _condition(statement))
            if statement.get("updates", True):
                merge = merge.whenMatchedUpdateAll()
            if statement.get("deletes"):
                merge = merge.whenMatchedDelete()
            for condition in statement.get("inserts", ALL):
                merge = merge.whenNotMatchedInsertAll(condition)
            merge.execute().collect()


def _sql(name: str, spark: Any, statement: Mapping[str, Any]) -> str:
    where = f" where {statement['where']}" if statement.get("where") else ""
    match statement["kind"]:
        case "delete":
            return f"delete from {name}{where}"
        case "update":
            values = ", ".join(f"{column} = {value}" for column, value in statement["set"].items())
            return f"update {name} set {values}{where}"
    _source(spark, statement).createOrReplaceTempView("merge_source")
    clauses = []
    if statement.get("updates", True):
        clauses.append("when matched then update set *")
    if statement.get("deletes"):
        clauses.append("when matched then delete")
    conditions = [f" and {one}" if one else "" for one in statement.get("inserts", ALL)]
    clauses += [f"when not matched{condition} then insert *" for condition in conditions]
    return f"merge into {name} t using merge_source s on {_condition(statement)} {' '.join(clauses)}"


def _condition(statement: Mapping[str, Any]) -> str:
    """By what a merge finds rows."""
    return " and ".join(f"t.{name} = s.{name}" for name in statement.get("key", ["id"]))


def _source(spark: Any, statement: Mapping[str, Any]) -> Any:
    """The rows to merge, from a file that is made once."""
    return spark.read.parquet(source_file(statement))


def _arrow_source(statement: Mapping[str, Any]) -> Any:
    import pyarrow.parquet as pq

    return pq.read_table(source_file(statement))


def on_copies(location: str, change: Callable[[str], None], statement: Mapping[str, Any]) -> Prepared:
    """Every call changes a new copy of the table, whose data files are links; the answer is the rows that are left."""
    folder = tempfile.TemporaryDirectory(prefix="changes-", dir=Path(location).parent)
    number = 0

    def timed() -> str:
        nonlocal number
        number += 1
        table = Path(folder.name, f"table-{number}")
        shutil.copytree(location, table, copy_function=_link)
        change(str(table))
        return str(table)

    def answer(table: str) -> dict[str, Any]:
        from pyspark_delta.table import Table

        measure = statement.get("measure", "amount")
        if statement.get("without_data"):
            files = Table.open(table).files().num_rows
            shutil.rmtree(table)
            return {"files": files}
        found = Table.open(table).scan(columns=[measure]).to_arrow()
        shutil.rmtree(table)
        import pyarrow.compute as pc

        return {"rows": found.num_rows, measure: str(pc.sum(found[measure]).as_py())}

    return Prepared(timed, answer)


def _link(source: str, target: str) -> None:
    (shutil.copy if source.endswith(".json") else os.link)(source, target)
