"""Changes to the declarations of a table: its columns, constraints, properties, clustering and protocol."""
