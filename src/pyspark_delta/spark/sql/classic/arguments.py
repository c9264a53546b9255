"""The arguments of parameters, `args` of `spark.sql`, for statements of Delta's own grammar."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from pyspark_delta.parser.arguments import Arguments
from pyspark_delta.spark.frames.catalyst.nodes import elements, kind_of, texts
from pyspark_delta.spark.sql.classic.plans import Query, option

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def arguments_of(spark: SparkSession, context: Any) -> Arguments:
    """Return the arguments in the context that Spark passes to its parser; None if there is none.

    Spark computes an argument when a statement uses it.
    """
    if context is None:
        return None
    kind = kind_of(context)
    if kind == "HybridParameterContext":  # of EXECUTE IMMEDIATE: values with a name, or with an empty one
        names, values = texts(context.paramNames()), elements(context.args())
        if any(names):
            return {name: _value(spark, value) for name, value in zip(names, values, strict=True)}
        return [_value(spark, value) for value in values]
    return _Named(spark, context.params()) if kind == "NamedParameterContext" else _Positional(spark, context.params())


class _Named(Mapping[str, Any]):
    def __init__(self, spark: SparkSession, values: Any) -> None:
        self._spark, self._values = spark, values

    def __getitem__(self, name: str) -> Any:
        found = option(self._values.get(name))
        if found is None:
            raise KeyError(name)
        return _value(self._spark, found)

    def __iter__(self) -> Iterator[str]:
        names = self._values.keysIterator()
        while names.hasNext():
            yield str(names.next())

    def __len__(self) -> int:
        return int(self._values.size())


class _Positional(Sequence[Any]):
    def __init__(self, spark: SparkSession, values: Any) -> None:
        self._spark, self._values = spark, values

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        return _value(self._spark, self._values.apply(index))

    def __len__(self) -> int:
        return int(self._values.size())


def _value(spark: SparkSession, expression: Any) -> Any:
    """Return the value of a constant expression in Python."""
    row = Query(spark).one_row().select(Query(spark).column(expression)).head()
    assert row is not None
    return row[0]
