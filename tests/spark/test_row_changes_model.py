"""Random sequences of everything that changes rows, on Spark sessions, against a model in plain Python."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType
from tests.costs import SPARK, TASKS, set_cost
from tests.row_changes_model import SCHEMA, MergeClause, Row, RowChangesModel, run_model

from pyspark_delta import DeltaTable
from pyspark_delta.spark.engine.write.save import save


class SparkModel(RowChangesModel):
    """Changes by `DeltaTable` and `df.write`."""

    spark: SparkSession

    @initialize(by_workers=st.booleans(), by_spark=st.booleans())
    def choose(self, by_workers: bool, by_spark: bool) -> None:
        if by_workers:  # which this process spares where files are few
            set_cost(self.spark, **TASKS)
        if by_spark:  # also what Arrow would carry out by itself
            set_cost(self.spark, **SPARK, **(TASKS if by_workers else {}))

    def make(self, properties: dict[str, str], partition_by: list[str]) -> None:
        builder = DeltaTable.create(self.spark).location(self.path).addColumns(StructType.fromDDL(SCHEMA))
        for name, value in properties.items():
            builder = builder.property(name, value)
        self.table = builder.partitionedBy(*partition_by).execute()

    def write(self, rows: list[Row], mode: str, **options: bool) -> None:
        save(self._frame(rows), self.path, mode, options={"mergeSchema": options.get("merge_schema", False)})

    def delete_rows(self, condition: str) -> int:
        return int(self.table.delete(condition).collect()[0][0])

    def update_rows(self, condition: str, values: dict[str, str]) -> int:
        return int(self.table.update(condition, values).collect()[0][0])

    def merge_rows(self, rows: list[Row], clauses: list[MergeClause]) -> None:
        merging = self.table.alias("t").merge(self._frame(rows).alias("s"), "t.id = s.id")
        for clause in clauses:
            match clause.kind, clause.action:
                case "matched", "delete":
                    merging = merging.whenMatchedDelete(clause.condition)
                case "matched", "update":
                    merging = merging.whenMatchedUpdate(clause.condition, clause.values)
                case "not matched", "insert":
                    merging = merging.whenNotMatchedInsert(clause.condition, clause.values)
                case "by source", "delete":
                    merging = merging.whenNotMatchedBySourceDelete(clause.condition)
                case "by source", "update":
                    merging = merging.whenNotMatchedBySourceUpdate(clause.condition, clause.values)
        merging.execute()

    def rewrite(self) -> None:
        self.table.toDF().write.format("delta").mode("overwrite").option("dataChange", "false").save(self.path)

    def teardown(self) -> None:
        set_cost(self.spark)
        super().teardown()

    def _frame(self, rows: list[Row]) -> Any:
        types = {"id": "bigint", "n": "int", "p": "string", "v": "string"}
        names = list(rows[0]) if rows else list(types)
        schema = ", ".join(f"{name} {types.get(name, 'int')}" for name in names)
        return self.spark.createDataFrame([tuple(row[name] for name in names) for row in rows], schema)


def test_random_changes_are_as_in_the_model(delta_spark: SparkSession) -> None:
    SparkModel.spark = delta_spark
    run_model(SparkModel)
