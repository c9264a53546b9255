"""Spark's own Parquet scan over a file index that is implemented in Python; classic sessions only."""
