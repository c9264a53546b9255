"""Scala sequences: Spark 4 has those of Scala 2.13, Spark 3.5 those of Scala 2.12, whose methods take a builder."""

from __future__ import annotations

from typing import Any

_ARRAY_SEQ = "scala.collection.immutable.ArraySeq"  # only in Scala 2.13
_WRAPPED_ARRAY = "scala.collection.mutable.WrappedArray"


def wrapped(jvm: Any, array: Any) -> Any:
    """Return a Java array as a sequence, without a copy."""
    if is_of_213(jvm):
        return jvm.static(_ARRAY_SEQ, "unsafeWrapArray")(array)
    return jvm.static(_WRAPPED_ARRAY, "make")(array)


def concatenated(jvm: Any, first: Any, second: Any) -> Any:
    """Return the elements of two sequences."""
    return first.concat(second) if is_of_213(jvm) else getattr(first, "$plus$plus")(second, _builder(jvm))


def with_last(jvm: Any, sequence: Any, last: Any) -> Any:
    """Return a sequence with one more element."""
    return sequence.appended(last) if is_of_213(jvm) else getattr(sequence, "$colon$plus")(last, _builder(jvm))


def with_element(jvm: Any, sequence: Any, index: int, element: Any) -> Any:
    """Return a sequence with another element at an index."""
    if is_of_213(jvm):
        return sequence.updated(index, element)
    return sequence.updated(index, element, _builder(jvm))


def is_of_213(jvm: Any) -> bool:
    """Return True if the JVM has Scala 2.13."""
    return bool(jvm.has_class(_ARRAY_SEQ))


def _builder(jvm: Any) -> Any:
    return jvm.once("builder of sequences", lambda: jvm.module("scala.collection.Seq").canBuildFrom())
