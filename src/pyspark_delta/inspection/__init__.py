"""Look inside a table: metadata tables of a version, and the differences between two versions."""

from pyspark_delta.inspection.difference import TableDiff
from pyspark_delta.inspection.metadata import NAMES, MetadataTable, metadata_table

__all__ = ["NAMES", "MetadataTable", "TableDiff", "metadata_table"]
