"""A winning commit, one that another writer committed first: the parts to check, each parsed on first use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import pyarrow as pa

from pyspark_delta.actions.columns import (
    BASE_ROW_ID,
    DATA_CHANGE,
    DELETION_VECTOR,
    PARTITION_VALUES,
    PATH,
    SIZE,
    STATS,
)
from pyspark_delta.actions.decode import decode_domain, decode_metadata, decode_protocol, decode_transaction
from pyspark_delta.actions.model import CommitInfo, DomainMetadata, Metadata, Protocol, SetTransaction
from pyspark_delta.commit import TakenVersion
from pyspark_delta.log.commits import CommitText, commit_text
from pyspark_delta.log.line_columns import parse_lines
from pyspark_delta.log.names import LOG_DIRECTORY, CommitName

T = TypeVar("T")

_ADDED = (PATH, PARTITION_VALUES, SIZE, STATS, DELETION_VECTOR, BASE_ROW_ID, DATA_CHANGE)
_REMOVED = (PATH, SIZE, DELETION_VECTOR, DATA_CHANGE)


@dataclass(frozen=True)
class Winner:
    """One committed version. Files are columns, because a commit may hold very many."""

    text: CommitText

    @classmethod
    def parse(cls, taken: TakenVersion) -> Winner:
        """Return the content of a commit, unparsed. This and the properties raise CorruptLogError naming the file."""
        return cls(commit_text(taken.version, f"{LOG_DIRECTORY}/{CommitName(taken.version)}", taken.content))

    @property
    def version(self) -> int:
        return self.text.version

    @cached_property
    def protocol(self) -> Protocol | None:
        return _first(map(decode_protocol, self.text.fields("protocol")))

    @cached_property
    def metadata(self) -> Metadata | None:
        return _first(map(decode_metadata, self.text.fields("metaData")))

    @cached_property
    def transactions(self) -> tuple[SetTransaction, ...]:
        return tuple(map(decode_transaction, self.text.fields("txn")))

    @cached_property
    def domains(self) -> tuple[DomainMetadata, ...]:
        return tuple(map(decode_domain, self.text.fields("domainMetadata")))

    @cached_property
    def info(self) -> CommitInfo:
        """The commitInfo of the commit; an empty one if it has none."""
        found = (value for _, value in self.text.find("commitInfo") if isinstance(value, Mapping))
        return CommitInfo(values=next(found, {}))

    def added(self, partition_names: Sequence[str] = ()) -> pa.Table:
        """Return the added files, with `data_change` and partition values of the given columns, by physical name."""
        return self._files("add", _ADDED, partition_names)

    @cached_property
    def removed(self) -> pa.Table:
        """The files that the commit removes: path, size, deletion vector and `data_change`."""
        return self._files("remove", _REMOVED, ())

    @cached_property
    def has_removes(self) -> bool:
        """True if the commit removes any file; cheaper than reading `removes`."""
        return bool(self.text.lines_of("remove"))

    @property
    def is_blind_append(self) -> bool:
        """True if the commit declares that it read no rows of the table, and removes no file."""
        return self.info.values.get("isBlindAppend") is True and not self.has_removes

    def __str__(self) -> str:
        operation, engine = self.info.values.get("operation"), self.info.values.get("engineInfo")
        what = f" ({operation}{f' by {engine}' if engine else ''})" if operation else ""
        return f"version {self.version}{what}"

    @property
    def facts(self) -> Mapping[str, Any]:
        """The `facts` of errors about this commit."""
        values = self.info.values
        return {"version": self.version, "operation": values.get("operation"), "engine": values.get("engineInfo")}

    def _files(self, action: str, fields: Sequence[pa.Field], partition_names: Sequence[str]) -> pa.Table:
        lines, schema = self.text.lines_of(action), pa.schema(fields)
        if not lines:
            return schema.empty_table()
        return pa.Table.from_batches(parse_lines(lines, action, fields, partition_names, self._locate), schema)

    def _locate(self, line: bytes) -> tuple[str, int]:
        lines = self.text.lines()
        return self.text.path, lines.index(line) + 1 if line in lines else 0


def _first(values: Iterator[T]) -> T | None:
    return next(values, None)
