"""Catalogs that manage Delta tables (Catalog-managed Tables; C444-C484).

`contract` defines what a catalog offers. `sql` (SQLite, PostgreSQL), `filesystem` (put-if-absent) and `unity` (Unity
Catalog's API over HTTP) implement it; users may add their own. `managed_table` is the client's part, the same for every
catalog. `connections` keeps the catalogs that this process is connected to.
"""
