"""What processes do at once to one table of a catalog: commit, replay, publish, read. Each says what it was told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from pyspark_delta.catalog import connections
from pyspark_delta.catalog.contract import Capability, Catalog, LogTail, Proposal, TableInfo
from pyspark_delta.catalog.log_tail import published_path
from pyspark_delta.errors import RatificationConflictError, TooManyUnpublishedError
from pyspark_delta.storage import normalize_location
from pyspark_delta.testing.catalog_tables import CatalogSetup, commit_content, propose, publish

TABLE = "t"


@dataclass(frozen=True)
class Address:
    """How every process reaches the catalog, and a directory that all of them see."""

    url: str
    shared: Path
    storage_root: str | None = None
    token: str | None = None
    storage_options: Mapping[str, str] = field(default_factory=dict)

    def connect(self) -> Catalog:
        """The catalog, connected to anew."""
        return connections.connect(
            self.url, "main", token=self.token, storage_root=self.storage_root, storage_options=self.storage_options
        )

    @contextmanager
    def opened(self) -> Iterator[Catalog]:
        """The catalog while the block runs."""
        catalog = self.connect()
        try:
            yield catalog
        finally:
            connections.disconnect_catalog("main")
            getattr(catalog, "close", lambda: None)()

    def setup(self) -> CatalogSetup:
        """The same for the functions of `catalog_tables`."""
        return CatalogSetup(make=self.connect, storage_options=self.storage_options)


@dataclass
class Told:
    """What one process was told: acknowledged transaction ids by version; versions of others that it ran into."""

    acknowledged: dict[int, str] = field(default_factory=dict)
    conflicts: int = 0
    full: int = 0


@dataclass
class Seen:
    """What one reader saw: how often it read, and the transaction ids that the catalog named, by version."""

    reads: int = 0
    transactions: dict[int, str] = field(default_factory=dict)


def commit(address: Address, process: int, commits: int) -> Told:
    """Commit so many versions, each the one after the latest; some twice, as after a lost answer, some published."""
    random, setup, told = Random(process), address.setup(), Told()
    catalog = setup.make()
    table = catalog.load_table(setup.name(TABLE))
    tail = catalog.log_tail(table)
    with (address.shared / f"acknowledged-{process}").open("a") as note:
        while len(told.acknowledged) < commits:
            proposal = _proposal(setup, catalog, table, tail.latest_version + 1, random)
            try:
                catalog.ratify(table, proposal)
            except RatificationConflictError as error:
                told.conflicts += 1
                tail = error.tail or catalog.log_tail(table)
                assert tail.latest_version >= proposal.version
                continue
            except TooManyUnpublishedError:
                told.full += 1
                publish_all(setup, catalog, table)
                tail = catalog.log_tail(table)
                continue
            told.acknowledged[proposal.version] = proposal.transaction_id
            note.write(f"{proposal.version}\n")
            note.flush()
            if random.random() < 0.3:
                assert catalog.ratify(table, proposal).replayed
            if random.random() < 0.4:
                publish_all(setup, catalog, table)
            tail = catalog.log_tail(table)
            assert tail.latest_version >= proposal.version
    return told


def _proposal(setup: CatalogSetup, catalog: Catalog, table: TableInfo, version: int, random: Random) -> Proposal:
    proposal = propose(setup, catalog, table, version)
    if Capability.INLINE in catalog.capabilities and random.random() < 0.3:
        return replace(proposal, file=None, content=commit_content(version, proposal.transaction_id))
    return proposal


def publish_all(setup: CatalogSetup, catalog: Catalog, table: TableInfo) -> None:
    """Publish what the catalog names, in order, and say so; others may do the same."""
    commits = catalog.log_tail(table).commits
    for ratified in commits:
        publish(setup, table, ratified)
    if commits:
        catalog.report_published(table, commits[-1].version)


def read(address: Address) -> Seen:
    """Read the tail until somebody says stop, and check each: without a gap, and never older than what was known."""
    setup, seen, before = address.setup(), Seen(), -1
    catalog = setup.make()
    table = catalog.load_table(setup.name(TABLE))
    while not (address.shared / "stop").exists():
        known = max(newest_acknowledged(address), before)
        resolved = catalog.load_table(table.name).tail if seen.reads % 2 else catalog.log_tail(table)
        assert resolved is not None
        assert resolved.latest_version >= known
        _check(setup, table, resolved, seen)
        before = resolved.latest_version
        seen.reads += 1
    return seen


def newest_acknowledged(address: Address) -> int:
    """The newest version that any process was told to be ratified."""
    notes = [path.read_text() for path in address.shared.glob("acknowledged-*")]
    return max((int(line) for note in notes for line in note.split("\n")[:-1]), default=0)


def _check(setup: CatalogSetup, table: TableInfo, tail: LogTail, seen: Seen) -> None:
    versions = [ratified.version for ratified in tail.commits]
    assert versions == list(range(tail.latest_version - len(versions) + 1, tail.latest_version + 1)), tail
    path = published_path(normalize_location(table.location), tail.latest_version - len(versions))
    assert setup.store(path).status(path).size > 0  # everything before is published
    for ratified in tail.commits:
        if ratified.transaction_id is not None:
            assert seen.transactions.setdefault(ratified.version, ratified.transaction_id) == ratified.transaction_id
