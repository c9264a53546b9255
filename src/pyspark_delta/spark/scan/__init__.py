"""The scans of a snapshot as Spark DataFrames."""
