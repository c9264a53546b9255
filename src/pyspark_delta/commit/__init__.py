"""Creating a version: the contract of committers, and the committers of catalogs and of plain stores."""

from pyspark_delta.commit.committers import check_committer, committer_for
from pyspark_delta.commit.contract import (
    CommitRequest,
    CommitResult,
    Committed,
    Committer,
    Rejected,
    TakenVersion,
    Transient,
    Unknown,
    VersionTaken,
)
from pyspark_delta.commit.filesystem import FilesystemCommitter

__all__ = [
    "CommitRequest",
    "CommitResult",
    "Committed",
    "Committer",
    "FilesystemCommitter",
    "Rejected",
    "TakenVersion",
    "Transient",
    "Unknown",
    "VersionTaken",
    "check_committer",
    "committer_for",
]
