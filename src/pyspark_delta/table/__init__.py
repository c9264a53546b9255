"""Tables without Spark: `Table`, and what its methods return."""

from pyspark_delta.table.alter import TableAlter
from pyspark_delta.table.inspecting import Inspection
from pyspark_delta.table.merge import TableMerge
from pyspark_delta.table.results import ChangeResult
from pyspark_delta.table.scan import Changes, Scan
from pyspark_delta.table.streaming import StreamBatch, TableStream
from pyspark_delta.table.table import Table

__all__ = [
    "ChangeResult",
    "Changes",
    "Inspection",
    "Scan",
    "StreamBatch",
    "Table",
    "TableAlter",
    "TableMerge",
    "TableStream",
]
