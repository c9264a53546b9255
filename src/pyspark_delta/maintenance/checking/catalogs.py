"""Checks of a table that a catalog manages: its commits against the published ones (A01)."""

from __future__ import annotations

from pyspark_delta.catalog.log_tail import published_path
from pyspark_delta.errors import DeltaError, FileNotFoundInStoreError
from pyspark_delta.log.names import CommitName
from pyspark_delta.maintenance.checking.catalogue import Severity
from pyspark_delta.maintenance.checking.findings import Findings
from pyspark_delta.maintenance.checking.table_log import TableLog
from pyspark_delta.storage.paths import file_name


def check_catalog(log: TableLog, findings: Findings) -> None:
    """Check that the catalog's newest version can be reached, and that published commits are those that it ratified."""
    tail = log.tail
    if tail is None:
        return
    newest = max(log.listing.commits, default=-1)
    if newest < tail.latest_version:
        findings.add(
            "A01",
            f"The catalog says that version {tail.latest_version} is the newest, and only versions up to {newest} "
            "exist.",
            file=str(CommitName(newest + 1)),
        )
    if log.published is not None and log.published > tail.latest_version:
        findings.add(
            "A01",
            f"Version {log.published} is published, and the newest that the catalog ratified is "
            f"{tail.latest_version}: a writer bypassed the catalog.",
            version=log.published,
        )
    ratified = set()
    for file in tail.files:
        ratified.add(file_name(file.path))
        _compare(log, file.path, findings)
    loose = sum(1 for file in log.staged() if file_name(file.path) not in ratified)
    if loose:
        findings.add(
            "A01",
            f"{loose:,} staged commits are not ratified, or are published already.",
            severity=Severity.INFO,
            advice="The log clean-up deletes them.",
        )


def _compare(log: TableLog, path: str, findings: Findings) -> None:
    """Compare a ratified commit with its published copy, if there is one."""
    name = CommitName(int(file_name(path)[:20]))
    published = published_path(log.location, name.version)
    try:
        copy = log.store.read(published)
        content = log.store.read(path)
    except FileNotFoundInStoreError:
        return  # not published yet
    except DeltaError as error:
        findings.skip(error.message)
        return
    if copy != content:
        findings.add(
            "A01",
            f"The published commit of version {name.version} is not the one that the catalog ratified.",
            version=name.version,
            file=published,
        )
