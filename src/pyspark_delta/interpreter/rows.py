"""Statements that change rows, on `Table`: INSERT, DELETE, UPDATE, MERGE, TRUNCATE."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.interpreter import results
from pyspark_delta.interpreter.member_names import viewed, with_member_names
from pyspark_delta.interpreter.qualifiers import qualifiers, requalify, unqualified
from pyspark_delta.interpreter.session import Session
from pyspark_delta.interpreter.values import check_arity, columns_of_values, constant, rows_of_values
from pyspark_delta.parser.row_statements import (
    Assignment,
    DeleteFrom,
    InsertInto,
    MergeAction,
    MergeClause,
    MergeInto,
    MergeRows,
    TruncateTable,
    UpdateTable,
)
from pyspark_delta.parser.values import Path, SqlText
from pyspark_delta.schema.column_paths import column_path_text
from pyspark_delta.schema.types import StructField, StructType
from pyspark_delta.table import Table
from pyspark_delta.table.merge import TableMerge
from pyspark_delta.table.sources import RowStream, open_rows
from pyspark_delta.table.writing import Place, write
from pyspark_delta.transaction.column_rules import check_partition_names

_TARGET, _SOURCE = "target", "source"


# ------------------------------------------------------------------------------------------------ DELETE, UPDATE
def delete(statement: DeleteFrom, session: Session) -> pa.Table:
    """Delete rows; return their number."""
    _refuse_ctes(statement.ctes)
    found = qualifiers(statement.table, statement.alias)
    where = None if statement.where is None else requalify(statement.where.text, found)
    done = session.open(statement.table).delete(where, progress=session.progress)
    return _affected(done.metrics.get("numDeletedRows", 0))


def truncate(statement: TruncateTable, session: Session) -> pa.Table:
    """Delete all rows."""
    session.open(statement.table)._truncate(session.progress)
    return results.NOTHING


def update(statement: UpdateTable, session: Session) -> pa.Table:
    """Update rows; return their number."""
    _refuse_ctes(statement.ctes)
    found = qualifiers(statement.table, statement.alias)
    values = _values(statement.assignments, found, lambda text: requalify(text, found))
    where = None if statement.where is None else requalify(statement.where.text, found)
    done = session.open(statement.table).update(values, where, progress=session.progress)
    return _affected(done.metrics.get("numUpdatedRows", 0))


def _values(
    assignments: Sequence[Assignment], found: tuple[Path, ...], rewritten: Callable[[str], str]
) -> dict[str, str]:
    values: dict[str, str] = {}
    for one in assignments:
        name = column_path_text(unqualified(one.column, found))
        if name in values:
            raise InvalidOperationError(
                f"The column {name} gets two values. Give each column one value.",
                error_class="DELTA_DUPLICATE_COLUMNS_ON_UPDATE_TABLE",
            )
        values[name] = rewritten(one.value.text)
    return values


def _refuse_ctes(ctes: SqlText | None) -> None:
    if ctes is not None:
        raise InvalidOperationError(
            "WITH is supported before queries and INSERT, and as the source of MERGE: USING (WITH ... SELECT ...)."
        )


def _affected(number: int, **numbers: int) -> pa.Table:
    return results.counts(num_affected_rows=number, **numbers)


# ----------------------------------------------------------------------------------------------------------- MERGE
def merge(statement: MergeInto, session: Session) -> pa.Table:
    """Merge rows; return the numbers of affected, updated, deleted and inserted rows."""
    _refuse_ctes(statement.ctes)
    table = session.open(statement.target)
    targets = qualifiers(statement.target, statement.target_alias)
    target_alias = statement.target_alias or _TARGET
    source, sources = _merge_source(statement, table, session)
    source_alias = statement.source_alias or _SOURCE
    if source_alias.casefold() == target_alias.casefold():
        raise InvalidOperationError(
            f"Target and source have the same alias '{target_alias}'. Give them different ones."
        )

    def rewritten(text: str) -> str:
        return requalify(requalify(text, sources, source_alias), targets, target_alias)

    merging = table.merge(
        source,
        rewritten(statement.condition.text),
        source_alias=source_alias,
        target_alias=target_alias,
        merge_schema=statement.evolves,
        progress=session.progress,
    )
    for clause in statement.clauses:
        merging = _with_clause(merging, clause, targets, rewritten)
    metrics = merging.execute().metrics
    numbers = [metrics.get(f"numTargetRows{kind}", 0) for kind in ("Updated", "Deleted", "Inserted")]
    return _affected(
        sum(numbers), num_updated_rows=numbers[0], num_deleted_rows=numbers[1], num_inserted_rows=numbers[2]
    )


def _merge_source(statement: MergeInto, table: Table, session: Session) -> tuple[Any, tuple[Path, ...]]:
    """Return the rows of the source, and what may qualify its columns."""
    if isinstance(statement.source, SqlText):
        found = () if statement.source_alias is None else ((statement.source_alias,),)
        return session.rows_for(table, statement.source.text), found
    source = session.open(statement.source, statement.source_time).scan()
    return source, qualifiers(statement.source, statement.source_alias)


def _with_clause(
    merging: TableMerge, clause: MergeClause, targets: tuple[Path, ...], rewritten: Callable[[str], str]
) -> TableMerge:
    condition = None if clause.condition is None else rewritten(clause.condition.text)
    values = None if clause.assignments is None else _values(clause.assignments, targets, rewritten)
    match clause.rows, clause.action:
        case MergeRows.MATCHED, MergeAction.DELETE:
            return merging.when_matched_delete(condition)
        case MergeRows.MATCHED, _:
            if values is None:
                return merging.when_matched_update_all(condition)
            return merging.when_matched_update(values, condition)
        case MergeRows.NOT_MATCHED, _:
            if values is None:
                return merging.when_not_matched_insert_all(condition)
            return merging.when_not_matched_insert(values, condition)
        case MergeRows.NOT_MATCHED_BY_SOURCE, MergeAction.DELETE:
            return merging.when_not_matched_by_source_delete(condition)
    assert values is not None
    return merging.when_not_matched_by_source_update(values, condition)


# ---------------------------------------------------------------------------------------------------------- INSERT
def insert(statement: InsertInto, session: Session) -> pa.Table:
    """Insert rows, or replace rows by them, in one commit."""
    if statement.if_not_exists:
        raise InvalidOperationError("INSERT ... IF NOT EXISTS is not supported by Delta tables. Leave it out.")
    table = session.open(statement.table)
    static = _static_values(statement, table.schema)
    check_partition_names(table.snapshot.configuration, (one.column[-1] for one in statement.partition))
    rows = _new_rows(statement, table, session, static)
    place = Place.of(table.snapshot)
    options = place.options(
        merge_schema=statement.evolves or None,
        replace_where=_replaced(statement),
        replace_on=None if statement.replace_on is None else statement.replace_on.text,
        replace_using=tuple(column_path_text(path) for path in statement.replace_using),
        target_alias=statement.alias,
    )
    with session.operation():
        write(place, rows, "overwrite" if statement.replaces else "append", options, must_exist=True)
    return results.NOTHING


def _static_values(statement: InsertInto, schema: StructType) -> dict[str, tuple[StructField, str]]:
    """Return the columns of `PARTITION (column = value)` by their names in lower case."""
    return {
        one.column[-1].casefold(): (_field(schema, one.column), one.value.text)
        for one in statement.partition
        if one.value is not None
    }


def _field(schema: StructType, path: Path) -> StructField:
    field = schema.find(path[0]) if len(path) == 1 else None
    if field is None:
        raise InvalidOperationError(
            f"The table has no column {column_path_text(path)}; it has {', '.join(one.name for one in schema)}.",
            error_class="DELTA_COLUMN_NOT_FOUND",
            sqlstate="42703",
        )
    return field


def _replaced(statement: InsertInto) -> str | None:
    """Return the condition on the replaced rows: that of the statement, or that of its partition."""
    if statement.replace_where is not None:
        return requalify(statement.replace_where.text, qualifiers(statement.table, statement.alias))
    return statement.overwritten_partition


def _new_rows(
    statement: InsertInto, table: Table, session: Session, static: dict[str, tuple[StructField, str]]
) -> RowStream:
    """Return the new rows by the names of the table's columns."""
    listed = [one for one in table.schema if one.name.casefold() not in static]
    if statement.columns is not None:
        listed = [_field(table.schema, path) for path in statement.columns]
    _check_distinct([field.name for field in listed] + [field.name for field, _ in static.values()])
    constants = {field.name: constant(text, field) for field, text in static.values()}
    values = rows_of_values(statement.query)
    if values is not None and not statement.by_name:
        found = columns_of_values(values, listed)
        for name, value in constants.items():
            found = found.append_column(name, pa.repeat(value[0], found.num_rows))
        return open_rows(found, table.schema)
    rows = session.rows_for(table, statement.query.text)
    schema = rows.schema
    if not statement.by_name:
        if not (statement.evolves and statement.columns is None and len(schema) > len(listed)):
            check_arity(len(schema), [field.name for field in listed])
        schema = with_member_names(schema, listed)
    return _renamed(rows, schema, constants)


def _check_distinct(names: list[str]) -> None:
    seen = set[str]()
    for name in names:
        if name.casefold() in seen:
            raise InvalidOperationError(
                f"The column '{name}' is listed twice. List each column once.",
                error_class="DELTA_DUPLICATE_COLUMNS_FOUND",
            )
        seen.add(name.casefold())


def _renamed(rows: RowStream, named: pa.Schema, constants: dict[str, pa.Array]) -> RowStream:
    schema = pa.schema([*named, *(pa.field(name, value.type) for name, value in constants.items())])

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in rows.batches:
            more = [pa.repeat(value[0], len(batch)) for value in constants.values()]
            columns = [viewed(column, field.type) for column, field in zip(batch.columns, named, strict=True)]
            yield pa.RecordBatch.from_arrays([*columns, *more], schema=schema)

    return replace(rows, schema=schema, batches=batches())
