"""Functions and operators of Spark's SQL that Arrow computes with exactly Spark's results."""
