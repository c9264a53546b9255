"""MERGE: clauses, condition and keys."""
