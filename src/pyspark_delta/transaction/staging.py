"""Checks of what a transaction stages, and what it reads."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.expressions.sql import parse_predicate
from pyspark_delta.features import Feature, is_active
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import CommitDraft, ReadSet
from pyspark_delta.protocol.state import TableState
from pyspark_delta.scan.plan import ScanPlan
from pyspark_delta.schema.types import StructType
from pyspark_delta.transaction.combination import combine
from pyspark_delta.transaction.finish import finish
from pyspark_delta.transaction.row_rules import row_rules
from pyspark_delta.transaction.schema_reads import reads_across


def check_plain(configuration: TableConfiguration) -> None:
    """Refuse rows that Spark has to check or compute, because conditions and defaults are SQL."""
    rules = row_rules(configuration)
    if rules:
        what = [f"{check.kind.value} '{check.name}'" for check in rules.checks]
        what += [f"the {column.kind.value} column '{column.name}'" for column in rules.computed]
        raise InvalidOperationError(
            f"New rows of this table have to be checked or computed by Spark, because of {', '.join(what)}. Write them "
            "with a Spark DataFrame.",
        )


def new_files(draft: CommitDraft) -> list[str]:
    """Return the files that only this draft names, which are deleted if it is discarded.

    Files that the draft removes, and adds with a deletion vector, are in the table; so are files that it has read, and
    adds again with more statistics.
    """
    adds, removed = draft.adds.column("path"), draft.removes.column("path").combine_chunks()
    known = pa.concat_arrays([removed, pa.array(sorted(draft.reads.paths), removed.type)])
    new = adds.filter(pc.invert(pc.is_in(adds, value_set=known)))
    return [*new.to_pylist(), *draft.changes.column("path").to_pylist()]


def define(draft: CommitDraft, change: CommitDraft, base: TableState, configuration: TableConfiguration) -> CommitDraft:
    """Return a draft with a later change of the definition, whose author has seen the rows that the draft writes.

    `configuration` is what the table declares before the change. The conditions that the draft has read are bound to
    it or to that of the base, and the change may give their names to other columns. Raises the errors of `combine`, and
    InvalidOperationError or AppendOnlyTableError if the files of the draft cannot be in one commit with the change.
    """
    if base.configuration is not None:
        draft = replace(draft, reads=reads_across(draft.reads, base.configuration, configuration))
    combined = combine(draft, replace(change, reads=ReadSet(transactions=change.reads.transactions)))
    combined = replace(combined, reads=combined.reads.union(change.reads))
    if draft.has_files:
        _check_removes(draft, change, configuration, _declared(change, configuration))
        finish(combined, base)
    return combined


def _declared(change: CommitDraft, before: TableConfiguration) -> TableConfiguration:
    protocol, metadata = change.protocol or before.protocol, change.metadata or before.metadata
    return TableConfiguration(protocol, metadata, before.location)


def _check_removes(
    draft: CommitDraft, change: CommitDraft, before: TableConfiguration, after: TableConfiguration
) -> None:
    if not draft.removes.num_rows:
        return
    for feature, what, why in (
        (Feature.CHANGE_DATA_FEED, "enables the change data feed", "without change data files, so the feed is wrong"),
        (Feature.APPEND_ONLY, "makes the table append-only", "which no commit of such a table may do"),
    ):
        if is_active(after, feature) and not is_active(before, feature):
            raise InvalidOperationError(
                f"{change.operation.name} {what}, but the transaction has already changed or deleted rows, {why}. "
                "Put the statement first, or in a transaction of its own.",
                operation=change.operation.name,
            )


def read_set(plan: ScanPlan, where: str | None, schema: StructType, time_zone: str) -> ReadSet:
    """Return what depends on a scan of the rows for which `where` is true."""
    paths = frozenset(plan.files.column("path").to_pylist())
    if where is None:
        return ReadSet(whole_table=True, paths=paths)
    predicate = parse_predicate(where, schema, time_zone=time_zone)
    return ReadSet(predicates=(predicate,), paths=paths, time_zone=time_zone)


def check_user_domain(domain: str) -> None:
    """Raise InvalidOperationError for the name of a system domain (C201)."""
    if domain.startswith("delta."):
        raise InvalidOperationError(
            f"The metadata domain '{domain}' is reserved: names that begin with 'delta.' belong to the protocol. "
            "Choose another name, such as com.example.x.",
            error_class="DELTA_DOMAIN_METADATA_RESERVED",
            domain=domain,
        )
