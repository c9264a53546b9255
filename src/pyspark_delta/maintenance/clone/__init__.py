"""CLONE: a new table with the files of a version of another one, by reference (shallow) or as copies (deep)."""

from pyspark_delta.maintenance.clone.plan import ClonePlan, CloneResult, plan_clone
from pyspark_delta.maintenance.clone.target import CloneTarget

__all__ = ["ClonePlan", "CloneResult", "CloneTarget", "plan_clone"]
