"""Checking a table against the protocol: what is wrong, where, and what to do.

Every check has an id, such as L01, in `catalogue`; a module of checks follows one part of a table. No check changes the
table; `repair` does.
"""

from __future__ import annotations

from pyspark_delta.maintenance.checking.catalogue import Severity
from pyspark_delta.maintenance.checking.findings import LEVELS, CheckLevel, CheckResult, Finding
from pyspark_delta.maintenance.checking.run import CheckRequest, check_table

__all__ = ["LEVELS", "CheckLevel", "CheckRequest", "CheckResult", "Finding", "Severity", "check_table"]
