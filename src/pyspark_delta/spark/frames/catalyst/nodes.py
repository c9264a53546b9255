"""Reads the trees of plans and expressions in the JVM of a classic session.

Spark may rename nodes, so callers must not conclude anything from a name that they do not know.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

_EDGE, _BETWEEN = "\x02", "\x1f\x02\x1f"  # no name has these characters
_SOME = re.compile(r"Some\((.*)\)", re.DOTALL)


def kind_of(node: Any) -> str:
    """Return the name of a node's class, without the package."""
    return str(node.getClass().getSimpleName())


def node_name(node: Any) -> str:
    """Return the name of the class of a node of a plan or an expression, by one message to the JVM."""
    return str(node.nodeName())


def elements(sequence: Any) -> list[Any]:
    """Return the elements of a Scala sequence; each takes one message to the JVM."""
    return [sequence.apply(index) for index in range(sequence.size())]


def texts(sequence: Any) -> tuple[str, ...]:
    """Return the elements of a Scala sequence of strings, by one message to the JVM."""
    found = str(sequence.mkString(_EDGE, _BETWEEN, _EDGE))
    return tuple(found[1:-1].split(_BETWEEN)) if len(found) > 2 else tuple(map(str, elements(sequence)))


@dataclass(frozen=True)
class Place:
    """Where a parsed expression is in the text of its statement: its first character, and the one behind its last."""

    statement: str
    start: int
    end: int


def place_of(expression: Any) -> Place | None:
    """Return the place of a parsed expression, by three messages to the JVM; None if the parser did not note it."""
    # Spark's `Origin` has the line, the position in it, the first and the last character, the text, and more.
    _, _, start, stop, statement, *_ = map(_SOME.fullmatch, texts(expression.origin().productIterator()))
    if start is None or stop is None or statement is None:
        return None
    return Place(statement[1], int(start[1]), int(stop[1]) + 1)


def text_entries(texts_by_name: Any) -> dict[str, str]:
    """Return a Java map of strings.

    The loop ends without an exception in the JVM: PySpark would send eighty messages to find out what it is about.
    """
    found, names = {}, texts_by_name.keySet().iterator()
    while names.hasNext():
        name = str(names.next())
        found[name] = str(texts_by_name.get(name))
    return found
