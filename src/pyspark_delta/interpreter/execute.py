"""One statement, carried out: its text is parsed, and the method for it is called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.expressions.current_time import one_moment
from pyspark_delta.interpreter import definitions, listings, maintenance, rows
from pyspark_delta.interpreter.session import Session
from pyspark_delta.parser import Statement, parse_any, split
from pyspark_delta.parser.arguments import Arguments
from pyspark_delta.parser.row_statements import (
    DeleteFrom,
    InsertInto,
    MergeInto,
    Query,
    TruncateTable,
    UpdateTable,
)
from pyspark_delta.parser.statements import BeginTransaction, CommitTransaction, RollbackTransaction


def execute(text: str, session: Session, arguments: Arguments = None) -> pa.Table:
    """Run one statement and return its result. Raises SqlSyntaxError, and the errors of the statement."""
    statement = parse_any(text, arguments)
    if statement is None:
        raise _unknown(text)
    return run(statement, session)


def run(statement: Statement, session: Session) -> pa.Table:
    """Carry out a statement that was parsed. Raises the errors of the statement."""
    with one_moment():
        return _HANDLERS[type(statement)](statement, session)


def _query(statement: Query, session: Session) -> pa.Table:
    with session.operation():
        return session.query(statement.query.text).read_all()


def _transaction(statement: Any, session: Session) -> pa.Table:
    raise InvalidOperationError(
        "Without Spark, each SQL statement is a commit of its own. Nothing was changed. To commit several changes "
        "together, use pyspark_delta.Transaction, or BEGIN TRANSACTION in spark.sql.",
        error_class="DELTA_UNSUPPORTED_STATEMENT",
        sqlstate="0A000",
    )


_HANDLERS: dict[type, Callable[[Any, Session], pa.Table]] = {
    Query: _query,
    DeleteFrom: rows.delete,
    InsertInto: rows.insert,
    MergeInto: rows.merge,
    TruncateTable: rows.truncate,
    UpdateTable: rows.update,
    **definitions.HANDLERS,
    **listings.HANDLERS,
    **maintenance.HANDLERS,
    **dict.fromkeys((BeginTransaction, CommitTransaction, RollbackTransaction), _transaction),
}


def _unknown(text: str) -> InvalidOperationError:
    if not split(text):
        return InvalidOperationError(
            "The text holds no statement.", error_class="PARSE_EMPTY_STATEMENT", sqlstate="42617"
        )
    words = " ".join(split(text)[0].split()[:3])
    return InvalidOperationError(
        f"The statement '{words} ...' is not supported without Spark. Queries, INSERT, DELETE, UPDATE, MERGE, CREATE, "
        "ALTER and DROP TABLE, SHOW, DESCRIBE, USE and Delta's own statements are.",
        error_class="DELTA_UNSUPPORTED_STATEMENT",
        sqlstate="0A000",
    )
