"""A commit that won a race: what of it later writers must know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson

from pyspark_delta.actions.decode import decode_action
from pyspark_delta.actions.model import (
    Action,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from pyspark_delta.commit import TakenVersion
from pyspark_delta.errors import CorruptLogError
from pyspark_delta.log.names import LOG_DIRECTORY, CommitName


@dataclass(frozen=True)
class Winner:
    """The actions of one committed version, in order."""

    version: int
    actions: tuple[Action, ...]

    @classmethod
    def parse(cls, taken: TakenVersion) -> Winner:
        """Raises CorruptLogError naming the commit file."""
        path = f"{LOG_DIRECTORY}/{CommitName(taken.version)}"
        return cls(taken.version, tuple(_actions(taken.content, path)))

    @cached_property
    def protocol(self) -> Protocol | None:
        return next((a for a in self.actions if isinstance(a, Protocol)), None)

    @cached_property
    def metadata(self) -> Metadata | None:
        return next((a for a in self.actions if isinstance(a, Metadata)), None)

    @cached_property
    def adds(self) -> tuple[AddFile, ...]:
        return tuple(a for a in self.actions if isinstance(a, AddFile))

    @cached_property
    def removes(self) -> tuple[RemoveFile, ...]:
        return tuple(a for a in self.actions if isinstance(a, RemoveFile))

    @cached_property
    def transactions(self) -> tuple[SetTransaction, ...]:
        return tuple(a for a in self.actions if isinstance(a, SetTransaction))

    @cached_property
    def domains(self) -> tuple[DomainMetadata, ...]:
        return tuple(a for a in self.actions if isinstance(a, DomainMetadata))

    @property
    def info(self) -> Mapping[str, Any]:
        """The members of its commitInfo; empty when it has none."""
        return next((a.values for a in self.actions if isinstance(a, CommitInfo)), {})

    def __str__(self) -> str:
        operation, engine = self.info.get("operation"), self.info.get("engineInfo")
        what = f" ({operation}{f' by {engine}' if engine else ''})" if operation else ""
        return f"version {self.version}{what}"


def _actions(content: bytes, path: str) -> Iterator[Action]:
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise CorruptLogError(
                f"'{path}' is not a valid file of a Delta log: line {number} is not JSON: {error}.", path=path
            ) from None
        action = decode_action(value, path=path, line=number)
        if action is not None:
            yield action
