"""The version checksum of a commit just made, computed from an earlier one (Version Checksum File; C105-C126)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
import pyarrow.compute as pc

from pyspark_delta.actions.encode import metadata_to_json, protocol_to_json, transaction_to_json
from pyspark_delta.actions.model import SetTransaction
from pyspark_delta.commit import TakenVersion
from pyspark_delta.errors import CorruptLogError, FileAlreadyExistsError, FileNotFoundInStoreError
from pyspark_delta.log.names import LOG_DIRECTORY, CommitName, VersionChecksumName
from pyspark_delta.log.version_checksum import parse_checksum
from pyspark_delta.protocol.ready import ReadyCommit
from pyspark_delta.storage import ObjectStore
from pyspark_delta.storage.paths import join
from pyspark_delta.transaction.winner import Winner

# Concurrent writers see each other's commits before the checksums: so many commits are made up for.
_FURTHEST_BACK = 8


@dataclass(frozen=True, slots=True)
class Totals:
    """What a version checksum counts: live files, their bytes, and the live application transactions, if known."""

    num_files: int = 0
    size: int = 0
    transactions: Mapping[str, SetTransaction] | None = field(default_factory=dict, hash=False)


def write_version_checksum(ready: ReadyCommit, location: str, store: ObjectStore) -> bool:
    """Write the checksum of a version that was committed; whether there was enough to compute it from.

    Nothing is read but an earlier checksum and the few commits since. Raises StorageError.
    """
    before = Totals() if ready.version == 0 else _totals(ready.version - 1, location, store)
    if before is None:
        return False
    after = _after(before, ready)
    content = orjson.dumps(_checksum(after, ready))
    try:
        store.write_if_absent(_path(location, VersionChecksumName(ready.version)), content)
    except FileAlreadyExistsError:
        return True
    return True


def _checksum(totals: Totals, ready: ReadyCommit) -> dict[str, Any]:
    value: dict[str, Any] = {
        "txnId": ready.draft.transaction_id,
        "tableSizeBytes": totals.size,
        "numFiles": totals.num_files,
        "numMetadata": 1,
        "numProtocol": 1,
    }
    if totals.transactions is not None:
        value["setTransactions"] = [transaction_to_json(t) for t in totals.transactions.values()]
    value["metadata"] = metadata_to_json(ready.configuration.metadata)
    value["protocol"] = protocol_to_json(ready.configuration.protocol)
    return value


def _after(before: Totals, ready: ReadyCommit) -> Totals:
    transactions = before.transactions
    if transactions is not None:
        transactions = {**transactions, **{t.app_id: t for t in ready.transactions}}
    added, removed = pc.sum(ready.adds.column("size")).as_py(), pc.sum(ready.removes.column("size")).as_py()
    return Totals(
        before.num_files + ready.adds.num_rows - ready.removes.num_rows,
        before.size + (added or 0) - (removed or 0),
        transactions,
    )


def _totals(version: int, location: str, store: ObjectStore) -> Totals | None:
    """The totals of a version, from the nearest checksum; None when there is none near, or the way is not plain."""
    later: list[Winner] = []
    for number in range(version, max(-1, version - _FURTHEST_BACK), -1):
        path = _path(location, VersionChecksumName(number))
        if (content := _read(path, store)) is not None:
            return _advanced(_parsed(content, path), reversed(later))
        if (content := _read(_path(location, CommitName(number)), store)) is None:
            return None
        later.append(Winner.parse(TakenVersion(number, content)))
    return None


def _advanced(totals: Totals | None, commits: Iterable[Winner]) -> Totals | None:
    for commit in commits:
        if totals is None:
            return None
        added, removed = commit.added(), commit.removed
        if (
            pc.any(pc.is_in(added.column("path"), value_set=removed.column("path"))).as_py()
            or removed.column("size").null_count
            or not pc.all(pc.fill_null(added.column("data_change"), False)).as_py()
        ):
            return None  # a file added again, or changed in place: only reconciliation can tell
        transactions = totals.transactions
        if transactions is not None:
            transactions = {**transactions, **{t.app_id: t for t in commit.transactions}}
        totals = Totals(
            totals.num_files + added.num_rows - removed.num_rows,
            totals.size + (pc.sum(added.column("size")).as_py() or 0) - (pc.sum(removed.column("size")).as_py() or 0),
            transactions,
        )
    return totals


def _parsed(content: bytes, path: str) -> Totals | None:
    try:
        checksum = parse_checksum(content, path)
    except CorruptLogError:
        return None
    return Totals(checksum.num_files, checksum.table_size_bytes, checksum.transactions)


def _path(location: str, name: object) -> str:
    return join(location, LOG_DIRECTORY, str(name))


def _read(path: str, store: ObjectStore) -> bytes | None:
    try:
        return store.read(path)
    except FileNotFoundInStoreError:
        return None
