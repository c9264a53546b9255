"""Catalogs with Unity Catalog's API over HTTP: the Delta API v1, and the legacy endpoints where a server lacks it."""

from pyspark_delta.catalog.unity.catalog import UnityCatalog

__all__ = ["UnityCatalog"]
