"""Maintenance by a policy: what is worth doing, why, and doing it."""

from pyspark_delta.maintenance.policy.policy import MaintenancePolicy, MaintenanceReport, MaintenanceTask
from pyspark_delta.maintenance.policy.run import MaintenancePlan, plan_maintenance

__all__ = ["MaintenancePlan", "MaintenancePolicy", "MaintenanceReport", "MaintenanceTask", "plan_maintenance"]
