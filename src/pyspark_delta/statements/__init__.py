"""DELETE, UPDATE and MERGE, independent of the engine that runs them."""
