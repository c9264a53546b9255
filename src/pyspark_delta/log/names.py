"""The names of the files in `_delta_log` (File Types; C010, C027-C029, C042, C096, C105): parsed and formatted."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

LOG_DIRECTORY = "_delta_log"
SIDECAR_DIRECTORY = "_sidecars"
STAGED_DIRECTORY = "_staged_commits"
LAST_CHECKPOINT = "_last_checkpoint"

_MAX_VERSION = 2**63 - 1


@dataclass(frozen=True, slots=True)
class CommitName:
    """`00000000000000000007.json`; with a uuid, the file of a staged commit."""

    version: int
    uuid: str | None = None

    def __str__(self) -> str:
        return f"{self.version:020d}.json" if self.uuid is None else f"{self.version:020d}.{self.uuid}.json"


@dataclass(frozen=True, slots=True)
class ClassicCheckpointName:
    """`00000000000000000010.checkpoint.parquet`; its content may follow either checkpoint specification (C039)."""

    version: int

    def __str__(self) -> str:
        return f"{self.version:020d}.checkpoint.parquet"


@dataclass(frozen=True, slots=True)
class MultiPartCheckpointName:
    """`00000000000000000010.checkpoint.0000000001.0000000003.parquet`: part `part` of `parts`, from 1."""

    version: int
    part: int
    parts: int

    def __str__(self) -> str:
        return f"{self.version:020d}.checkpoint.{self.part:010d}.{self.parts:010d}.parquet"


@dataclass(frozen=True, slots=True)
class UuidCheckpointName:
    """`00000000000000000010.checkpoint.<uuid>.json` or `.parquet`: always the V2 specification."""

    version: int
    uuid: str
    format: Literal["json", "parquet"]

    def __str__(self) -> str:
        return f"{self.version:020d}.checkpoint.{self.uuid}.{self.format}"


@dataclass(frozen=True, slots=True)
class CompactionName:
    """`<start>.<end>.compacted.json`: the reconciled commits `start` to `end`, both included."""

    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.start:020d}.{self.end:020d}.compacted.json"


@dataclass(frozen=True, slots=True)
class VersionChecksumName:
    """`00000000000000000007.crc`."""

    version: int

    def __str__(self) -> str:
        return f"{self.version:020d}.crc"


CheckpointName: TypeAlias = ClassicCheckpointName | MultiPartCheckpointName | UuidCheckpointName
LogName: TypeAlias = CommitName | CheckpointName | CompactionName | VersionChecksumName

_UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
_NAME = re.compile(
    r"(?P<version>[0-9]{20})\.(?:"
    r"(?P<commit>json)"
    r"|(?P<crc>crc)"
    r"|(?P<classic>checkpoint\.parquet)"
    r"|checkpoint\.(?P<part>[0-9]{10})\.(?P<parts>[0-9]{10})\.parquet"
    rf"|checkpoint\.(?P<uuid>{_UUID})\.(?P<format>json|parquet)"
    r"|(?P<end>[0-9]{20})\.compacted\.json"
    rf"|(?P<staged>{_UUID})\.json"
    r")"
)


def parse_name(name: str) -> LogName | None:
    """Return the parsed name of a file in `_delta_log`; None for a name that the protocol does not define (C018)."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    version = int(match["version"])
    if version > _MAX_VERSION:
        return None
    if match["commit"]:
        return CommitName(version)
    if match["crc"]:
        return VersionChecksumName(version)
    if match["classic"]:
        return ClassicCheckpointName(version)
    if match["uuid"]:
        return UuidCheckpointName(version, match["uuid"], "json" if match["format"] == "json" else "parquet")
    if match["end"]:
        end = int(match["end"])
        return CompactionName(version, end) if version < end <= _MAX_VERSION else None
    if match["staged"]:
        return CommitName(version, match["staged"])
    part, parts = int(match["part"]), int(match["parts"])
    return MultiPartCheckpointName(version, part, parts) if 1 <= part <= parts and parts > 0 else None


def version_prefix(version: int) -> str:
    """Return the prefix of all file names of a version; in listing order it precedes them all."""
    return f"{version:020d}."
