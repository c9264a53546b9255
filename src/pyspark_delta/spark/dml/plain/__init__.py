"""Statements that Arrow carries out by itself: their conditions and values are computed with exactly Spark's results.

No row passes through Spark then. A statement, a table or a row of which that is not certain is left to Spark. Where a
row shows that, InvalidPredicateError says so; users do not see it.
"""
