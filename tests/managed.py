"""Tables of a catalog in a database, made and changed without Spark."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from pyspark_delta.catalog.connections import attach_catalog
from pyspark_delta.catalog.contract import Catalog
from pyspark_delta.catalog.names import required_name, resolve, resolve_or_create
from pyspark_delta.catalogs import DeltaCatalog, connect_catalog
from pyspark_delta.ddl.create import CreateMode, TableDefinition, create_table
from pyspark_delta.schema.types import LONG, StructField, StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.table import Table
from pyspark_delta.transaction.attempts import AttemptPolicy
from pyspark_delta.transaction.transaction import Transaction

PATIENT: dict[str, Any] = {"policy": AttemptPolicy(repetitions=2, sleep=lambda _: None)}
IDS = StructType((StructField("id", LONG, True),))


class Warehouse:
    """A catalog with one schema `s`, under a name that no other test has."""

    def __init__(self, directory: Path, *, root: str | None = None, url: str | None = None) -> None:
        self._connect(url or f"sqlite:///{directory / 'catalog.db'}", root or str(directory / "tables"))
        self.catalog.create_schema("s")

    @classmethod
    def served(cls, url: str, token: str | None) -> Warehouse:
        """The catalog `main` of a server, which has the schema."""
        made = cls.__new__(cls)
        made._connect(url, "", "main", token)
        return made

    def _connect(self, url: str, root: str, name: str | None = None, token: str | None = None) -> None:
        self.url, self.root, self.token = url, root, token
        self.name = name or f"c{uuid.uuid4().hex[:12]}"
        self.catalog: DeltaCatalog = connect_catalog(url, self.name, token=token, storage_root=root or None)

    def __getstate__(self) -> tuple[str, str, str, str | None]:
        return self.url, self.root, self.name, self.token

    def __setstate__(self, state: tuple[str, str, str, str | None]) -> None:
        self._connect(*state)  # another process connects for itself

    def through(self, catalog: Catalog) -> None:
        """From now on the name stands for another view of the catalog, such as one that fails."""
        attach_catalog(self.name, catalog)

    def full(self, table: str) -> str:
        """The full name of a table."""
        return f"{self.name}.s.{table}"

    def create(self, table: str = "t", properties: Mapping[str, str] | None = None, mode: str = "create") -> None:
        """Create a table with one column `id`."""
        resolved = resolve_or_create(required_name(self.full(table)))
        definition = TableDefinition(schema=IDS, properties=dict(properties or {}))
        create_table(
            resolved.location,
            definition,
            CreateMode(mode),
            storage_options=resolved.storage_options,
            catalog_table=resolved.catalog_table,
        )

    def open(self, table: str = "t", version: int | None = None) -> Table:
        """The table."""
        return self.catalog.table(f"s.{table}", version=version)

    def location(self, table: str = "t") -> str:
        """Where the table lies."""
        return resolve(required_name(self.full(table))).location

    def snapshot(self, table: str = "t") -> Snapshot:
        """A snapshot that no cache has seen."""
        resolved = resolve(required_name(self.full(table)))
        return Snapshot.load(
            resolved.location, storage_options=resolved.storage_options, catalog_table=resolved.catalog_table
        )

    def append(self, *ids: int, table: str = "t") -> int:
        """Append rows; the version."""
        with Transaction.on(self.snapshot(table), **PATIENT) as transaction:
            transaction.write([pa.RecordBatch.from_pydict({"id": pa.array(ids, pa.int64())})])
        return transaction.version

    def ids(self, table: str = "t", version: int | None = None) -> list[int]:
        """The rows, in order."""
        found: list[int] = self.open(table, version).scan().to_arrow().column("id").to_pylist()
        return sorted(found)
