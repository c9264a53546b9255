"""Access to the trees of plans and expressions in the JVM of a classic session.

Spark does not promise the names of the nodes: callers treat an unknown name as one that tells them nothing.
"""

from __future__ import annotations

from typing import Any


def kind_of(node: Any) -> str:
    """Return the name of a node's class, without its package."""
    return str(node.getClass().getSimpleName())


def elements(sequence: Any) -> list[Any]:
    """Return the elements of a Scala sequence, with one message to the JVM for each."""
    return [sequence.apply(index) for index in range(sequence.size())]


def texts(sequence: Any) -> tuple[str, ...]:
    """Return the elements of a Scala sequence of strings."""
    return tuple(map(str, elements(sequence)))
