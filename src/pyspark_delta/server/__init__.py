"""A server that offers a catalog in a database through Unity Catalog's API."""
