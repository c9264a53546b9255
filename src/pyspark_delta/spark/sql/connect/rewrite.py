"""Queries with Delta tables as named frames: references are replaced in the text, and nothing else changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.interpreter.qualifiers import requalify
from pyspark_delta.interpreter.references import name_of, parse_query, table_references
from pyspark_delta.parser.arguments import Arguments
from pyspark_delta.parser.change_calls import ChangeCall, change_calls
from pyspark_delta.parser.clauses import at_time_travel, computed_timestamp, time_travel
from pyspark_delta.parser.reader import Reader
from pyspark_delta.parser.tokens import Kind, tokenize
from pyspark_delta.parser.values import SqlText, TableName, TimestampAsOf, TimeTravel
from pyspark_delta.schema.column_paths import quoted
from pyspark_delta.spark.sql.connect.names import Names
from pyspark_delta.spark.sql.targets import is_path_name


@dataclass(frozen=True)
class Spliced:
    """A query whose tables are frames: pieces of text, and between them the frames.

    `arguments` are the values of its parameters by name.
    """

    pieces: tuple[str, ...]
    frames: tuple[DataFrame, ...] = ()
    arguments: Mapping[str, Any] | None = None

    def formatted(self, *, escapes: bool) -> tuple[str, dict[str, DataFrame]]:
        """Return the text for `spark.sql(text, **frames)`; with `escapes`, braces of the text stay braces."""
        frames = {f"_delta_{number}": frame for number, frame in enumerate(self.frames)}
        pieces = [piece.replace("{", "{{").replace("}", "}}") if escapes else piece for piece in self.pieces]
        return _joined(pieces, [f"{{{name}}}" for name in frames]), frames

    @contextmanager
    def as_views(self) -> Iterator[str]:
        """Yield the text with temporary views in place of the frames; the views are dropped afterwards."""
        views = [f"_delta_{uuid4().hex}" for _ in self.frames]
        try:
            for view, frame in zip(views, self.frames, strict=True):
                frame.createOrReplaceTempView(view)
            yield _joined(list(self.pieces), views)
        finally:
            for view, frame in zip(views, self.frames, strict=True):
                with suppress(Exception):  # the statement may be committed; a view that stays ends with the session
                    frame.sparkSession.catalog.dropTempView(view)


def _joined(pieces: list[str], names: list[str]) -> str:
    return pieces[0] + "".join(name + piece for name, piece in zip(names, pieces[1:], strict=True))


@dataclass(frozen=True)
class _Reference:
    """A reference in a text: `start` to `end` are the name and the point in time. An alias stands at `alias_at`."""

    name: TableName
    end: int
    time: TimeTravel | None
    has_alias: bool
    alias_at: int

    @property
    def start(self) -> int:
        """Where the name begins."""
        return self.name.start


def check_one_query(text: str) -> None:
    """Raise InvalidOperationError for `FROM table INSERT INTO ...`, whose tables are no frames."""
    reader = Reader(text)
    if reader.at("FROM"):
        reader.cut("a query", lambda at: at.at("INSERT", "INTO") or at.at("INSERT", "OVERWRITE"))
        if reader.at("INSERT"):
            raise InvalidOperationError(
                "FROM ... INSERT needs a classic session. Nothing was changed. Write INSERT INTO table SELECT ... FROM "
                "..., once for each table.",
                error_class="DELTA_OPERATION_NOT_ALLOWED",
                sqlstate="0AKDC",
            )


def splice(names: Names, text: str, arguments: Arguments = None) -> Spliced:
    """Return a query with the Delta tables in it as frames.

    A reference without an alias gets the last part of its name as one, and columns that the whole name qualifies are
    qualified by it. Raises the errors of reading the tables.
    """
    text, arguments = _with_named_parameters(text, arguments)
    text = _with_identifiers(text, arguments)
    pieces, frames, place, alias = list[str](), list[DataFrame](), 0, ""
    named = list[tuple[str, ...]]()
    for one in _references(text, arguments):
        frame = names.changes(one) if isinstance(one, ChangeCall) else _frame(names, one)
        if frame is None:
            continue
        pieces.append(alias + text[place : one.start])
        frames.append(frame)
        alias, place = "", one.end
        if isinstance(one, _Reference) and not one.has_alias:
            alias, place = f"{text[one.end : one.alias_at]} AS {quoted(one.name.parts[-1])}", one.alias_at
            named.append(names.whole(one.name.parts) or one.name.parts)
    pieces.append(alias + text[place:])
    return Spliced(tuple(_with_short_qualifiers(piece, named) for piece in pieces), tuple(frames), arguments)


def _with_named_parameters(text: str, arguments: Arguments) -> tuple[str, Mapping[str, Any] | None]:
    """Return a query and its arguments with a name for each `?`: some of them are no longer in the spliced text."""
    if arguments is None or isinstance(arguments, Mapping):
        return text, arguments
    pieces, place, count = list[str](), 0, 0
    for token in tokenize(text):
        if token.kind is Kind.PARAMETER and token.text == "?":
            pieces += [text[place : token.start], f":_delta_{count}"]
            place, count = token.end, count + 1
    named = {f"_delta_{number}": value for number, value in enumerate(arguments)}
    return "".join([*pieces, text[place:]]), named


def _frame(names: Names, one: _Reference) -> DataFrame | None:
    """Return the rows of a reference. The server computes a timestamp that is no literal."""
    match one.time:
        case TimestampAsOf(SqlText(expression)) if names.whole(one.name.parts) is not None:
            return names.frame(one.name, TimestampAsOf(_computed(names, expression)))
    return names.frame(one.name, one.time)


def _computed(names: Names, expression: str) -> datetime:
    [[micros]] = names.spark.sql(f"SELECT unix_micros(CAST(({expression}) AS TIMESTAMP))").collect()
    if micros is None:
        raise InvalidOperationError(
            f"The time travel to {expression} is not possible: its value is null. Give a timestamp.",
            error_class="INVALID_TIME_TRAVEL_TIMESTAMP_EXPR",
            sqlstate="42K0E",
        )
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=micros)


def _with_identifiers(text: str, arguments: Mapping[str, Any] | None) -> str:
    """Return a query with the names of tables in place of `IDENTIFIER('name')`."""
    reader, pieces, place = Reader(text), list[str](), 0
    reader.bind(arguments)
    for index, token in enumerate(reader.tokens):
        if token.value != "IDENTIFIER" or token.kind is not Kind.WORD or index == 0:
            continue
        inner = reader.tokens[min(index + 2, len(reader.tokens) - 1)]
        is_table = reader.tokens[index - 1].value in _BEFORE_TABLES and inner.kind is Kind.STRING
        if not is_table:
            continue
        reader.index = index
        name = reader.table_name()
        pieces += [text[place : name.start], ".".join(map(quoted, name.parts))]
        place = name.end
    return "".join([*pieces, text[place:]])


def _with_short_qualifiers(text: str, names: list[tuple[str, ...]]) -> str:
    for parts in names:
        text = requalify(text, tuple(parts[start:] for start in range(len(parts) - 1)), parts[-1])
    return text


# ------------------------------------------------------------------------------------------------------ references
def _references(text: str, arguments: Mapping[str, Any] | None) -> list[_Reference | ChangeCall]:
    """Return the references to tables and their change data feeds in the order of the text.

    If the SQL library cannot parse the query, only paths are found.
    """
    reader = Reader(text)
    reader.bind(arguments)
    try:
        nodes = list(table_references(parse_query(_with_masked_strings(text))))
    except InvalidOperationError:
        found = [_completed(reader, name) for name in _paths(reader)]
    else:
        found = [_completed(reader, name_of(node), bool(node.alias)) for node in nodes]
    return sorted([*found, *change_calls(reader)], key=lambda one: one.start)


def _with_masked_strings(text: str) -> str:
    """Return a text of the same length in which strings hold nothing that the SQL library reads in another way."""
    pieces, place = list[str](), 0
    for token in tokenize(text):
        if token.kind is Kind.STRING:
            pieces += [text[place : token.start], f"'{'x' * (token.end - token.start - 2)}'"]
            place = token.end
    return "".join([*pieces, text[place:]])


def _completed(reader: Reader, name: TableName, has_alias: bool | None = None) -> _Reference:
    """Return a reference with the point in time that follows its name."""
    reader.index = next(place for place, token in enumerate(reader.tokens) if token.start >= name.end)
    time = (computed_timestamp(reader) or time_travel(reader)) if at_time_travel(reader) else None
    end = reader.tokens[reader.index - 1].end
    _skip_sample(reader)
    alias_at = reader.tokens[reader.index - 1].end
    before = [token for token in reader.tokens if token.end <= name.start]
    if before and before[-1].value == "TABLE":  # TABLE t takes no alias
        has_alias = True
    if has_alias is None:
        has_alias = reader.at("AS") or (reader.at_name() and not reader.at_any(*_AFTER_TABLES))
    return _Reference(name, end, time, has_alias, alias_at)


def _skip_sample(reader: Reader) -> None:
    """Skip TABLESAMPLE, which stands before an alias."""
    if reader.accept("TABLESAMPLE"):
        reader.bracketed("the size of the sample")
        if reader.accept("REPEATABLE"):
            reader.bracketed("a seed")


def _paths(reader: Reader) -> Iterator[TableName]:
    """Yield the names such as ``delta.`/path` `` that stand where tables do."""
    for place in range(len(reader.tokens) - 3):
        reader.index = place
        first, dot, path = reader.tokens[place : place + 3]
        if dot.text != "." or path.kind is not Kind.QUOTED or not is_path_name((first.text, str(path.value))):
            continue
        if reader.peek(-1).value in _BEFORE_TABLES and reader.peek(3).text != ".":
            yield TableName((first.text, str(path.value)), first.start, path.end)


_BEFORE_TABLES = ("FROM", "JOIN", ",", "TABLE", "USING", "INTO", "(")
_AFTER_TABLES = (
    *("WHERE", "JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "SEMI", "ANTI", "NATURAL", "ON", "USING", "GROUP"),
    *("HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET", "UNION", "EXCEPT", "MINUS", "INTERSECT"),
    *("LATERAL", "PIVOT", "UNPIVOT", "TABLESAMPLE", "WINDOW", "SELECT", "WHEN"),
)
