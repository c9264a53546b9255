"""INSERT in all its forms, with the writer of `insertInto` and `writeTo`.

The node that Spark has parsed says what is by name and what by position, which partitions are static, and which rows
are replaced. The frame gets the names of the table's columns, and the pipeline writes it by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyspark.sql.functions as sf

from pyspark_delta.errors import InvalidOperationError, SchemaMismatchError
from pyspark_delta.schema.column_paths import quoted
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.conf.strings import as_stored
from pyspark_delta.spark.engine.dml.stored_values import naming_values, stored
from pyspark_delta.spark.frames.catalyst.columns import tree_of
from pyspark_delta.spark.frames.catalyst.nodes import elements, kind_of, text_entries, texts
from pyspark_delta.spark.frames.catalyst.qualified import with_qualifier
from pyspark_delta.spark.frames.column_text import text_on
from pyspark_delta.spark.frames.positions import by_position
from pyspark_delta.spark.frames.schemas import empty_frame, to_spark
from pyspark_delta.spark.sql.classic.plans import Query, evolves_schema, member, named_relation, option
from pyspark_delta.spark.sql.classic.row_changes import Target
from pyspark_delta.spark.sql.classic.views import view_refusal
from pyspark_delta.spark.sql.transactions import snapshot_of, write
from pyspark_delta.statements.assignments import is_default_word
from pyspark_delta.transaction.column_rules import check_partition_names
from pyspark_delta.transaction.row_rules import row_rules
from pyspark_delta.write.engine import WriteRequest
from pyspark_delta.write.options import WriteOptions, parse_options

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_PRIVILEGES = "__required_write_privileges__"  # an option in which Spark's parser notes what a statement writes
_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
_MODE = "spark.sql.sources.partitionOverwriteMode"


@dataclass(frozen=True)
class Insert:
    """The rows of an INSERT, and how they become those of the table.

    `columns` are the names in the list of the statement, if it has one. `static` are the values of partition columns
    that the statement gives, null as None; `dynamic` are the partition columns that it only names.
    """

    snapshot: Snapshot
    query: Query
    plan: Any
    columns: tuple[str, ...] = ()
    is_by_name: bool = False
    static: Mapping[str, str | None] = field(default_factory=dict)
    dynamic: tuple[str, ...] = ()
    evolves: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that take the values of the query, in order, if these are matched by position."""
        if self.columns:
            return self.columns
        given = {name.casefold() for name in self.static}
        return tuple(name for name in self.snapshot.schema.names if name.casefold() not in given)

    def frame(self) -> DataFrame:
        """Return the rows with the names of the columns they belong to.

        Raises SchemaMismatchError for another number of columns, InvalidOperationError for a wrong partition column,
        and Spark's own errors about the query.
        """
        self._check_names()
        frame = self.query.frame(self.plan if self.is_by_name else self._with_defaults())
        if not self.is_by_name:
            frame = self._named(frame)
        for name, value in self.static.items():
            if name.casefold() in {column.casefold() for column in frame.columns}:
                raise self._mismatch(f"the partition column '{name}' has a value in PARTITION, and one in the query")
            frame = frame.withColumn(name, self._static_value(name, value))
        return stored(frame, self.snapshot.schema, evolves=self.evolves)

    def replaced(self) -> str | None:
        """Return the condition for the rows of the static partitions; None if there are none."""
        if not self.static:
            return None
        rows, condition = self._no_rows, sf.lit(True)
        for number, (name, value) in enumerate(self.static.items()):
            column = sf.col(quoted(name))
            one = column.isNull() if value is None else column == self._static_value(name, value)
            condition = one if number == 0 else condition & one
        return text_on(rows, condition)

    @property
    def _no_rows(self) -> DataFrame:
        return empty_frame(self.query.spark, to_spark(self.snapshot.schema))

    def _static_value(self, name: str, value: str | None) -> Column:
        found = to_spark(self.snapshot.schema)[self._spelled(name)].dataType
        return sf.lit(value).cast(found)

    def _spelled(self, name: str) -> str:
        found = self.snapshot.schema.find(name)
        assert found is not None
        return found.name

    # ------------------------------------------------------------------------------------------------------- names
    def _check_names(self) -> None:
        check_partition_names(self.snapshot.configuration, (*self.static, *self.dynamic))
        folded = [name.casefold() for name in self.columns]
        twice = next((name for name in self.columns if folded.count(name.casefold()) > 1), None)
        if twice is not None:
            raise self._mismatch(f"the column '{twice}' is in the list of columns twice")
        unknown = next((name for name in self.columns if self.snapshot.schema.find(name) is None), None)
        if unknown is not None and not self.evolves:
            raise self._mismatch(f"the table has no column '{unknown}'")

    def _named(self, frame: DataFrame) -> DataFrame:
        """Return the frame with the names of the columns at the same positions."""
        names, given = self.names, frame.columns
        if len(given) != len(names) and not (self.evolves and not self.columns and len(given) > len(names)):
            raise self._mismatch(
                f"the query has {len(given)} columns ({', '.join(given)}) for the {len(names)} columns "
                f"{', '.join(names)}"
            )
        return by_position(frame, names, self.snapshot.schema)

    def _mismatch(self, what: str) -> SchemaMismatchError:
        return SchemaMismatchError(
            f"INSERT into '{self.snapshot.location}' does not fit: {what}. Nothing was written. Name the columns, as "
            "in INSERT INTO t (a, b) ...; or match them by name, as in INSERT INTO t BY NAME SELECT ...",
            error_class="DELTA_INSERT_COLUMN_ARITY_MISMATCH",
        )

    # ---------------------------------------------------------------------------------------------------- DEFAULT
    def _with_defaults(self) -> Any:
        """Return the query with the defaults of columns in the place of the word DEFAULT in its rows or columns."""
        if self.snapshot.schema.find("default") is not None:
            return self.plan
        kind, jvm = kind_of(self.plan), self.query.jvm
        if kind == "UnresolvedInlineTable":
            rows = [self._filled(elements(row)) for row in elements(self.plan.rows())]
            if all(row is None for row in rows):
                return self.plan
            filled = [
                jvm.seq(elements(given) if row is None else row)
                for row, given in zip(rows, elements(self.plan.rows()), strict=True)
            ]
            return jvm.type("org.apache.spark.sql.catalyst.analysis.UnresolvedInlineTable")(
                self.plan.names(), jvm.seq(filled)
            )
        if kind == "Project":
            row = self._filled(elements(self.plan.projectList()), aliases=True)
            if row is not None:
                logical = "org.apache.spark.sql.catalyst.plans.logical.Project"
                return jvm.type(logical)(jvm.seq(row), self.plan.child())
        return self.plan

    def _filled(self, values: Sequence[Any], *, aliases: bool = False) -> list[Any] | None:
        """Return values with defaults in the place of the word DEFAULT; None if there is none."""
        places = [place for place, value in enumerate(values) if _is_default(value)]
        if not places:
            return None
        computed = {name.casefold(): text for name, text in row_rules(self.snapshot.configuration).defaults.items()}
        filled = list(values)
        for place in places:
            name = self.names[place] if place < len(self.names) else ""
            column = sf.expr(as_stored(self.query.spark, computed.get(name.casefold(), "NULL")))
            if aliases:
                column = column.alias(name or "default")
            filled[place] = tree_of(self.query.spark, column)
        return filled


