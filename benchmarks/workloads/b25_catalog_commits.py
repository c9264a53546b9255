"""B25: commits through catalogs, each staged or inline, ratified and published, beside commits of plain files."""

from __future__ import annotations

import atexit
import random
import shutil
import tempfile
import time
import uuid
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.model import OURS, Growth, Peer, Prepared, Scale, Variant, Workload
from benchmarks.workloads.logs import log

_HERE = __name__
COMMITS = 200


def workload(scale: Scale) -> Workload:
    """1, 4 and 8 processes on a new table; one on a table with many commits, all of which are published.

    Those are there as if they had been made: one by one they would take minutes for each catalog. Processes have opened
    the table before the time begins: what opening takes is another question (B1, B6).
    """
    files = log(scale.files[0], checksum=True)
    old = scale.commits[1]

    peers = (
        Peer(OURS, f"{_HERE}:sqlite"),
        Peer("pyspark-delta, PostgreSQL", f"{_HERE}:postgresql"),
        Peer("pyspark-delta, catalog of files", f"{_HERE}:files"),
        Peer("pyspark-delta, no catalog", f"{_HERE}:path"),
    )

    def variant(name: str, processes: int, before: int) -> Variant:
        goals = tuple(Growth("1 process", 1.3, slack=0.02, peer=peer.name) for peer in peers) if before else ()
        return Variant(name, files, {"processes": processes, "before": before}, goals, repetitions=2)

    return Workload(
        "B25",
        f"{COMMITS} commits of a managed table by several processes",
        peers,
        (
            *(variant(f"{n} process{'es' if n > 1 else ''}", n, 0) for n in (1, 4, 8)),
            variant(f"1 process after {old} commits", 1, old),
        ),
    )


def sqlite(location: str, processes: int, before: int) -> Prepared:
    folder = _folder(location)
    return _together(f"sqlite:///{folder}/catalog.db", folder, processes, before)


def postgresql(location: str, processes: int, before: int) -> Prepared:
    import psycopg

    from benchmarks.postgresql import USER, installed, server

    program = installed()
    if program is None:
        raise RuntimeError("PostgreSQL is not installed")
    running = ExitStack()
    atexit.register(running.close)
    socket = running.enter_context(server(program))
    with psycopg.connect(host=socket, user=USER, dbname="postgres", autocommit=True) as connection:
        connection.execute("CREATE DATABASE catalog")
    return _together(f"postgresql://{USER}@/catalog?host={socket}", _folder(location), processes, before)


def files(location: str, processes: int, before: int) -> Prepared:
    folder = _folder(location)
    return _together(f"file://{folder}/catalog", folder, processes, before)


def path(location: str, processes: int, before: int) -> Prepared:
    return _together("", _folder(location), processes, before)


