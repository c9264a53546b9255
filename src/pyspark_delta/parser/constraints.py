"""CHECK constraints among the definitions of columns in CREATE TABLE."""

from __future__ import annotations

from pyspark_delta.parser.reader import Reader
from pyspark_delta.parser.values import SqlText

Constraint = tuple[str | None, str]
"""The name of a constraint, None if it has none, and its condition."""

_KEYS = ("PRIMARY", "UNIQUE", "FOREIGN", "REFERENCES")


def take_definitions(reader: Reader) -> tuple[SqlText | None, tuple[Constraint, ...]]:
    """Take definitions in brackets: those of columns, as SQL without constraints, and the constraints.

    A constraint stands alone, or after the type of a column.
    """
    reader.expect("(")
    start, columns, constraints = reader.token.start, list[str](), list[Constraint]()
    while True:
        if _at_constraint(reader):
            constraints.append(_constraint(reader))
        else:
            columns.append(_column(reader, constraints))
        if not reader.accept(","):
            break
    reader.expect(")")
    return (SqlText(", ".join(columns), start) if columns else None), tuple(constraints)


def _column(reader: Reader, constraints: list[Constraint]) -> str:
    """Take the definition of one column, and add its constraints to a list."""
    pieces = [_piece(reader, at_least=2)]
    while _at_constraint(reader):
        constraints.append(_constraint(reader))
        if not reader.at_any(",", ")") and not _at_constraint(reader):
            pieces.append(_piece(reader, at_least=1))
    return " ".join(pieces)


def _piece(reader: Reader, at_least: int) -> str:
    """Take tokens up to a constraint or the next column; the first ones may be a name such as `check`."""
    depth, first = 0, reader.index

    def at_end(at: Reader) -> bool:
        nonlocal depth
        depth += {"<": 1, ">": -1}.get(at.token.text, 0)  # of struct<a: int, b: int>
        if depth > 0:
            return False
        return at.at(",") or (at.index - first >= at_least and _at_constraint(at))

    return reader.cut("definitions of columns", at_end).text


def _at_constraint(reader: Reader) -> bool:
    if reader.at("CONSTRAINT"):
        return reader.peek(2).value in ("CHECK", *_KEYS)
    return reader.at("CHECK", "(")


def _constraint(reader: Reader) -> Constraint:
    name = reader.name("the name of a constraint") if reader.accept("CONSTRAINT") else None
    if not reader.accept("CHECK"):
        reader.fail("CHECK, because Delta tables have no keys,")
    condition = reader.bracketed("a condition").text
    reader.accept("ENFORCED")
    if reader.at("NOT", "ENFORCED"):
        reader.fail("another constraint or column, because Delta tables enforce their constraints,")
    return name, condition
