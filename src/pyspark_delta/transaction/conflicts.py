"""Check whether a draft is still valid after a winning commit, in the order of delta-spark's checks.

Every error names the winning commit, its conflicting part, and how to avoid the conflict. A blind append depends only
on protocol and metadata, so it conflicts with nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.errors import (
    CommitConflictError,
    ConcurrentAppendError,
    ConcurrentDeleteDeleteError,
    ConcurrentDeleteReadError,
    ConcurrentTransactionError,
    MetadataChangedError,
    ProtocolChangedError,
)
from pyspark_delta.expressions.text import to_sql
from pyspark_delta.features import all_features
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import CommitDraft, IsolationLevel
from pyspark_delta.protocol.state import TableState
from pyspark_delta.transaction.isolation import isolation_level
from pyspark_delta.transaction.metadata_conflicts import metadata_conflict, protocol_conflict
from pyspark_delta.transaction.overlap import PathSet, matching, partition_names, shared
from pyspark_delta.transaction.winner import Winner

_AGAIN = "Run it again: it will see the new version."
_FEWER = "To avoid it, run such operations one after another, or on separate files, such as different partitions."


@dataclass(frozen=True)
class ConflictCheck:
    """The checks of one draft against each winning commit in turn.

    `moment` and `remedy` are for messages about files: when the draft read them, if not while its operation ran, and
    what to do.
    """

    draft: CommitDraft
    location: str
    moment: str = ""
    remedy: str = _AGAIN

    def check(self, winner: Winner, base: TableState) -> ConflictCheck:
        """Return the check against later winners: this one, or that of a draft which is adapted to the winning commit.

        Raises a CommitConflictError for the first conflict with the winning commit, the version after `base`.
        """
        before = base.configuration
        if before is None:
            self._raise(ProtocolChangedError, winner, f"the table was created by {winner}", _AGAIN)
        after = configuration_after(winner, before)
        self._check_protocol(winner, before, after)
        self._check_metadata(winner, before, after)
        self._check_domains(winner)
        self._check_transactions(winner)
        if self.draft.is_blind_append:
            return self
        if self.draft.reconciler is not None:
            adapted = self.draft.reconciler.reconcile(self.draft, winner, after)
            if adapted is not None:
                return self if adapted is self.draft else replace(self, draft=adapted)
        self.check_files(winner, before)
        if self.draft.reconciler is not None:
            what = f"this {self._name} cannot follow {winner}"
            self._raise(ConcurrentDeleteReadError, winner, what, self.remedy)
        return self

    def check_files(self, winner: Winner, before: TableConfiguration) -> None:
        """Check only the file actions of the winning commit.

        `before` is the configuration that the draft was made from.
        """
        level = isolation_level(self.draft, before)
        self._check_added(winner, before, level)
        self._check_removed(winner, level)
        self._check_recommitted(winner)

    # --------------------------------------------------------------------------------- everything but files
    def _check_protocol(self, winner: Winner, before: TableConfiguration, after: TableConfiguration) -> None:
        if winner.protocol is None:
            return
        if self.draft.protocol is not None:
            conflict = "both change the protocol"
        else:
            conflict = protocol_conflict(self.draft, before, after)
        if conflict:
            self._raise(ProtocolChangedError, winner, f"{winner} changed the protocol of the table: {conflict}", _AGAIN)

    def _check_metadata(self, winner: Winner, before: TableConfiguration, after: TableConfiguration) -> None:
        if winner.metadata is None:
            return
        if self.draft.metadata is not None:
            conflict = "both change the metadata"
        else:
            conflict = metadata_conflict(self.draft, before, after)
        if conflict:
            self._raise(
                MetadataChangedError,
                winner,
                f"{winner} changed the metadata of the table: {conflict}",
                f"{_AGAIN} To avoid it, change schema and properties while there are no other writers.",
            )

    def _check_domains(self, winner: Winner) -> None:
        computed = {name for feature in all_features() for name in feature.computed_domains}
        both = {d.domain for d in self.draft.domains}.intersection(d.domain for d in winner.domains) - computed
        if both:
            self._raise(
                ConcurrentTransactionError,
                winner,
                f"{winner} wrote the metadata domain '{min(both)}', which this {self._name} also writes",
                _AGAIN,
                domain=min(both),
            )

    def _check_transactions(self, winner: Winner) -> None:
        applications = self.draft.reads.transactions | {t.app_id for t in self.draft.transactions}
        both = applications.intersection(t.app_id for t in winner.transactions)
        if both:
            self._raise(
                ConcurrentTransactionError,
                winner,
                f"{winner} was committed by the same application '{min(both)}' (txnAppId)",
                "Run one writer per application id; two runs of the same stream are a common cause.",
                application=min(both),
            )

    # ------------------------------------------------------------------------------------------------- files
    def _check_added(self, winner: Winner, before: TableConfiguration, level: IsolationLevel) -> None:
        """Check for added rows that the draft would have read (ConcurrentAppend)."""
        reads = self.draft.reads
        if level is IsolationLevel.SNAPSHOT or not (reads.whole_table or reads.predicates):
            return
        if level is IsolationLevel.WRITE_SERIALIZABLE and self.draft.metadata is None and winner.is_blind_append:
            return
        added = winner.added(partition_names(before))
        added = added.filter(pc.fill_null(added.column("data_change"), True))
        # A file that is removed and added again with another deletion vector has changed: see _check_removed.
        both = shared(added, PathSet.of(winner.removed.column("path"), self.location)) if winner.has_removes else None
        if both is not None and both.num_rows:
            known = shared(both, self._read, self._removed)
            again = PathSet.of(known.column("path"), self.location).holds(added)
            added = added.filter(pc.invert(again))
        if reads.whole_table and added.num_rows:
            self._raise_added(winner, added, level, f"this {self._name} depends on the whole table")
        for predicate in reads.predicates:
            found = matching(added, predicate, self.draft, before)
            if found.num_rows:
                text = to_sql(predicate)
                self._raise_added(
                    winner, found, level, f"rows of it may match '{text}', which this {self._name} read", text
                )

    def _raise_added(
        self, winner: Winner, files: pa.Table, level: IsolationLevel, why: str, predicate: str | None = None
    ) -> NoReturn:
        path, others = _first_and_more(files)
        values = files.column("partition_values")[0].as_py() or []
        where = " of the partition " + ", ".join(f"{k}={v}" for k, v in values) if values else ""
        advice = [self.remedy]
        if level is IsolationLevel.SERIALIZABLE and winner.is_blind_append:
            advice.append(
                "If the table property delta.isolationLevel is WriteSerializable, appended rows are not a conflict."
            )
        if predicate is None:
            advice.append(
                "To avoid it, restrict the operation to part of the table with a condition on partition columns."
            )
        else:
            advice.append(
                "To avoid it, add conditions that separate the rows of the writers by partition values, or by minimum "
                "and maximum of a column."
            )
        self._raise(
            ConcurrentAppendError,
            winner,
            f"{winner} added the file '{path}'{where}{others}; {why}",
            " ".join(advice),
            path=path,
            predicate=predicate,
        )

    def _check_removed(self, winner: Winner, level: IsolationLevel) -> None:
        """Check for files that were removed, or whose rows changed (ConcurrentDeleteRead, ConcurrentDeleteDelete)."""
        if not winner.has_removes:
            return
        removed = winner.removed
        read = shared(removed, self._read)
        if self.draft.reads.whole_table and level is not IsolationLevel.SNAPSHOT:
            read = removed.filter(pc.invert(self._removed.holds(removed)))
        if read.num_rows:
            path, others = _first_and_more(read)
            self._raise(
                ConcurrentDeleteReadError,
                winner,
                f"{winner} removed or changed the file '{path}'{others}, which this {self._name} read",
                f"{self.remedy} {_FEWER}",
                path=path,
            )
        both = shared(removed, self._removed, self._added)
        if both.num_rows:
            path, others = _first_and_more(both)
            self._raise(
                ConcurrentDeleteDeleteError,
                winner,
                f"{winner} removed or changed the file '{path}'{others}, as this {self._name} would",
                f"{_AGAIN} {_FEWER}",
                path=path,
            )

    def _check_recommitted(self, winner: Winner) -> None:
        """Check for files that were committed again without a change of rows: with new statistics, or with row ids
        (C331).
        """
        again = winner.added()
        both = shared(again, self._added)
        numbered = again.filter(pc.is_valid(again.column("base_row_id")))
        if numbered.num_rows and self._unnumbered is not None:
            both = pa.concat_tables([both, shared(numbered, self._unnumbered)])
        if both.num_rows:
            path, others = _first_and_more(both)
            self._raise(
                ConcurrentDeleteDeleteError,
                winner,
                f"{winner} committed the file '{path}'{others} again, which this {self._name} would recommit or remove",
                _AGAIN,
                path=path,
            )

    @cached_property
    def _read(self) -> PathSet:
        return PathSet.of(sorted(self.draft.reads.paths), self.location)

    @cached_property
    def _removed(self) -> PathSet:
        return PathSet.of(self.draft.removes.column("path"), self.location)

    @cached_property
    def _added(self) -> PathSet:
        """Return the files that the draft adds. Only files that already existed can overlap with files of others."""
        return PathSet.of(self.draft.adds.column("path"), self.location)

    @cached_property
    def _unnumbered(self) -> PathSet | None:
        """Return the removed files that had no row ids yet when the draft was made."""
        removes = self.draft.removes
        if "base_row_id" in removes.column_names:
            removes = removes.filter(pc.is_null(removes.column("base_row_id")))
        return PathSet.of(removes.column("path"), self.location) if removes.num_rows else None

    # ------------------------------------------------------------------------------------------------ errors
    @property
    def _name(self) -> str:
        return self.draft.operation.name

    def _raise(
        self, kind: type[CommitConflictError], winner: Winner, what: str, advice: str, **facts: object
    ) -> NoReturn:
        found = {name: value for name, value in facts.items() if value is not None}
        raise kind(
            f"{what[:1].upper()}{what[1:]}{self.moment or f', while this {self._name} ran'}; nothing was committed. "
            f"{advice}",
            **{**winner.facts, **found},
        )


def configuration_after(winner: Winner, before: TableConfiguration) -> TableConfiguration:
    """Return the table configuration that includes the winner."""
    if winner.protocol is None and winner.metadata is None:
        return before
    return TableConfiguration(winner.protocol or before.protocol, winner.metadata or before.metadata, before.location)


def _first_and_more(files: pa.Table) -> tuple[str, str]:
    path: str = files.column("path")[0].as_py()
    return path, f" and {files.num_rows - 1} more" if files.num_rows > 1 else ""
