"""`DeltaTable` and its builders, with delta-spark's names."""