def _folder(location: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="b25-", dir=Path(location).parent))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _together(url: str, folder: Path, processes: int, before: int) -> Prepared:
    _create(url, folder)
    pool = ProcessPoolExecutor(processes, mp_context=get_context("spawn"))
    if before:
        pool.submit(fill, url, folder, before).result()

    def committed(tasks: int, commits: int) -> int:
        return sum(pool.map(commit, [url] * tasks, [folder] * tasks, [commits] * tasks))

    committed(processes * 4, 0)  # so that all have opened the table

    def timed() -> int:
        return committed(processes, COMMITS // processes)

    def answer(done: int) -> list[int]:
        pool.shutdown()
        versions = [int(found.stem) for found in folder.rglob("_delta_log/[0-9]*.json")]
        return [done, len(versions), max(versions)]

    return Prepared(timed, answer)


def _create(url: str, folder: Path) -> None:
    """A table `main.b.t`, or one in the folder itself where there is no catalog."""
    from pyspark_delta.testing.catalog_tables import CatalogSetup, commit_content, create_table

    if not url:
        log_folder = folder / "_delta_log"
        log_folder.mkdir()
        (log_folder / f"{0:020d}.json").write_bytes(commit_content(0, "first"))
        return
    catalog = _connect(url, folder)
    catalog.create_schema("main", "b")
    create_table(CatalogSetup(make=lambda: catalog, schema="b"), catalog)
    getattr(catalog, "close", lambda: None)()


def _connect(url: str, folder: Path) -> Any:
    from pyspark_delta.catalog import connections

    return connections.connect(url, "main", storage_root=str(folder / "tables"))


@cache
def _committer(url: str, folder: Path) -> tuple[Any, str, int]:
    """A committer, the location of the table, and its latest version; made once in each process."""
    from pyspark_delta.catalog.contract import TableName
    from pyspark_delta.catalog.managed_table import ManagedTable
    from pyspark_delta.commit.catalog import CatalogCommitter
    from pyspark_delta.commit.filesystem import FilesystemCommitter
    from pyspark_delta.log.listing import list_log
    from pyspark_delta.storage import store_for

    if not url:
        store = store_for(str(folder))
        return FilesystemCommitter(store), str(folder), list_log(store, str(folder)).latest_version or 0
    catalog = _connect(url, folder)
    table = catalog.load_table(TableName("main", "b", "t"))
    committer = CatalogCommitter(ManagedTable(catalog, table), store_for(table.location))
    return committer, table.location, table.tail.latest_version


def fill(url: str, folder: Path, commits: int) -> None:
    """What so many commits leave behind once they are published: their files, and what the catalog keeps of them."""
    from pyspark_delta.actions.model import SetTransaction
    from pyspark_delta.testing.catalog_tables import START, commit_content

    (log_folder,) = folder.rglob("_delta_log")
    filling = SetTransaction(app_id="x" * 800, version=1)
    identities = {version: str(uuid.uuid4()) for version in range(1, commits + 1)}
    for version, identity in identities.items():
        (log_folder / f"{version:020d}.json").write_bytes(commit_content(version, identity, filling))
    if not url.startswith(("sqlite:", "postgresql:")):
        return
    from sqlalchemy import insert, update

    from pyspark_delta.catalog.sql import tables

    catalog = _connect(url, folder)
    kept = range(max(commits - catalog._settings.kept_commits, 1), commits + 1)
    same = {"table_id": log_folder.parent.name, "kind": "PUBLISHED", "size": 1000, "modification_time": 0}
    rows = [
        {
            **same,
            "version": v,
            "timestamp": START + v,
            "transaction_id": identities[v],
            "principal": "",
            "committed_ms": 0,
        }
        for v in kept
    ]
    state = {"latest_version": commits, "latest_timestamp": START + commits, "published_version": commits}
    catalog._database.change(lambda connection: connection.execute(update(tables.tables).values(**state)))
    catalog._database.change(lambda connection: connection.execute(insert(tables.commits), rows))
    catalog.close()


def commit(url: str, folder: Path, commits: int) -> int:
    """So many commits of a kibibyte; whoever loses a version waits as transactions do, and tries the next."""
    from pyspark_delta.actions.model import SetTransaction
    from pyspark_delta.commit import CommitRequest, Committed, Transient, VersionTaken
    from pyspark_delta.testing.catalog_tables import commit_content
    from pyspark_delta.transaction.attempts import AttemptPolicy

    policy = AttemptPolicy()
    committer, location, version = _committer(url, folder)
    filling = SetTransaction(app_id="x" * 800, version=1)
    done = 0
    while done < commits:
        version += 1
        identity = str(uuid.uuid4())
        content = commit_content(version, identity, filling)
        request = CommitRequest(table_location=location, version=version, content=content, transaction_id=identity)
        begun = time.perf_counter()
        outcome = committer.commit(request)
        while isinstance(outcome, Transient):
            outcome = committer.commit(request)
        match outcome:
            case Committed():
                done += 1
            case VersionTaken(winners):
                longest = policy.contention_waits * (time.perf_counter() - begun)
                time.sleep(random.uniform(0, min(policy.contention_wait, longest)))
                version = winners[-1].version
                version = max((later.version for later in committer.later(location, version)), default=version)
            case _:
                raise RuntimeError(str(outcome))
    return done
