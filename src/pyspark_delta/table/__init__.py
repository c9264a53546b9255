"""Tables without Spark: `Table`, and the reads that it plans."""

from pyspark_delta.table.scan import Changes, Scan
from pyspark_delta.table.table import Table

__all__ = ["Changes", "Scan", "Table"]
