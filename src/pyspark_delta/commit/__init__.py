"""Making a version exist: the contract of committers, and the committer of plain file systems and object stores."""

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
]