def insert(query: Query, node: Any, target: Target) -> None:
    """Carry out an INSERT.

    Raises SchemaMismatchError for columns that do not fit, InvalidOperationError for a form that Delta tables do not
    have, and as `df.write`.
    """
    if node.ifPartitionNotExists():
        raise InvalidOperationError(
            "INSERT OVERWRITE ... IF NOT EXISTS is not supported for Delta tables. Nothing was written. Use MERGE, or "
            "INSERT OVERWRITE without IF NOT EXISTS.",
            error_class="DELTA_OPERATION_NOT_ALLOWED",
            sqlstate="0AKDC",
        )
    snapshot = snapshot_of(query.spark, target.table)
    static, dynamic = _partitions(node.partitionSpec())
    evolves = evolves_schema(query.jvm, node)
    rows = Insert(
        snapshot,
        query,
        node.query(),
        texts(node.userSpecifiedCols()),
        bool(node.byName()),
        static,
        dynamic,
        evolves,
    )
    options = _options(query, target, node.table(), evolves=evolves)
    mode = "append"
    criteria = option(member(query.jvm, node, "replaceCriteriaOpt", none=query.jvm.none))
    if criteria is not None:
        mode, options = "overwrite", _replacing(query, snapshot, target, criteria, options)
    elif node.overwrite():
        mode, options = "overwrite", _overwriting(query, rows, options)
    if target.is_view and mode != "append":
        raise view_refusal(target.table.name, "is a view, and rows can only be added through it")
    with naming_values():
        _write(query, target, rows, mode, options)


