"""SQL of classic sessions: interfaces of Spark, implemented in Python, and installed into a session."""
