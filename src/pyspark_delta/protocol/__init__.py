"""Protocol and configuration of a table: table features and their registry, typed properties, the support check."""
