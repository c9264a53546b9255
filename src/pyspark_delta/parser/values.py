"""What statements are made of: names of tables, points in time, SQL that is kept as text."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

Path: TypeAlias = tuple[str, ...]
"""The parts of the name of a column."""

_PATH_PREFIXES = frozenset({"delta", "deltapy"})


@dataclass(frozen=True, slots=True)
class SqlText:
    """An expression, a predicate, a query or a list of definitions, kept as text.

    `text` begins with its first token and ends with its last, as the statement has it; parameters are replaced by their
    literals. `start` is where it begins in the statement, in characters counted from 0.
    """

    text: str
    start: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class TableName:
    """The name of a table: one part or more, without quotes.

    `start` and `end` are where it stands in the statement, in characters counted from 0.
    """

    parts: Path
    start: int = field(default=0, compare=False)
    end: int = field(default=0, compare=False)

    @property
    def path(self) -> str | None:
        """The path of ``delta.`/path` ``; None for any other name.

        A path that is not absolute may be meant as a table of the schema `delta`: the caller decides.
        """
        prefix = self.file_format
        return self.parts[1] if prefix in _PATH_PREFIXES else None

    @property
    def file_format(self) -> str | None:
        """The first of two parts in lower case, such as `parquet` of ``parquet.`/path` ``; otherwise None."""
        return self.parts[0].lower() if len(self.parts) == 2 else None


@dataclass(frozen=True, slots=True)
class TablePath:
    """A path in quotes where a statement takes a table."""

    path: str
    start: int = field(default=0, compare=False)
    end: int = field(default=0, compare=False)


TableReference: TypeAlias = TableName | TablePath


@dataclass(frozen=True, slots=True)
class VersionAsOf:
    """`VERSION AS OF 3`."""

    version: int


@dataclass(frozen=True, slots=True)
class TimestampAsOf:
    """`TIMESTAMP AS OF '2026-01-31'`: the text of a literal, a datetime of a parameter, or an expression."""

    timestamp: str | datetime | SqlText


TimeTravel: TypeAlias = VersionAsOf | TimestampAsOf
