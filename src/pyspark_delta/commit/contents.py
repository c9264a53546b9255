"""The contents of a commit other than file actions. A catalog stores a copy of them."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark_delta.actions.decode import decode_commit_info, decode_domain, decode_metadata, decode_protocol
from pyspark_delta.actions.model import DomainMetadata, Metadata, Protocol
from pyspark_delta.log.commits import commit_text
from pyspark_delta.log.history import in_commit_timestamp
from pyspark_delta.log.names import CommitName


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitContents:
    """Protocol, metadata and domains of a commit, if it has them, and its in-commit timestamp in ms."""

    timestamp: int
    protocol: Protocol | None
    metadata: Metadata | None
    domains: tuple[DomainMetadata, ...]

    @classmethod
    def parse(cls, version: int, content: bytes) -> CommitContents:
        """Raise CorruptLogError for a commit without an in-commit timestamp, which managed tables have (C450)."""
        text = commit_text(version, str(CommitName(version)), content)
        infos = [decode_commit_info(fields) for fields in text.fields("commitInfo")]
        return cls(
            timestamp=in_commit_timestamp(infos[0] if infos else None, text.path),
            protocol=next(map(decode_protocol, text.fields("protocol")), None),
            metadata=next(map(decode_metadata, text.fields("metaData")), None),
            domains=tuple(map(decode_domain, text.fields("domainMetadata"))),
        )

    @property
    def changes_metadata(self) -> bool:
        """True if the commit contains protocol, metadata or domains."""
        return bool(self.protocol or self.metadata or self.domains)
