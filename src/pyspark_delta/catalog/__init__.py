"""Catalogs that manage Delta tables (Catalog-managed Tables; C444-C484).

`contract` says what a catalog offers. There are four: `sql` (SQLite, PostgreSQL), `filesystem` (put-if-absent),
`unity` (Unity Catalog's API over HTTP), and whatever else implements the contract. `managed_table` does for all of them
what clients have to do; `connections` keeps the catalogs that this process is connected to.
"""
