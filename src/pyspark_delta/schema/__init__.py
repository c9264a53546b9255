"""Delta types and schemas: their forms in Arrow, JSON and SQL, and changes to them."""
