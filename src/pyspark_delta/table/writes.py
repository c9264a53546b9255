"""The methods of `Table` that write rows and change them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict, Unpack, overload

import pyarrow as pa

from pyspark_delta.engines.arrow.engines import ArrowSettings
from pyspark_delta.engines.arrow.merge_source import HeldRows
from pyspark_delta.errors import InvalidOptionError
from pyspark_delta.progress import ShowProgress, operation
from pyspark_delta.statements.delete import Delete, Truncate
from pyspark_delta.statements.merge.merge import Merge
from pyspark_delta.statements.plan import ChangePlan
from pyspark_delta.statements.update import Update
from pyspark_delta.table.alter import TableAlter, alteration
from pyspark_delta.table.arguments import check_arguments
from pyspark_delta.table.merge import MERGED, TableMerge
from pyspark_delta.table.refreshing import show_change
from pyspark_delta.table.results import ChangeResult
from pyspark_delta.table.sources import open_rows
from pyspark_delta.table.writing import (
    Place,
    file_options,
    plan_of_write,
    plan_statement,
    provenance,
    run_statement,
    write,
)
from pyspark_delta.write.options import WriteOptions

Txn = tuple[str, int] | None
CommitInfo = str | Mapping[str, Any] | None


class AppendOptions(TypedDict, total=False):
    """The options of `WritableTable.append`, for type checkers."""

    merge_schema: bool
    txn: Txn
    commit_info: CommitInfo
    progress: ShowProgress
    max_records_per_file: int | None
    target_file_size: int | None
    compression: str | None


class OverwriteOptions(AppendOptions, total=False):
    """The options of `WritableTable.overwrite`, for type checkers."""

    where: str | None
    partitions: Literal["dynamic"] | None
    overwrite_schema: bool
    partition_by: Sequence[str] | None
    data_change: bool


class WritableTable(ABC):
    """Changes of a table with Arrow, one commit each. They apply to the latest version, which the object then shows.

    `data` and `source` are rows: an object with `__arrow_c_stream__` or `__arrow_c_array__` (PyArrow, Polars, pandas,
    DuckDB), a scan, a PyArrow dataset, a list of dicts, a dict of columns, or an iterator of record batches. Conditions
    and values are SQL text that Arrow computes exactly as Spark does; other text is an error that names the reason.

    `txn`, the id of an application and the number of its write, makes a change take effect once (C180). `commit_info`
    is kept with the commit as `userMetadata`; a mapping becomes JSON. With `plan=True`, a method returns the plan and
    changes nothing until its `execute`.

    `progress` is None for a bar after two seconds, in a terminal or a notebook with rich installed; False for no bar;
    or a function that is called with each `Progress`. If it raises an exception, the change is cancelled: nothing is
    committed, and no file stays behind.
    """

    @abstractmethod
    def _place(self) -> Place:
        """Return the table to change. Raises InvalidOperationError for an old version that the caller asked for."""

    @abstractmethod
    def refresh(self) -> Any:
        """Show the latest version."""

    # ------------------------------------------------------------------------------------------------------- rows
    @overload
    def append(self, data: Any, *, plan: Literal[False] = False, **options: Unpack[AppendOptions]) -> ChangeResult: ...
    @overload
    def append(
        self, data: Any, *, plan: Literal[True], **options: Unpack[AppendOptions]
    ) -> ChangePlan[ChangeResult]: ...
    @check_arguments
    def append(
        self,
        data: Any,
        *,
        merge_schema: bool = False,
        txn: Txn = None,
        commit_info: CommitInfo = None,
        progress: ShowProgress = None,
        max_records_per_file: int | None = None,
        target_file_size: int | None = None,
        compression: str | None = None,
        plan: bool = False,
    ) -> ChangeResult | ChangePlan[ChangeResult]:
        """Add rows. Columns are matched by name; missing ones get their default, their generated value, or null.

        `merge_schema` adds columns that the table lacks. `target_file_size` is in bytes.

        Raises SchemaMismatchError for columns and types that do not fit, ConstraintViolationError for rows that violate
        a constraint, InvalidOperationError for what only Spark computes, and CommitConflictError.
        """
        options = self._place().options(
            files=file_options(max_records_per_file, target_file_size, compression),
            merge_schema=merge_schema,
            **provenance(txn, commit_info),
        )
        return self._write(data, "append", options, plan, progress)

    @overload
    def overwrite(
        self, data: Any, *, plan: Literal[False] = False, **options: Unpack[OverwriteOptions]
    ) -> ChangeResult: ...
    @overload
    def overwrite(
        self, data: Any, *, plan: Literal[True], **options: Unpack[OverwriteOptions]
    ) -> ChangePlan[ChangeResult]: ...
    @check_arguments
    def overwrite(
        self,
        data: Any,
        *,
        where: str | None = None,
        partitions: Literal["dynamic"] | None = None,
        merge_schema: bool = False,
        overwrite_schema: bool = False,
        partition_by: Sequence[str] | None = None,
        data_change: bool = True,
        txn: Txn = None,
        commit_info: CommitInfo = None,
        progress: ShowProgress = None,
        max_records_per_file: int | None = None,
        target_file_size: int | None = None,
        compression: str | None = None,
        plan: bool = False,
    ) -> ChangeResult | ChangePlan[ChangeResult]:
        """Replace all rows; with `where` those that meet the condition, which the new rows must meet too.

        With `partitions="dynamic"`, the rows of the partitions that occur in the data are replaced. `overwrite_schema`
        gives the table the schema of the data, and `partition_by` other partition columns with it. `data_change=False`
        declares that the rows are the same as before, only arranged in other files. Raises as `append`.
        """
        if partitions not in (None, "dynamic"):
            raise InvalidOptionError(f"partitions is 'dynamic' or None, found {partitions!r}.", option="partitions")
        if where is not None and partitions is not None:
            raise InvalidOptionError("Give either where or partitions: each states which rows are replaced.")
        options = self._place().options(
            files=file_options(max_records_per_file, target_file_size, compression),
            replace_where=where,
            dynamic_partitions=partitions == "dynamic",
            merge_schema=merge_schema,
            overwrite_schema=overwrite_schema,
            partition_by=None if partition_by is None else tuple(partition_by),
            data_change=data_change,
            **provenance(txn, commit_info),
        )
        return self._write(data, "overwrite", options, plan, progress)

    def _write(
        self, data: Any, mode: str, options: WriteOptions, plan: bool, progress: ShowProgress
    ) -> ChangeResult | ChangePlan[ChangeResult]:
        place = self._place()
        with operation(progress):
            rows = open_rows(data, place.latest().schema)
            if plan:
                return plan_of_write(place, rows, mode, options)
            result = write(place, rows, mode, options, must_exist=True)
        show_change(self.refresh)
        return result

    # ------------------------------------------------------------------------------------------------- statements
    @overload
    def delete(
        self,
        where: str | None = None,
        *,
        txn: Txn = None,
        commit_info: CommitInfo = None,
        progress: ShowProgress = None,
        plan: Literal[False] = False,
    ) -> ChangeResult: ...
    @overload
    def delete(
        self,
        where: str | None = None,
        *,
        txn: Txn = None,
        commit_info: CommitInfo = None,
        progress: ShowProgress = None,
        plan: Literal[True],
    ) -> ChangePlan[ChangeResult]: ...
    @check_arguments
    def delete(
        self,
        where: str | None = None,
        *,
        txn: Txn = None,
        commit_info: CommitInfo = None,
        progress: ShowProgress = None,
        plan: bool = False,
    ) -> ChangeResult | ChangePlan[ChangeResult]:
        """Delete the rows for which a condition is true, all rows without one.

        Raises InvalidPredicateError, AppendOnlyTableError, InvalidOperationError if Arrow does not compute the
        condition exactly, and CommitConflictError.
        """
        options = self._place().options(**provenance(txn, commit_info))
        statement = Delete(ArrowSettings(options).open, where)
        result: ChangeResult | ChangePlan[ChangeResult] = self._run(
            statement, options, ("numDeletedRows",), plan, progress
        )
        return result

    @overload
    def update(
        self,
        values: Mapping[str, str],
        where: str | None = None,
        *,
        txn: Txn = None,
        commit_info: CommitInfo = None,
        progress: ShowProgress = None,
        plan: Literal[False] = False,
    ) -> ChangeResult: ...
    @overload
    def update(
        self,
        values: Mapping[str, str],
        where: str | None = None,
        *,
        txn: Txn = None,
        commit_info: CommitInfo = None,
        progress: ShowProgress = None,
        plan: Literal[True],
    ) -> ChangePlan[ChangeResult]: ...
    @check_arguments
    def update(
        self,
        values: Mapping[str, str],
        where: str | None = None,
        *,
        txn: Txn = None,
        commit_info: CommitInfo = None,
        progress: ShowProgress = None,
        plan: bool = False,
    ) -> ChangeResult | ChangePlan[ChangeResult]:
        """Give rows new values: SQL by the name of the column, such as `{"n": "n + 1"}`.

        Raises as `delete`, ConstraintViolationError, and InvalidOperationError for columns that the table lacks.
        """
        if not values:
            raise ValueError("values must hold a column and its new value, such as {'n': 'n + 1'}, found {}.")
        options = self._place().options(**provenance(txn, commit_info))
        statement = Update(ArrowSettings(options).open, values, where)
        result: ChangeResult | ChangePlan[ChangeResult] = self._run(
            statement, options, ("numUpdatedRows",), plan, progress
        )
        return result

    @check_arguments
    def merge(
        self,
        source: Any,
        on: str,
        *,
        source_alias: str = "source",
        target_alias: str = "target",
        merge_schema: bool = False,
        txn: Txn = None,
        commit_info: CommitInfo = None,
        progress: ShowProgress = None,
    ) -> TableMerge:
        """Start a merge of rows into the table; its methods add clauses, `execute` runs it in one commit.

        Conditions and values name columns as `target.id` and `source.id`, or by the given aliases. `merge_schema` adds
        source columns that the table lacks. A stream is read when the merge runs; if it is large, it is held in a
        temporary file.
        """
        place = self._place()
        options = place.options(**provenance(txn, commit_info))
        rows = open_rows(source, place.latest().schema)
        settings = ArrowSettings(options)
        most = None if isinstance(source, pa.Table) else settings.cost.merge_bytes
        held = HeldRows(rows.batches, rows.schema, most, rows.total)
        opened = settings.merging(held, source_alias, rows.reads)

        def run(merge: Merge, plan: bool) -> Any:
            try:
                return self._run(merge, options, MERGED, plan, progress)
            finally:
                if not plan:
                    held.close()

        return TableMerge(Merge(opened, on, target_alias, evolves=merge_schema), run)

    def alter(self, *, progress: ShowProgress = None) -> TableAlter:
        """Return the changes to what the table declares: columns, constraints, properties, clustering."""
        place = self._place()
        return TableAlter(place.location, alteration(place.latest, progress), self.refresh)

    def _run(
        self,
        statement: Delete | Update | Merge,
        options: WriteOptions,
        counted: tuple[str, ...],
        plan: bool,
        progress: ShowProgress,
    ) -> Any:
        place = self._place()
        with operation(progress):
            if plan:
                return plan_statement(place, statement, options, counted)
            result = run_statement(place, statement, options, counted)
        show_change(self.refresh)
        return result

    def _truncate(self, progress: ShowProgress) -> None:
        """Delete all rows as TRUNCATE TABLE does. Raises as `delete`."""
        options = self._place().options()
        self._run(Truncate(ArrowSettings(options).open), options, (), False, progress)
