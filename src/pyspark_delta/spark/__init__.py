"""Delta tables in Spark sessions, classic and Connect: the only package that imports pyspark."""
