"""What the Python Data Source of this PySpark lacks; releases of Spark 4 have added to it one after the other."""

from __future__ import annotations

import pyspark
from pyspark.sql import datasource

from pyspark_delta.errors import MissingDependencyError
from pyspark_delta.spark.conf.classes import has_stream_sources

_ENABLE = "call pyspark_delta.enable(spark) in a classic session, whose streams do not need it"


def require_stream_reader() -> None:
    """Raise MissingDependencyError if a source cannot learn from Spark where a batch begins (before PySpark 4.2)."""
    if not has_stream_sources():
        raise _missing("reads streams", "4.2")


def require_stream_writer() -> None:
    """Raise MissingDependencyError if streams are written row by row, not as Arrow data (before PySpark 4.1)."""
    if not hasattr(datasource, "DataSourceStreamArrowWriter"):
        raise _missing("writes streams", "4.1")


def _missing(does: str, since: str) -> MissingDependencyError:
    return MissingDependencyError(
        f"The Python Data Source {does} from PySpark {since} on, found {pyspark.__version__}. Nothing was started. "
        f"Install PySpark {since} or newer, or {_ENABLE}.",
        version=pyspark.__version__,
    )
