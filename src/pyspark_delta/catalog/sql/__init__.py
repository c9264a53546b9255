"""A catalog in a database, through SQLAlchemy: SQLite or PostgreSQL."""

from pyspark_delta.catalog.sql.catalog import SqlCatalog

__all__ = ["SqlCatalog"]
