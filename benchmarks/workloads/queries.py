"""One query on a table with data, by every implementation: the table is opened, planned and read each time.

A query is plain data: the columns it sums up, a condition and a column to group by, all in SQL that every peer
understands. A full scan gives all rows to the engine: to Spark's noop sink, or as Arrow batches.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.model import ARROW, OURS, Peer, Prepared

_HERE = __name__
INNER, PROCESSES = 5, 2
DELTA_SPARK, PARQUET, ROW_INDEX = "delta-spark", "Spark on plain Parquet", "Spark on plain Parquet, with row_index"
PEERS = (
    Peer(OURS, f"{_HERE}:ours", inner=INNER, processes=PROCESSES, session=True),
    Peer(PARQUET, f"{_HERE}:parquet", inner=INNER, processes=PROCESSES, session=True),
    Peer(DELTA_SPARK, f"{_HERE}:delta_spark", "delta-spark", INNER, PROCESSES, session=True),
    Peer(ARROW, f"{_HERE}:arrow", inner=INNER, processes=PROCESSES),
    Peer("deltalake", f"{_HERE}:deltalake", inner=INNER, processes=PROCESSES, against=ARROW),
    Peer("polars", f"{_HERE}:polars", inner=INNER, processes=PROCESSES, against=ARROW),
)


@dataclass(frozen=True)
class Query:
    """`select count(*), sum(column)...`, or all rows when `full`."""

    sums: tuple[str, ...] = ("id", "amount")
    where: str | None = None
    group: str | None = None
    full: bool = False

    def arguments(self) -> dict[str, Any]:
        """As arguments of the functions of this module."""
        return asdict(self)

    def sql(self, rename: bool = False) -> str:
        """The text; `rename` takes the physical names of columns."""
        name = _physical if rename else str
        values = ["count(*) as n", *(f"sum({name(c)}) as {c}" for c in self.sums)]
        if self.group:
            values.insert(0, f"{name(self.group)} as {self.group}")
        where = f" where {self.where}" if self.where else ""
        return f"select {', '.join(values)} from t{where}" + (f" group by {name(self.group)}" if self.group else "")


def _physical(name: str) -> str:
    from benchmarks.data_tables import physical

    return f"`{physical(name)}`"


# --------------------------------------------------------------------------------------------------------- on Spark
def ours(location: str, **arguments: Any) -> Prepared:
    from benchmarks.spark_sessions import session

    return _on_spark(session("ours"), "delta", location, **arguments)


def delta_spark(location: str, **arguments: Any) -> Prepared:
    from benchmarks.spark_sessions import session

    return _on_spark(session("delta-spark"), "delta", location, **arguments)


def parquet(location: str, plain: str | None = None, mapped: bool = False, **arguments: Any) -> Prepared:
    """The same files as they are, or those of another table: without deletion vectors."""
    from benchmarks.spark_sessions import session

    return _on_spark(session("parquet"), "parquet", plain or location, rename=mapped, **arguments)


def parquet_row_index(location: str, plain: str, **arguments: Any) -> Prepared:
    """Also reads the position of each row, which applying deletion vectors needs."""
    from benchmarks.spark_sessions import session

    spark, query = session("parquet"), _query(arguments)
    text = query.sql().replace(" from t", ", sum(row_index) as i from t")

    def timed() -> list[Any]:
        rows = spark.read.parquet(plain).selectExpr("*", "_metadata.row_index as row_index")
        rows.createOrReplaceTempView("t")
        return spark.sql(text).collect()

    return Prepared(timed, len)


def _on_spark(spark: Any, form: str, location: str, rename: bool = False, **arguments: Any) -> Prepared:
    query = _query(arguments)

    def run(text: str) -> list[Any]:
        spark.read.format(form).load(location).createOrReplaceTempView("t")
        return spark.sql(text).collect()

    if not query.full:
        text = query.sql(rename)
        return Prepared(lambda: run(text), lambda rows: _sorted(tuple(row) for row in rows))
    expected = _sorted(tuple(row) for row in run(query.sql(rename)))

    def timed() -> None:
        spark.read.format(form).load(location).write.format("noop").mode("overwrite").save()

    return Prepared(timed, lambda _: expected)


# ---------------------------------------------------------------------------------------------------- without Spark
def arrow(location: str, **arguments: Any) -> Prepared:
    import polars  # noqa: F401 - decodes columns of numbers in a process that has imported it
    import pyarrow.compute as pc

    from pyspark_delta.table import Table

    query = _query(arguments)

    def summed(table: Any) -> list[Any]:
        if query.group:
            values = [(query.sums[0], "count"), *((c, "sum") for c in query.sums)]
            return list(table.group_by(query.group).aggregate(values).to_pydict().values())
        return [table.num_rows, *(pc.sum(table.column(c)).as_py() or 0 for c in query.sums)]

    if query.full:
        return Prepared(
            lambda: [b.num_rows for b in Table.open(location).scan().to_batches()],
            lambda rows: [[sum(rows), *(None for _ in query.sums)]],
        )
    columns = list(dict.fromkeys([*query.sums, *([query.group] if query.group else [])]))

    def timed() -> list[Any]:
        return summed(Table.open(location).scan(columns=columns, where=query.where).to_arrow())

    if query.group:
        return Prepared(timed, lambda columns: _sorted(zip(columns[0], *columns[1:], strict=True)))
    return Prepared(timed, lambda row: [row])


def deltalake(location: str, **arguments: Any) -> Prepared:
    from deltalake import DeltaTable, QueryBuilder

    query = _query(arguments)
    if query.full:
        return Prepared(
            lambda: [batch.num_rows for batch in DeltaTable(location).scan()],
            lambda rows: [[sum(rows), *(None for _ in query.sums)]],
        )

    def timed() -> Any:
        return QueryBuilder().register("t", DeltaTable(location)).execute(query.sql()).read_all()

    return Prepared(timed, _arrow_rows)


def polars(location: str, **arguments: Any) -> Prepared:
    import polars as pl

    query = _query(arguments)
    if query.full:
        return Prepared(
            lambda: pl.scan_delta(location).collect(),
            lambda frame: [[frame.height, *(frame[c].sum() for c in query.sums)]],
        )

    def timed() -> Any:
        return pl.SQLContext(t=pl.scan_delta(location)).execute(query.sql()).collect()

    return Prepared(timed, lambda frame: _sorted(frame.rows()))


def _query(arguments: dict[str, Any]) -> Query:
    names = Query.__dataclass_fields__
    return Query(**{name: value for name, value in arguments.items() if name in names})


def _arrow_rows(table: Any) -> list[list[Any]]:
    import pyarrow as pa

    return _sorted(zip(*pa.table(table).to_pydict().values(), strict=True))


def _sorted(rows: Any) -> list[list[Any]]:
    return sorted(list(row) for row in rows)
