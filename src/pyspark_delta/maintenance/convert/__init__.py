"""CONVERT TO DELTA: a log for a directory of Parquet files, which stay as they are."""

from pyspark_delta.maintenance.convert.plan import ConvertPlan, ConvertRequest, ConvertResult, plan_convert

__all__ = ["ConvertPlan", "ConvertRequest", "ConvertResult", "plan_convert"]
