"""Drafts and commits of files that nobody reads: for tests of what commits do to each other."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
from tests.declarations import READER_WRITER, field

from pyspark_delta.actions.columns import FILE_FIELDS
from pyspark_delta.actions.model import Metadata, Protocol
from pyspark_delta.expressions.sql import parse_predicate
from pyspark_delta.protocol.draft import CommitDraft, Operation, ReadSet, no_files
from pyspark_delta.protocol.state import TableState
from pyspark_delta.schema.json import parse_schema
from pyspark_delta.storage import store_for
from pyspark_delta.transaction.attempts import AttemptPolicy, commit_draft

NO_WAIT = AttemptPolicy(sleep=lambda _: None)
SCHEMA = json.dumps({"type": "struct", "fields": [field("p", "string"), field("id", "long")]})


def memory_location() -> str:
    """A place in memory that no other test has."""
    return f"memory://{uuid.uuid4().hex}/table"


def file(
    path: str, partition: str | None = None, ids: tuple[int, int] | None = None, records: int | None = 10, **more: Any
) -> dict[str, Any]:
    """A row of file actions: partition `p`, the least and greatest `id`, and how many rows there are."""
    stats: dict[str, Any] = {} if records is None else {"numRecords": records}
    if ids is not None:
        stats |= {"minValues": {"id": ids[0]}, "maxValues": {"id": ids[1]}, "nullCount": {"id": 0}}
    values = [] if partition is None else [("p", partition)]
    fixed = {"path": path, "partition_values": values, "size": 1, "modification_time": 1}
    return {**fixed, "stats": json.dumps(stats), **more}


def files(*rows: str | Mapping[str, Any]) -> pa.Table:
    """File actions of rows made by `file`, or of plain paths."""
    made = [file(row) if isinstance(row, str) else dict(row) for row in rows]
    return pa.Table.from_pylist(made, pa.schema(FILE_FIELDS)) if made else no_files()


def draft(name: str = "WRITE", adds: Iterable[Any] = (), removes: Iterable[Any] = (), **more: Any) -> CommitDraft:
    """A draft that adds and removes files."""
    return CommitDraft(operation=Operation(name), adds=files(*adds), removes=files(*removes), **more)


def reading(*predicates: str, paths: Iterable[str] = (), **more: Any) -> ReadSet:
    """A read set of predicates on `p` and `id`, as SQL text, and paths."""
    schema = parse_schema(SCHEMA)
    return ReadSet(
        predicates=tuple(parse_predicate(text, schema) for text in predicates), paths=frozenset(paths), **more
    )


def declared(
    *features: str, properties: Mapping[str, str] | None = None, partitioned: bool = False
) -> tuple[Protocol, Metadata]:
    """Protocol and metadata with some features, and those of (1, 2) as upgrades keep them; (1, 2) without any."""
    protocol = Protocol(min_reader_version=1, min_writer_version=2)
    if features:
        protocol = Protocol(
            min_reader_version=3,
            min_writer_version=7,
            reader_features=frozenset(features) & READER_WRITER,
            writer_features=frozenset(features) | {"appendOnly", "invariants"},
        )
    metadata = Metadata(
        id="11111111-2222-3333-4444-555555555555",
        schema_string=SCHEMA,
        partition_columns=("p",) if partitioned else (),
        configuration=dict(properties or {}),
    )
    return protocol, metadata


def create(
    location: str,
    *features: str,
    properties: Mapping[str, str] | None = None,
    partitioned: bool = False,
    adds: Iterable[Any] = (),
    storage_options: Mapping[str, str] | None = None,
) -> TableState:
    """Version 0 of a table."""
    protocol, metadata = declared(*features, properties=properties, partitioned=partitioned)
    base = TableState(location=location, storage_options=dict(storage_options or {}))
    return commit(draft("CREATE TABLE", adds, protocol=protocol, metadata=metadata), base)


def commit(made: CommitDraft, base: TableState, **more: Any) -> TableState:
    """Commit without waiting."""
    return commit_draft(made, base, policy=more.pop("policy", NO_WAIT), **more)


def read_version(location: str, version: int) -> list[dict[str, Any]]:
    """The actions of one commit, as they are in the log."""
    content = store_for(location).read(f"{location}/_delta_log/{version:020d}.json")
    return [json.loads(line) for line in content.splitlines()]


def actions(location: str, version: int, name: str) -> list[dict[str, Any]]:
    """The actions of one kind in a commit."""
    return [action[name] for action in read_version(location, version) if name in action]


def info(location: str, version: int) -> dict[str, Any]:
    """The commitInfo of a version."""
    return actions(location, version, "commitInfo")[0]


def has_version(location: str, version: int) -> bool:
    """Whether the log holds a version."""
    name = f"{version:020d}.json"
    return any(f.path.endswith(name) for f in store_for(location).list_from(f"{location}/_delta_log/"))
