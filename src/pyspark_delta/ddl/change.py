"""A change to the metadata of a table: the new configuration, and the condition that existing rows must meet."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pyarrow as pa

from pyspark_delta.actions.model import DomainMetadata, Metadata
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import CommitDraft, Operation, ReadSet, no_files
from pyspark_delta.protocol.rows import RowCheck
from pyspark_delta.schema.json import schema_to_json
from pyspark_delta.schema.types import StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.transaction.attempts import AttemptPolicy, commit_draft
from pyspark_delta.transaction.base import state_of
from pyspark_delta.transaction.evolution import evolve


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChange:
    """One change, not committed yet.

    `metadata` is the requested one and `features` are supported in addition: enabling completes what both need.
    `row_check` is a condition that every existing row must meet: the caller who commits the change checks it first, and
    no rows may be added until then. `recommitted` are files of the table, in all columns of `actions.columns`, that the
    change commits again with more statistics and the same rows.
    """

    operation: Operation
    metadata: Metadata
    features: tuple[str, ...] = ()
    domains: tuple[DomainMetadata, ...] = ()
    row_check: RowCheck | None = None
    recommitted: pa.Table = field(default_factory=no_files, hash=False)


def require_text(value: object, what: str) -> None:
    """Raise TypeError if a value is neither text nor None: readers would take the log for damaged."""
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{what} must be a string or None, found {type(value).__name__} {value!r}.")


def with_schema(metadata: Metadata, schema: StructType) -> Metadata:
    """Return the metadata with another schema."""
    return replace(metadata, schema_string=schema_to_json(schema))


def with_properties(metadata: Metadata, properties: dict[str, str]) -> Metadata:
    """Return the metadata with exactly these properties."""
    return replace(metadata, configuration=properties)


@dataclass(frozen=True, slots=True)
class CommittedChange:
    """The version of a committed change, and the table configuration at it."""

    version: int
    configuration: TableConfiguration = field(repr=False)


def draft_change(
    change: TableChange,
    before: TableConfiguration,
    *,
    keeps_files: bool,
    complying: tuple[str, ...] = (),
    engine_info: str = "",
) -> CommitDraft:
    """Return the draft of a change to a table with configuration `before`; `keeps_files` is True if its files stay.

    `complying` are features that existing files already comply with, as for `evolve`.

    Raises InvalidOperationError if the result breaks a rule of the table's features.
    """
    after = evolve(before, change.metadata, features=change.features, keeps_files=keeps_files, complying=complying)
    return CommitDraft(
        operation=change.operation,
        metadata=after.metadata if after.metadata != before.metadata else None,
        protocol=after.protocol if after.protocol != before.protocol else None,
        domains=change.domains,
        adds=change.recommitted,
        data_change=not change.recommitted.num_rows,
        # A declaration that is refused for a table with files must not be possible before the first file.
        reads=ReadSet(
            whole_table=change.row_check is not None or not keeps_files,
            paths=frozenset(change.recommitted.column("path").to_pylist()),
        ),
        engine_info=engine_info,
    )


def commit_change(
    change: TableChange,
    snapshot: Snapshot,
    *,
    complying: tuple[str, ...] = (),
    engine_info: str = "",
    policy: AttemptPolicy | None = None,
) -> CommittedChange:
    """Commit a change as the version after `snapshot`, or a later one if the metadata did not change in between.

    Rows are not checked: the caller has verified, for this snapshot, `row_check` and that all files comply with the
    features `complying`. Raises InvalidOperationError if the result breaks a rule of the table's features, and
    CommitConflictError.
    """
    keeps_files = snapshot.num_files() > 0
    draft = draft_change(
        change, snapshot.configuration, keeps_files=keeps_files, complying=complying, engine_info=engine_info
    )
    state = commit_draft(draft, state_of(snapshot), policy=policy or AttemptPolicy())
    assert state.configuration is not None
    return CommittedChange(state.version, state.configuration)
