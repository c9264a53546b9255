"""`count()` of a DataFrame that shows a whole table: the log has the answer, without a Spark job."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import Any, cast

from pyspark.sql import DataFrame

from pyspark_delta.snapshot import Snapshot


def counting(frame: DataFrame, snapshot: Snapshot) -> DataFrame:
    """Return the DataFrame with a `count` from the log. It must have all rows of the snapshot and no others.

    DataFrames derived from it count as usual, because they are other objects. The DataFrame itself counts as usual
    while it is cached, because users call `count` to fill the cache, and if a file does not state its number of rows.
    """
    frame.__class__ = _counting_class(cast(Hashable, type(frame)))
    frame._delta_snapshot = snapshot  # type: ignore[attr-defined]
    return frame


@lru_cache(maxsize=4)
def _counting_class(base: type) -> type:
    class TableFrame(base):  # type: ignore[misc]
        __doc__ = base.__doc__
        _delta_snapshot: Snapshot
        _delta_cached = False  # asking a Spark Connect server would make it list the files

        def cache(self) -> Any:
            self._delta_cached = True
            return super().cache()

        def persist(self, *args: Any, **kwargs: Any) -> Any:
            self._delta_cached = True
            return super().persist(*args, **kwargs)

        def unpersist(self, *args: Any, **kwargs: Any) -> Any:
            self._delta_cached = False
            return super().unpersist(*args, **kwargs)

        def count(self) -> int:
            known = None if self._delta_cached else self._delta_snapshot.record_count.total
            return cast(int, super().count()) if known is None else known

    return TableFrame
