"""The trees of plans and expressions in the JVM of a classic session, as this process walks them.

What the nodes are called is no promise of Spark's: callers take a name that they do not know for one that they cannot
tell anything about.
"""

from __future__ import annotations

from typing import Any


def kind_of(node: Any) -> str:
    """The name of a node's class, without its package."""
    return str(node.getClass().getSimpleName())


def elements(sequence: Any) -> list[Any]:
    """The elements of a Scala sequence; a message to the JVM for each."""
    return [sequence.apply(index) for index in range(sequence.size())]


def texts(sequence: Any) -> tuple[str, ...]:
    """The elements of a Scala sequence of strings."""
    return tuple(map(str, elements(sequence)))
