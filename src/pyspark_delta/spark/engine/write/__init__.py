"""Writes DataFrames to data files of a table, and replaces rows."""
