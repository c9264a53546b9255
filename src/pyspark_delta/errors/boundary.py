"""Errors across the boundary of Spark's data sources, where only text arrives."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark_delta.errors.base import DeltaError, rebuild

_FACTS = "pyspark-delta facts: "
_IN_TRACEBACK = re.compile(
    r"pyspark_delta\.errors\.(?P<name>\w+): \[(?P<error_class>[A-Z][A-Z0-9_.]*)\] (?P<message>.*?)"
    r" SQLSTATE: (?P<sqlstate>\w{5})(?:\s*\n" + re.escape(_FACTS) + r"(?P<facts>\{[^\n]*\}))?",
    re.DOTALL,
)


@contextmanager
def annotate() -> Iterator[None]:
    """Add the facts of a DeltaError raised in the block to its traceback, because only text crosses the boundary."""
    try:
        yield
    except DeltaError as error:
        if not any(note.startswith(_FACTS) for note in getattr(error, "__notes__", ())):
            error.add_note(_FACTS + json.dumps(error.facts, default=str))
        raise


@contextmanager
def translate() -> Iterator[None]:
    """Raise the original DeltaError if Spark reports it as an exception of its own.

    Spark turns an error of a Python Data Source into an AnalysisException or PythonException that holds the original as
    text. Any other exception passes unchanged. Also usable as a decorator.

    >>> with translate():                                              # doctest: +SKIP
    ...     spark.read.format("delta").load("/no/table").show()
    pyspark_delta.errors.TableNotFoundError: [DELTA_TABLE_NOT_FOUND] There is no Delta table at ...
    """
    try:
        yield
    except DeltaError:
        raise
    except Exception as error:
        found = from_text(str(error))
        if found is None:
            raise
        raise found from None


def from_text(text: str) -> DeltaError | None:
    """Return the last DeltaError with a traceback in `text`, with class, message and facts; None if there is none."""
    matches = list(_IN_TRACEBACK.finditer(text))
    if not matches:
        return None
    match = matches[-1]
    cls = _classes().get(match["name"], DeltaError)
    facts = json.loads(match["facts"] or "{}")
    state = {**facts, "message": match["message"], "facts": facts}
    state |= {"error_class": match["error_class"], "sqlstate": match["sqlstate"]}
    return rebuild(cls, (match["message"],), state)


def _classes() -> dict[str, type[DeltaError]]:
    """Return every class of the tree by name."""
    found, remaining = {DeltaError.__name__: DeltaError}, [DeltaError]
    while remaining:
        for cls in remaining.pop().__subclasses__():
            found[cls.__name__] = cls
            remaining.append(cls)
    return found
