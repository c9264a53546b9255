"""Mixins that add Delta to PySpark's readers and writers, to the classic classes and to those of Spark Connect.

A mixin precedes PySpark's class in the method resolution order. It remembers what a Delta read or write needs and calls
PySpark's method, so that the same object also serves other formats. Its own attributes begin with `_delta_`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import to_str

from pyspark_delta.errors import MissingDependencyError
from pyspark_delta.spark.conf.sessions import is_delta, is_enabled

if TYPE_CHECKING:

    class _BeforePySpark(Any):  # type: ignore[misc]
        """For type checkers: `super()` is PySpark's class."""
else:
    _BeforePySpark = object


class DeltaMixin(_BeforePySpark):
    """The base of all mixins: remembers the session, and the frame to write."""

    _delta_session: SparkSession
    _delta_frame: DataFrame

    def _delta_begin(self, origin: SparkSession | DataFrame) -> None:
        """Set the state of a new reader or writer. `origin` is the session or the frame that it was taken from."""
        if isinstance(origin, DataFrame):
            self._delta_frame, self._delta_session = origin, origin.sparkSession
        else:
            self._delta_session = origin


class FormatMixin(DeltaMixin):
    """Remembers the format."""

    _delta_source: str | None = None

    def format(self, source: str) -> Any:
        self._delta_source = source
        return super().format(source)

    def _delta_chosen(self, source: str | None = None) -> bool:
        """Return True if the format is Delta: `source`, else the remembered one, else the session's default."""
        return is_delta(self._delta_session, source or self._delta_source)


class OptionsMixin(DeltaMixin):
    """Remembers the options."""

    _delta_options: GivenOptions

    def _delta_begin(self, origin: SparkSession | DataFrame) -> None:
        super()._delta_begin(origin)
        self._delta_options = GivenOptions()

    def option(self, key: str, value: Any) -> Any:
        self._delta_options.add(key, value)
        return super().option(key, value)

    def options(self, **options: Any) -> Any:
        for key, value in options.items():
            self._delta_options.add(key, value)
        return super().options(**options)


class ClusteringMixin(DeltaMixin):
    """Remembers the columns to cluster by."""

    _delta_clustering: tuple[str, ...] = ()

    def clusterBy(self, *cols: Any) -> Any:
        self._delta_clustering = column_names(cols)
        return super().clusterBy(*cols) if self._delta_can_cluster() else self

    def _delta_can_cluster(self) -> bool:
        """Return True if PySpark's class has the method `clusterBy`; PySpark 3.5 does not."""
        return hasattr(super(), "clusterBy")

    def _delta_check_clustering(self, instead: str = "write a Delta table") -> None:
        """Raise MissingDependencyError if PySpark is about to write, and does not know the columns to cluster by."""
        if self._delta_clustering and not self._delta_can_cluster():
            columns = ", ".join(map(repr, self._delta_clustering))
            raise MissingDependencyError(
                f"PySpark {pyspark.__version__} has no clusterBy, which Spark has from 4.0 on, found "
                f"clusterBy({columns}). Nothing was written. Leave clusterBy out, {instead}, or install PySpark 4.0 or "
                "newer.",
                version=pyspark.__version__,
            )


class GivenOptions:
    """Options in the order in which they were given; keys are case-insensitive, and the last value of a key counts."""

    def __init__(self) -> None:
        self._given: dict[str, tuple[str, str]] = {}

    def add(self, key: str, value: Any) -> None:
        if value is not None:
            self._given[key.lower()] = (key, cast(str, to_str(value)))

    def items(self, more: Mapping[str, Any] | None = None) -> dict[str, str]:
        """Return all options, overridden by `more`."""
        both = GivenOptions()
        both._given = dict(self._given)
        for key, value in (more or {}).items():
            both.add(key, value)
        return dict(both._given.values())


def column_names(columns: Any) -> tuple[str, ...]:
    """Return the names that PySpark's methods take as arguments, or as one list."""
    if len(columns) == 1 and isinstance(columns[0], list | tuple):
        columns = columns[0]
    return tuple(columns)


def path_option(options: Mapping[str, str]) -> str | None:
    """Return the option `path`, whose name is case-insensitive; None if it is not given."""
    return next((value for key, value in options.items() if key.lower() == "path"), None)


def mix_in(mixin: Any, target: Any, origin: SparkSession | DataFrame) -> Any:
    """Add the mixin to one of PySpark's readers or writers if its session is enabled, and return it.

    The object stays an instance of its PySpark class. `origin` is the session or the frame that it was taken from.
    """
    if is_enabled(origin.sparkSession if isinstance(origin, DataFrame) else origin):
        target.__class__ = mixed_class(mixin, cast(Hashable, type(target)))
        target._delta_begin(origin)
    return target


@lru_cache(maxsize=16)  # each mixin with the classes of classic sessions and of Spark Connect
def mixed_class(mixin: type[DeltaMixin], base: type) -> type:
    """Return a subclass of the mixin and of PySpark's class, with the documentation of PySpark's class."""
    return type(mixin.__name__, (mixin, base), {"__doc__": base.__doc__, "__module__": mixin.__module__})
