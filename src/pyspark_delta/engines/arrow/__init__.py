"""The Arrow engine: statements whose conditions and values Arrow computes with exactly Spark's results."""
