"""From snapshots and files to DataFrames."""
