"""Predicates: parsing SQL text, the expression tree, three-valued evaluation over Arrow data."""
