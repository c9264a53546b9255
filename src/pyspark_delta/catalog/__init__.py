"""Catalogs that manage Delta tables (Catalog-managed Tables; C444-C484).

`contract` says what a catalog offers. Three implement it here: `sql` (SQLite, PostgreSQL), `filesystem` (put-if-absent)
and `unity` (Unity Catalog's API over HTTP); users may add their own. `managed_table` does for all of them what clients
have to do; `connections` keeps the catalogs that this process is connected to.
"""
