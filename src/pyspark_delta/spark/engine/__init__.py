"""Spark as the engine of writes and statements."""
