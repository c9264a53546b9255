"""SQL of enabled sessions: Delta tables in queries and statements."""
