"""Streams of enabled classic sessions: Spark's traits `Source` and `Sink`, implemented in Python."""
