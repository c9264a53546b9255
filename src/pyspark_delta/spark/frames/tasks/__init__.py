"""Files spread over Spark tasks, which read them with Arrow."""
