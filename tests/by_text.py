"""Statements of `DeltaTable` as SQL text: tests of the methods then test SQL as well.

The fixture `by_text` writes each DELETE, UPDATE and MERGE that a method executes as a statement, and runs it with
`spark.sql`. A Column has a text only if it is a name, or was made with `F.expr`: where there is none, the method runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

import pytest
from pyspark.sql import DataFrame

from pyspark_delta import DeltaTable
from pyspark_delta.engines.row_changes import RowAction
from pyspark_delta.schema.column_paths import quoted
from pyspark_delta.spark.conf.classes import has_classic_package
from pyspark_delta.spark.frames.catalyst.nodes import texts
from pyspark_delta.spark.frames.column_text import name_parts, sql_of
from pyspark_delta.statements.contract import Statement
from pyspark_delta.statements.delete import Delete
from pyspark_delta.statements.merge.clauses import Clause
from pyspark_delta.statements.merge.merge import Merge
from pyspark_delta.statements.update import Update

BY_METHOD = frozenset(
    (
        "test_c161_c252_c256_c413_vectors_are_merged_and_share_a_file",
        "test_update_any_column",
        "test_columns_may_be_named_with_the_alias_of_the_table",
        "test_c392_default_is_the_default_of_the_column",
        "test_columns_of_a_source_that_is_kept",
    )
)
"""Tests in which some statements have no text: their Columns have none."""

WITHOUT_TEXT = frozenset(
    (
        *("test_a_plan_changes_nothing_until_it_is_executed", "test_update_any_column"),
        # Columns of `F.expr` keep their text from PySpark 4.0 on.
        *(() if has_classic_package() else ("test_columns_may_be_named_with_the_alias_of_the_table",)),
    )
)
"""Tests in which no statement has one: they execute plans, which SQL has not, or give Columns to each statement."""

_numbers = count()


class NoTextError(Exception):
    """A Column is neither a name nor SQL text."""


@pytest.fixture
def by_text(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Statements of methods run as SQL text; all of them have one, except in the tests of `BY_METHOD`."""
    execute = DeltaTable._execute
    methods: list[Statement] = []
    statements: list[str] = []

    def run(table: DeltaTable, statement: Statement) -> DataFrame:
        if type(table) is not DeltaTable:  # a table of tests, at which SQL would not arrive
            return execute(table, statement)
        try:
            text = text_of(table, statement)
        except NoTextError:
            methods.append(statement)
            return execute(table, statement)
        statements.append(text)
        return table._spark.sql(text)

    monkeypatch.setattr(DeltaTable, "_execute", run)
    yield
    assert bool(statements) != (request.function.__name__ in WITHOUT_TEXT)
    assert bool(methods) == (request.function.__name__ in BY_METHOD), methods


def text_of(table: DeltaTable, statement: Statement) -> str:
    """Return a statement as SQL. The source of a MERGE becomes a temporary view. Raises NoTextError."""
    alias = getattr(statement, "alias", None)
    name = f"delta.{quoted(table._location)}" + (f" AS {quoted(alias)}" if alias else "")
    match statement:
        case Delete(condition=condition):
            return f"DELETE FROM {name}{_when('WHERE', condition)}"
        case Update(assignments=assigned, condition=condition):
            return f"UPDATE {name} SET {_assignments(assigned)}{_when('WHERE', condition)}"
        case Merge():
            return _merge(name, statement)
    raise NoTextError


def _merge(name: str, merge: Merge) -> str:
    condition = _text(merge.condition)
    clauses = "".join(map(_clause, merge.clauses))
    evolution = "WITH SCHEMA EVOLUTION " if merge.evolves else ""
    return f"MERGE {evolution}INTO {name} USING {_source(merge)} ON {condition}{clauses}"


def _source(merge: Merge) -> str:
    open_merge: Any = merge.open
    source = next(argument for argument in open_merge.args if isinstance(argument, DataFrame))
    view = f"source_{next(_numbers)}"
    source.createTempView(view)
    qualifier = texts(source._jdf.queryExecution().analyzed().output().head().qualifier())
    return f"{view} AS {quoted(qualifier[-1])}" if qualifier else view


def _clause(clause: Clause) -> str:
    when = f" WHEN {clause.kind.value}{_when('AND', clause.condition)} THEN {clause.word.upper()}"
    if clause.action is RowAction.DELETE:
        return when
    if clause.values is None:
        return f"{when} *" if clause.action is RowAction.INSERT else f"{when} SET *"
    if clause.action is RowAction.UPDATE:
        return f"{when} SET {_assignments(clause.values)}"
    return f"{when} ({', '.join(clause.values)}) VALUES ({', '.join(map(_text, clause.values.values()))})"


def _assignments(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{column} = {_text(value)}" for column, value in values.items())


def _when(word: str, condition: Any) -> str:
    return "" if condition is None else f" {word} {_text(condition)}"


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    parts = name_parts(value)
    text = sql_of(value) if parts is None else ".".join(map(quoted, parts))
    if text is None:
        raise NoTextError
    return text
