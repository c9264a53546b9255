"""Unity Catalog's responses as values of the contract. Missing and additional members are tolerated where possible."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pyspark_delta.catalog.contract import (
    CommitKind,
    LogTail,
    Proposal,
    RatifiedCommit,
    StagingTable,
    TableInfo,
    TableName,
)
from pyspark_delta.catalog.log_tail import leads_to
from pyspark_delta.catalog.unity.property_sync import MANAGED_PROPERTY, SUPPORTED, own_properties
from pyspark_delta.errors import CatalogError
from pyspark_delta.storage.paths import normalize_location, split


def table_of(name: TableName, answer: Any) -> TableInfo:
    """Return the table in a response of the Delta API. Raises CatalogError for any other response."""
    metadata = _object(answer, "metadata", "table")
    properties = texts(metadata.get("properties"))
    table_id = _text(metadata, "table-uuid", "table")
    tail = None
    if properties.get(MANAGED_PROPERTY) == SUPPORTED:
        commits = [_commit_of(value, "-") for value in answer.get("commits") or ()]
        tail = tail_of(commits, answer.get("latest-table-version"), str(name))
    return TableInfo(
        table_id=table_id,
        name=name,
        location=normalize_location(_text(metadata, "location", "table")),
        etag=str(metadata.get("etag") or ""),
        tail=tail,
        properties=own_properties(properties),
    )


def staging_of(name: TableName, answer: Any) -> StagingTable:
    """Return the staging table in a response of the Delta API. Raises CatalogError for any other response."""
    if not isinstance(answer, dict):
        raise _unreadable("staging table", answer)
    return StagingTable(
        table_id=_text(answer, "table-id", "staging table"),
        name=name,
        location=normalize_location(_text(answer, "location", "staging table")),
        required_features=_features(answer.get("required-protocol")),
        suggested_features=_features(answer.get("suggested-protocol")),
        required_properties=_optional_texts(answer.get("required-properties")),
        suggested_properties=_optional_texts(answer.get("suggested-properties")),
    )


def tail_of(commits: Iterable[RatifiedCommit], latest: Any, table: str) -> LogTail:
    """Return the log tail of commits in any order; `latest` is the latest version that the server states.

    If the server states none, it is the version of the last commit, or 0 without commits; -1 means 0. Raises
    CatalogError for a gap, and for commits that do not end at the latest version.
    """
    ascending = tuple(sorted(commits, key=lambda commit: commit.version))
    versions = [commit.version for commit in ascending]
    newest = max(number(latest), 0) if latest is not None else (versions[-1] if versions else 0)
    if versions and not leads_to(versions, newest):
        raise CatalogError(
            f"The catalog's commits of {table} do not lead to its latest version {newest} without a gap: it named "
            f"{', '.join(map(str, versions))}. The table cannot be read before the catalog is repaired.",
            table=table,
            versions=versions,
            latest=newest,
        )
    return LogTail(newest, ascending, versions[0] - 1 if versions else newest)


def within(tail: LogTail, start: int | None, end: int | None) -> LogTail:
    """Return the log tail with only the commits of a range of versions, both ends included."""
    first, last = start if start is not None else 0, end if end is not None else tail.latest_version
    chosen = tuple(commit for commit in tail.commits if first <= commit.version <= last)
    return LogTail(tail.latest_version, chosen, tail.published_version)


def commit_of_proposal(proposal: Proposal) -> RatifiedCommit:
    """Return the commit that a staged proposal becomes."""
    assert proposal.file is not None
    return RatifiedCommit(
        version=proposal.version,
        kind=CommitKind.STAGED,
        timestamp=proposal.timestamp,
        file_name=proposal.file.name,
        size=proposal.file.size,
        modification_time=proposal.file.modification_time,
        transaction_id=proposal.transaction_id,
    )


def commit_to_json(commit: RatifiedCommit, separator: str) -> dict[str, Any]:
    """Return the JSON of a staged commit; words in names are separated by '-' (Delta API) or '_' (legacy endpoints)."""
    return {
        "version": commit.version,
        "timestamp": commit.timestamp,
        f"file{separator}name": commit.file_name,
        f"file{separator}size": commit.size,
        f"file{separator}modification{separator}timestamp": commit.modification_time,
    }


def commits_of(values: Any) -> list[RatifiedCommit]:
    """Return the commits in a response of the legacy endpoints."""
    return [_commit_of(value, "_") for value in values or ()]


def _commit_of(value: Any, separator: str) -> RatifiedCommit:
    name = value.get(f"file{separator}name") if isinstance(value, dict) else None
    if not isinstance(name, str) or not name or "/" in name or name in (".", ".."):
        raise _unreadable("commit", value)
    version = value.get("version")
    if not isinstance(version, int) or version < 0:
        raise _unreadable("commit", value)
    return RatifiedCommit(
        version=version,
        kind=CommitKind.STAGED,
        timestamp=number(value.get("timestamp")),
        file_name=name,
        size=number(value.get(f"file{separator}size")),
        modification_time=number(value.get(f"file{separator}modification{separator}timestamp")),
    )


def wire_location(location: str) -> str:
    """Return a location as requests spell it: `file:///dir` for a local one."""
    return f"file://{location}" if split(location)[0] == "file" else location


def number(value: Any) -> int:
    """Return a JSON value if it is a whole number, otherwise 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def texts(value: Any) -> dict[str, str]:
    """Return the members of a JSON object that are not null, as text."""
    return {key: text for key, text in _optional_texts(value).items() if text is not None}


def _optional_texts(value: Any) -> dict[str, str | None]:
    if not isinstance(value, dict):
        return {}
    return {str(key): None if member is None else str(member) for key, member in value.items()}


def _features(protocol: Any) -> frozenset[str]:
    if not isinstance(protocol, dict):
        return frozenset()
    named = [*(protocol.get("reader-features") or ()), *(protocol.get("writer-features") or ())]
    return frozenset(str(feature) for feature in named)


def _object(answer: Any, key: str, what: str) -> Mapping[str, Any]:
    value = answer.get(key) if isinstance(answer, dict) else None
    if not isinstance(value, dict):
        raise _unreadable(what, answer)
    return value


def _text(value: Mapping[str, Any], key: str, what: str) -> str:
    found = value.get(key)
    if not isinstance(found, str) or not found:
        raise _unreadable(what, value)
    return found


def _unreadable(what: str, value: Any) -> CatalogError:
    text = repr(value)
    return CatalogError(
        f"The catalog's response is not the requested {what}: {text[:200]}. "
        "Check that the URL is that of Unity Catalog's API, such as https://host/api/2.1/unity-catalog.",
    )
