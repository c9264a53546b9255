"""Random sequences of everything that changes rows, on `Table` without Spark, against a model in plain Python."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from tests.row_changes_model import SCHEMA, MergeClause, Row, RowChangesModel, run_model

from pyspark_delta import Table

_TYPES = {"id": pa.int64(), "n": pa.int32(), "p": pa.string(), "v": pa.string()}


class TableModel(RowChangesModel):
    """Changes by `Table`."""

    def make(self, properties: dict[str, str], partition_by: list[str]) -> None:
        self.table = Table.create(self.path, SCHEMA, properties=properties, partition_by=partition_by)

    def write(self, rows: list[Row], mode: str, **options: bool) -> None:
        change = self.table.append if mode == "append" else self.table.overwrite
        change(self._data(rows), merge_schema=options.get("merge_schema", False))

    def delete_rows(self, condition: str) -> int:
        return self.table.delete(condition).metrics["numDeletedRows"]

    def update_rows(self, condition: str, values: dict[str, str]) -> int:
        return self.table.update(values, condition).metrics["numUpdatedRows"]

    def merge_rows(self, rows: list[Row], clauses: list[MergeClause]) -> None:
        merge = self.table.merge(self._data(rows), "t.id = s.id", target_alias="t", source_alias="s")
        for clause in clauses:
            method = (
                f"when_{clause.kind.replace('by source', 'not matched by source').replace(' ', '_')}_{clause.action}"
            )
            values = {} if clause.values is None else {"values": clause.values}
            merge = getattr(merge, method)(condition=clause.condition, **values)
        counted = sum(merge.plan().facts()[name] for name in ("rows_affected",))
        result = merge.execute().metrics
        changed = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")
        assert counted == sum(result[name] for name in changed)

    def rewrite(self) -> None:
        self.table.overwrite(self.table.scan(), data_change=False)

    def _data(self, rows: list[Row]) -> pa.Table:
        names = list(rows[0]) if rows else list(_TYPES)
        columns: dict[str, Any] = {name: [row[name] for row in rows] for name in names}
        return pa.table({name: pa.array(values, _TYPES.get(name, pa.int32())) for name, values in columns.items()})


def test_random_changes_are_as_in_the_model() -> None:
    run_model(TableModel)
