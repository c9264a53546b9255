"""Parquet files below Arrow: footers and page headers as values, for what Arrow has no function for."""
