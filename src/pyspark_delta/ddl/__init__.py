"""Changes to what a table declares: its columns, constraints, properties, clustering and protocol."""
