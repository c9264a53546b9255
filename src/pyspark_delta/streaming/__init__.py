"""Reading a table as a stream, without Spark: offsets, limits, what commits mean to a stream, and its batches."""