def replace_where(query: Query, node: Any, target: Target) -> None:
    """Carry out INSERT ... REPLACE WHERE as Spark 4.2 parses it. Raises as `insert`."""
    if target.is_view:
        raise view_refusal(target.table.name, "is a view, and rows can only be added through it")
    snapshot, evolves = snapshot_of(query.spark, target.table), evolves_schema(query.jvm, node)
    rows = Insert(snapshot, query, node.query(), is_by_name=bool(node.isByName()), evolves=evolves)
    options = _options(query, target, node.table(), evolves=evolves)
    options = replace(options, replace_where=_where(query, snapshot, target, node.deleteExpr()))
    with naming_values():
        _write(query, target, rows, "overwrite", options)


def _write(query: Query, target: Target, rows: Insert, mode: str, options: WriteOptions) -> None:
    request = WriteRequest(target.table.location, mode, options, must_exist=True)
    write(query.spark, target.table, rows.frame(), request)


# ---------------------------------------------------------------------------------------------------- what is replaced
def _overwriting(query: Query, rows: Insert, options: WriteOptions) -> WriteOptions:
    """Return the options of an INSERT OVERWRITE: all rows, those of the static partitions, or those of the new rows.

    The session decides whether partitions without a value are replaced only where there are new rows.
    """
    partitioning = rows.snapshot.configuration.metadata.partition_columns
    is_dynamic = (query.spark.conf.get(_MODE, "static") or "").lower() == "dynamic"
    if options.dynamic_partitions is not None:
        is_dynamic = options.dynamic_partitions
    if is_dynamic and len(rows.static) < len(partitioning):
        return replace(options, dynamic_partitions=True)
    return replace(options, dynamic_partitions=False, replace_where=rows.replaced() or options.replace_where)


def _replacing(query: Query, snapshot: Snapshot, target: Target, criteria: Any, options: WriteOptions) -> WriteOptions:
    match kind_of(criteria):
        case "InsertReplaceWhere":
            return replace(options, replace_where=_where(query, snapshot, target, criteria.cond()))
        case "InsertReplaceUsing":
            return replace(options, replace_using=tuple(_name(column) for column in elements(criteria.cols())))
        case "InsertReplaceOn":
            alias = option(criteria.tableAliasOpt())
            return replace(
                options,
                replace_on=str(criteria.cond().sql()),
                target_alias=None if alias is None else str(alias),
            )
    raise InvalidOperationError(
        f"INSERT with {kind_of(criteria)} is not supported. Nothing was written. Use REPLACE WHERE, REPLACE USING or "
        "REPLACE ON.",
        error_class="DELTA_OPERATION_NOT_ALLOWED",
        sqlstate="0AKDC",
    )


def _where(query: Query, snapshot: Snapshot, target: Target, expression: Any) -> str:
    """Return the condition of REPLACE WHERE in SQL, without the name of the table."""
    rows = empty_frame(query.spark, to_spark(snapshot.schema))
    qualifier = target.qualifier or (target.name,)
    return text_on(with_qualifier(rows, qualifier), query.column(expression), {qualifier: ()})


def _options(query: Query, target: Target, table: Any, *, evolves: bool) -> WriteOptions:
    named = text_entries(named_relation(query.jvm, table, target.table.name).options())
    named.pop(_PRIVILEGES, None)
    options = replace(
        parse_options({**named, **target.table.storage_options}), catalog_table=target.table.catalog_table
    )
    return replace(options, merge_schema=True) if evolves else options


def _partitions(spec: Any) -> tuple[dict[str, str | None], tuple[str, ...]]:
    """Return the partition columns with their values, and those without one."""
    static: dict[str, str | None] = {}
    dynamic: list[str] = []
    for one in elements(spec.toSeq()):
        name, value = str(one._1()), one._2()
        if value.isEmpty():
            dynamic.append(name)
        else:
            given = value.get()
            static[name] = None if given is None or str(given) == _NULL_PARTITION else str(given)
    return static, tuple(dynamic)


def _name(column: Any) -> str:
    return column if isinstance(column, str) else texts(column.nameParts())[-1]


def _is_default(expression: Any) -> bool:
    if kind_of(expression) == "Alias":
        expression = expression.child()
    return kind_of(expression) == "UnresolvedAttribute" and is_default_word(texts(expression.nameParts()))
