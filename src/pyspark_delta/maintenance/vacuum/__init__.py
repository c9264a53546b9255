"""VACUUM: delete the data files that no retained version of a table needs."""

from pyspark_delta.maintenance.vacuum.plan import VacuumPlan, plan_vacuum
from pyspark_delta.maintenance.vacuum.request import RunOptions, VacuumRequest
from pyspark_delta.maintenance.vacuum.run import VacuumResult

__all__ = ["RunOptions", "VacuumPlan", "VacuumRequest", "VacuumResult", "plan_vacuum"]
