"""DELETE, UPDATE and MERGE: what they mean, whatever engine runs them."""
