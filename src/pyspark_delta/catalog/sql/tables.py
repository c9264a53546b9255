"""The tables of a catalog in a database. Times are milliseconds since the epoch; `*_key` columns hold keys of names."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

SCHEMA_VERSION = 1
"""The version of these tables. A change to them needs a migration, and the next number."""

STAGING, ACTIVE, DROPPED = "STAGING", "ACTIVE", "DROPPED"
"""The states of a table: not yet named, named, dropped."""

metadata = MetaData()

schema_version = Table(
    "dl_schema_version",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("version", Integer, nullable=False),
)

schemas = Table(
    "dl_schema",
    metadata,
    Column("catalog_key", Text, nullable=False),
    Column("schema_key", Text, nullable=False),
    Column("catalog", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    PrimaryKeyConstraint("catalog_key", "schema_key"),
)

# The columns from `latest_version` on are filled for managed tables, and for tables registered with a description.
# `protocol`, `metadata` (without its configuration), `properties` and `domains` are JSON: one row describes a table.
tables = Table(
    "dl_table",
    metadata,
    Column("table_id", String(36), primary_key=True),
    Column("catalog_key", Text, nullable=False),
    Column("schema_key", Text, nullable=False),
    Column("name_key", Text, nullable=False),
    Column("catalog", Text, nullable=False),
    Column("schema_name", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("location", Text, nullable=False, unique=True),
    Column("state", String(8), nullable=False),
    Column("managed", Boolean, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("updated_ms", BigInteger, nullable=False),
    Column("dropped_ms", BigInteger),
    Column("allowed_maintenance", Text, nullable=False, server_default=""),
    Column("latest_version", BigInteger),
    Column("latest_timestamp", BigInteger),
    Column("published_version", BigInteger),
    Column("metadata_number", BigInteger, nullable=False, server_default="0"),
    Column("protocol", Text),
    Column("metadata", Text),
    Column("properties", Text),
    Column("domains", Text),
    CheckConstraint("published_version <= latest_version", name="dl_table_published"),
    CheckConstraint("state IN ('STAGING', 'ACTIVE', 'DROPPED')", name="dl_table_state"),
)

_named = text("state = 'ACTIVE'")
Index(
    "dl_table_name",
    tables.c.catalog_key,
    tables.c.schema_key,
    tables.c.name_key,
    unique=True,
    sqlite_where=_named,
    postgresql_where=_named,
)
Index(
    "dl_table_dropped",
    tables.c.dropped_ms,
    sqlite_where=text("state = 'DROPPED'"),
    postgresql_where=text("state = 'DROPPED'"),
)

commits = Table(
    "dl_commit",
    metadata,
    Column("table_id", String(36), nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("kind", String(9), nullable=False),
    Column("timestamp", BigInteger, nullable=False),
    Column("file_name", String(62)),
    Column("size", BigInteger, nullable=False),
    Column("modification_time", BigInteger, nullable=False),
    Column("content", LargeBinary),
    Column("transaction_id", Text),
    Column("principal", Text, nullable=False),
    Column("committed_ms", BigInteger, nullable=False),
    PrimaryKeyConstraint("table_id", "version"),
    UniqueConstraint("table_id", "transaction_id"),
    UniqueConstraint("table_id", "file_name"),
    CheckConstraint(
        "(kind = 'STAGED' AND file_name IS NOT NULL AND content IS NULL)"
        " OR (kind = 'INLINE' AND file_name IS NULL AND content IS NOT NULL)"
        " OR (kind = 'PUBLISHED' AND content IS NULL)",
        name="dl_commit_kind",
    ),
)

tokens = Table(
    "dl_token",
    metadata,
    Column("sha256", String(64), primary_key=True),
    Column("token_id", String(36), nullable=False, unique=True),
    Column("principal", Text, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("schemas", Text),
    Column("created_ms", BigInteger, nullable=False),
    Column("expires_ms", BigInteger),
)
