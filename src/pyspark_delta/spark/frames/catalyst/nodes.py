"""Reads the trees of plans and expressions in the JVM of a classic session.

Spark may rename nodes, so callers must not conclude anything from a name that they do not know.
"""

from __future__ import annotations

from typing import Any

_EDGE, _BETWEEN = "\x02", "\x1f\x02\x1f"  # no name has these characters


def kind_of(node: Any) -> str:
    """Return the name of a node's class, without the package."""
    return str(node.getClass().getSimpleName())


def elements(sequence: Any) -> list[Any]:
    """Return the elements of a Scala sequence; each takes one message to the JVM."""
    return [sequence.apply(index) for index in range(sequence.size())]


def texts(sequence: Any) -> tuple[str, ...]:
    """Return the elements of a Scala sequence of strings, by one message to the JVM."""
    found = str(sequence.mkString(_EDGE, _BETWEEN, _EDGE))
    return tuple(found[1:-1].split(_BETWEEN)) if len(found) > 2 else tuple(map(str, elements(sequence)))


def text_entries(texts_by_name: Any) -> dict[str, str]:
    """Return a Java map of strings.

    The loop ends without an exception in the JVM: PySpark would send eighty messages to find out what it is about.
    """
    found, names = {}, texts_by_name.keySet().iterator()
    while names.hasNext():
        name = str(names.next())
        found[name] = str(texts_by_name.get(name))
    return found
