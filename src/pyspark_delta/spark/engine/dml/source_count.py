"""How many rows the source of a MERGE has: counted while the job reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyspark.sql.functions as sf
from pyspark.sql import Observation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ROWS = "rows"
# Spark says what it counted a moment after the job, and never where it could leave the source out.
_PATIENCE_MS = 2_000


class SourceCount:
    """A number of rows, given or observed. It stays unknown where Spark leaves the source out of the job."""

    def __init__(self, rows: int | None = None) -> None:
        self._rows = rows
        self._observation: Observation | None = None
        self._source: DataFrame | None = None

    @property
    def is_known(self) -> bool:
        """Whether there is a number already."""
        return self._rows is not None

    def observe(self, source: DataFrame) -> DataFrame:
        """The source, counted when it is evaluated."""
        self._observation, self._source = Observation(), source
        return source.observe(self._observation, sf.count(sf.lit(1)).alias(_ROWS))

    def get(self) -> int | None:
        """The number, once the job has run."""
        if self._observation is None:
            return self._rows
        if hasattr(self._observation, "_jo") and not self._has_come():
            return None
        found = self._observation.get.get(_ROWS)
        return None if found is None else int(found)

    def _has_come(self) -> bool:
        """Whether a classic session has the number: asking before it has would wait for ever.

        Where Spark finds that the source is empty before it runs the job, the answer is a row without it.
        """
        observation: Any = self._observation
        session: Any = self._source.sparkSession if self._source is not None else None
        jvm, future = session._jvm, observation._jo.future()
        try:
            jvm.scala.concurrent.Await.ready(future, jvm.scala.concurrent.duration.Duration.create(_PATIENCE_MS, "ms"))
        except Exception:  # TimeoutException of the JVM
            return False
        return bool(observation._jo.getRow().size())
