"""Checks of what a transaction stages, and what its draft holds."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import CommitDraft
from pyspark_delta.transaction.overlap import unseen
from pyspark_delta.transaction.row_rules import row_rules


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


def check_seen(done: CommitDraft, more: CommitDraft, configuration: TableConfiguration, location: str) -> None:
    """Refuse a draft that depends on rows that the transaction itself has changed or written."""
    if more.reads.is_empty:
        return
    files = unseen(done, more, configuration, location)
    if files.num_rows:
        others = f" and {files.num_rows - 1} more" if files.num_rows > 1 else ""
        raise InvalidOperationError(
            f"{more.operation.name} depends on rows that the transaction itself wrote or changed, but it reads the "
            f"version that the transaction began with, while the file '{files['path'][0]}'{others} "
            "has changed since. Make one operation of the two, let conditions on partition columns tell their rows "
            "apart, or make two transactions of it.",
            operation=more.operation.name,
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
