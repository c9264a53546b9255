"""DataFrames become data files of a table, or replace its rows."""
