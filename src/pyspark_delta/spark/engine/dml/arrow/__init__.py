"""Statements that Arrow carries out by itself: their conditions and values are computed with exactly Spark's results.

No row passes through Spark then. A statement, a table or a row of which that is not certain is left to Spark. Where a
row or a file shows that, one of `LEFT_TO_SPARK` says so; users do not see it.
"""

from pyspark_delta.errors import InvalidPredicateError, UnsupportedDataFileError

LEFT_TO_SPARK = (InvalidPredicateError, UnsupportedDataFileError)
"""What is raised for a row whose result only Spark can tell, and for a file that only Spark can read."""
