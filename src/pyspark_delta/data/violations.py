"""Errors for rows that violate a constraint of the table, with their values (C381, C385, C387, C390)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from pyspark_delta.errors import ConstraintViolationError
from pyspark_delta.protocol.rows import CheckKind, RowCheck

_TEXT_LITERAL = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\"")
_NAME = re.compile(r"`((?:[^`]|``)+)`|(\w+)")
_LONGEST_VALUE = 200


@dataclass(frozen=True, slots=True)
class WatchedCheck:
    """A constraint of the table, and the top-level columns whose values explain a violation."""

    check: RowCheck
    columns: tuple[str, ...]


def watch(check: RowCheck, names: Sequence[str]) -> WatchedCheck:
    """Return the check with those of the columns `names` that occur in its condition, regardless of case."""
    text = _TEXT_LITERAL.sub("''", check.condition)
    named = {(quoted.replace("``", "`") or plain).casefold() for quoted, plain in _NAME.findall(text)}
    return WatchedCheck(check, tuple(name for name in names if name.casefold() in named))


def check_violations(violations: Any, checks: Sequence[WatchedCheck]) -> None:
    """Raise ConstraintViolationError for the first entry of an Arrow array of violations.

    An entry is null for a valid row, otherwise JSON: the number of the check and the values of its columns, as text or
    null.
    """
    if violations.null_count == len(violations):
        return
    number, *values = orjson.loads(violations.drop_null()[0].as_py())
    raise violation(checks[int(number)], values)


def violation(watched: WatchedCheck, values: Sequence[str | None]) -> ConstraintViolationError:
    """Return the error for a row that violates the check. `values` are the row's values of the check's columns."""
    check = watched.check
    found = dict(zip(watched.columns, values, strict=True))
    shown = "".join(f"\n - {name} : {_cut(value)}" for name, value in found.items())
    error_class = None
    match check.kind:
        case CheckKind.NOT_NULL:
            what, error_class = f"The column '{check.name}' is NOT NULL, but the struct around it is null", _NOT_NULL
        case CheckKind.LENGTH:
            what, error_class = f"A text in the column '{check.name}' is longer than its declared type allows", _LENGTH
        case CheckKind.RANGE:
            what, error_class = f"The column '{check.name}' cannot hold a value of a row", _RANGE
        case CheckKind.GENERATED:
            what = f"The column '{check.name}' is generated, and a row has a value that differs from its expression"
        case CheckKind.REPLACED:
            what, error_class = "A row to write does not meet the condition of replaceWhere", _REPLACED
        case kind:
            what = f"The {kind.value} '{check.name}' is not true for a row"
    return ConstraintViolationError(
        f"{what}: ({check.condition}) is violated by the values{shown}\nNothing was committed. Correct these rows, or "
        "filter them.",
        error_class=error_class,
        sqlstate={_LENGTH: "22001", _RANGE: "22003", _NOT_NULL: "23502", _REPLACED: "44000"}.get(error_class or ""),
        constraint=check.name,
        expression=check.condition,
        values=found,
        **({"column": check.name} if check.kind is CheckKind.NOT_NULL else {}),
    )


def existing_violation(check: RowCheck, examples: Sequence[str]) -> ConstraintViolationError:
    """Return the error for a condition that rows of the table violate; `examples` are some of them."""
    return ConstraintViolationError(
        f"Rows of the table violate the {check.kind.value} '{check.name}' ({check.condition}), for example: "
        f"{'; '.join(examples)}. Nothing was changed. Correct or delete these rows first.",
        error_class=_EXISTING.get(check.kind),
        constraint=check.name,
    )


_EXISTING = {
    CheckKind.CONSTRAINT: "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION",
    CheckKind.NOT_NULL: "DELTA_NEW_NOT_NULL_VIOLATION",
}
_NOT_NULL = "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"
_LENGTH = "DELTA_EXCEED_CHAR_VARCHAR_LIMIT"
_RANGE = "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE"
_REPLACED = "DELTA_REPLACE_WHERE_MISMATCH"


def _cut(value: str | None) -> str:
    if value is None:
        return "null"
    return value if len(value) <= _LONGEST_VALUE else f"{value[:_LONGEST_VALUE]}..."
