"""Small tables and commits for tests of catalogs, as a client would write them, without data."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

from pyspark_delta.actions.encode import encode_actions
from pyspark_delta.actions.model import Action, CommitInfo, Metadata, Protocol
from pyspark_delta.catalog.contract import (
    Capability,
    Catalog,
    CommitKind,
    NewTable,
    Proposal,
    RatifiedCommit,
    StagedFile,
    StagingTable,
    TableInfo,
    TableName,
)
from pyspark_delta.catalog.log_tail import commit_path, published_path, staged_path
from pyspark_delta.errors import DeltaError, FileAlreadyExistsError
from pyspark_delta.log.names import CommitName
from pyspark_delta.storage import ObjectStore, normalize_location, store_for

START = 1_700_000_000_000
"""The in-commit timestamp of version 0; that of version v is v later."""

SCHEMA = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'

E = TypeVar("E", bound=DeltaError)


@dataclass(frozen=True)
class CatalogSetup:
    """A catalog for tests. Its schema `schema` exists and is empty.

    `make` returns the catalog as another process would see it. `max_unpublished` is how many commits may be
    unpublished.
    """

    make: Callable[[], Catalog]
    catalog: str = "main"
    schema: str = "tests"
    storage_options: Mapping[str, str] = field(repr=False, default_factory=dict)
    max_unpublished: int = 10

    def name(self, table: str) -> TableName:
        """Return the full name of a table in the schema."""
        return TableName(self.catalog, self.schema, table)

    def store(self, location: str) -> ObjectStore:
        """Return the store of a table."""
        return store_for(normalize_location(location), self.storage_options)


def stage_table(setup: CatalogSetup, catalog: Catalog, name: TableName) -> tuple[StagingTable, NewTable]:
    """Return a staging table with its version 0, and its description for the catalog."""
    staging = catalog.create_staging_table(name)
    new = new_table(staging)
    write_first_commit(setup, staging, new)
    return staging, new


def new_table(staging: StagingTable) -> NewTable:
    """Return version 0 of a table that meets the requirements of its catalog."""
    features = frozenset({"catalogManaged", "inCommitTimestamp", *staging.required_features})
    properties = {"delta.enableInCommitTimestamps": "true"}
    properties |= {
        key: staging.table_id if value is None else value for key, value in staging.required_properties.items()
    }
    protocol = Protocol(
        min_reader_version=3,
        min_writer_version=7,
        reader_features=features - {"inCommitTimestamp"},
        writer_features=features,
    )
    metadata = Metadata(id=str(uuid.uuid4()), schema_string=SCHEMA, configuration=properties, created_time=START)
    return NewTable(version=0, timestamp=START, protocol=protocol, metadata=metadata)


def write_first_commit(setup: CatalogSetup, staging: StagingTable, new: NewTable) -> None:
    """Write version 0 to its staging location."""
    content = commit_content(new.version, str(uuid.uuid4()), new.protocol, new.metadata)
    path = published_path(normalize_location(staging.location), 0)
    setup.store(path).write_if_absent(path, content)


def create_table(setup: CatalogSetup, catalog: Catalog, name: str = "t") -> TableInfo:
    """Return a new managed table with version 0."""
    return catalog.create_table(*stage_table(setup, catalog, setup.name(name)))


def commit_content(version: int, transaction_id: str, *actions: Action, timestamp: int | None = None) -> bytes:
    """Return a commit with commitInfo and the given actions."""
    info = CommitInfo(
        values={
            "inCommitTimestamp": START + version if timestamp is None else timestamp,
            "timestamp": START + version,
            "operation": "TEST",
            "txnId": transaction_id,
        }
    )
    return encode_actions([info, *actions])


def propose(
    setup: CatalogSetup, catalog: Catalog, table: TableInfo, version: int, *, timestamp: int | None = None
) -> Proposal:
    """Return a proposal that the catalog accepts: staged, or inline if it accepts only that."""
    transaction_id = str(uuid.uuid4())
    content = commit_content(version, transaction_id, timestamp=timestamp)
    proposal = Proposal(
        version=version,
        timestamp=START + version if timestamp is None else timestamp,
        transaction_id=transaction_id,
        content=content,
    )
    if Capability.STAGED not in catalog.capabilities:
        return proposal
    return replace(proposal, content=None, file=stage(setup, table, version, content))


def stage(setup: CatalogSetup, table: TableInfo, version: int, content: bytes) -> StagedFile:
    """Write a staged commit."""
    name = str(CommitName(version, str(uuid.uuid4())))
    path = staged_path(normalize_location(table.location), name)
    store = setup.store(path)
    store.write_if_absent(path, content)
    status = store.status(path)
    return StagedFile(name, status.size, status.modification_time)


def publish(setup: CatalogSetup, table: TableInfo, commit: RatifiedCommit) -> None:
    """Publish a ratified commit without reporting it."""
    if commit.kind is CommitKind.PUBLISHED:
        return
    location = normalize_location(table.location)
    path = published_path(location, commit.version)
    store = setup.store(path)
    content = commit.content or store.read(commit_path(location, commit))
    try:
        store.write_if_absent(path, content)
    except FileAlreadyExistsError:
        assert store.read(path) == content


def commit_versions(setup: CatalogSetup, catalog: Catalog, table: TableInfo, first: int, last: int) -> list[Proposal]:
    """Commit versions one after the other, publishing none."""
    proposals = [propose(setup, catalog, table, version) for version in range(first, last + 1)]
    for proposal in proposals:
        catalog.ratify(table, proposal)
    return proposals


def fresh(setup: CatalogSetup, name: str = "t") -> tuple[Catalog, TableInfo]:
    """Return a catalog and a new table in it."""
    catalog = setup.make()
    return catalog, create_table(setup, catalog, name)


@contextmanager
def raises(kind: type[E]) -> Iterator[list[E]]:
    """Check that the block raises an error of a class; afterwards the yielded list contains the error."""
    caught: list[E] = []
    try:
        yield caught
    except kind as error:
        caught.append(error)
    else:
        raise AssertionError(f"no {kind.__name__} was raised")
