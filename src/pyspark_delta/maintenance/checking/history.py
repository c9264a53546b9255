"""Checks of times and provenance, commit by commit (T01 to T04), and of features that were dropped (P12)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pyspark_delta.actions.model import CommitInfo, Protocol
from pyspark_delta.errors import DeltaError
from pyspark_delta.features import Feature, find_feature, is_active, is_supported, supported_features
from pyspark_delta.maintenance.checking.catalogue import Severity
from pyspark_delta.maintenance.checking.commit_contents import Contents
from pyspark_delta.maintenance.checking.findings import Findings
from pyspark_delta.maintenance.checking.state import TableState
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.properties import IN_COMMIT_TIMESTAMP_TIME, IN_COMMIT_TIMESTAMP_VERSION


@dataclass
class History:
    """What checks of later commits need to know of the earlier ones."""

    time: int | None = None
    vacuum_start: int | None = None
    transaction_ids: set[int] = field(default_factory=set)

    def check(
        self, contents: Contents, before: TableConfiguration | None, state: TableState, findings: Findings
    ) -> None:
        """Check one commit; `before` is the configuration of the version before, `state` that of its own."""
        infos = contents.of(CommitInfo)
        info: CommitInfo | None = infos[0][1] if infos else None
        after = state.configuration
        if after is not None:
            self._check_time(contents, info, before, after, findings)
        self._check_operation(contents, info, after, findings)
        if before is not None and contents.of(Protocol):
            _check_dropped(contents, before, after, findings)

    def _check_time(
        self,
        contents: Contents,
        info: CommitInfo | None,
        before: TableConfiguration | None,
        after: TableConfiguration,
        findings: Findings,
    ) -> None:
        if not _has_times(after):
            self.time = None
            return
        time = None if info is None else info.in_commit_timestamp
        where: dict[str, Any] = {"version": contents.version, "file": contents.path}
        if time is None:
            findings.add("T01", "The commit has no in-commit timestamp.", **where)
            return
        if contents.first != "commitInfo":
            findings.add("T01", "The commitInfo is not the first action of the commit.", **where)
        if self.time is not None and time <= self.time:
            findings.add(
                "T01",
                f"The in-commit timestamp {time} is not after that of the commit before, {self.time}.",
                **where,
            )
        if before is not None and not _has_times(before):
            _check_enablement(contents, time, after, findings)
        self.time = time

    def _check_operation(
        self, contents: Contents, info: CommitInfo | None, after: TableConfiguration | None, findings: Findings
    ) -> None:
        operation = None if info is None else info.values.get("operation")
        if operation == "VACUUM START":
            self._report_vacuum(findings)
            self.vacuum_start = contents.version
        elif operation == "VACUUM END":
            self.vacuum_start = None
        txn_id = None if info is None else info.txn_id
        is_managed = after is not None and after.is_catalog_managed
        if txn_id is None:
            if is_managed:
                findings.add("T03", "The commit has no txnId.", version=contents.version, file=contents.path)
            return
        if hash(txn_id) in self.transaction_ids:
            findings.add(
                "T03",
                f"The commit has the txnId of an earlier one, '{txn_id}'.",
                version=contents.version,
                file=contents.path,
            )
        self.transaction_ids.add(hash(txn_id))

    def _report_vacuum(self, findings: Findings) -> None:
        if self.vacuum_start is not None:
            findings.add("T04", "The vacuum did not end.", version=self.vacuum_start)

    def end(self, findings: Findings) -> None:
        """Report what the newest commits leave open."""
        self._report_vacuum(findings)


def _has_times(configuration: TableConfiguration) -> bool:
    try:
        return is_active(configuration, Feature.IN_COMMIT_TIMESTAMP)
    except DeltaError:
        return False


def _check_enablement(contents: Contents, time: int, after: TableConfiguration, findings: Findings) -> None:
    """Check that the commit that enables in-commit timestamps says so (C358)."""
    if contents.version == 0:
        return
    try:
        version = IN_COMMIT_TIMESTAMP_VERSION.of(after.properties)
        named = IN_COMMIT_TIMESTAMP_TIME.of(after.properties)
    except DeltaError:
        return
    if version != contents.version or named != time:
        findings.add(
            "T02",
            f"In-commit timestamps begin at version {contents.version} and time {time}, and the properties say version "
            f"{version} and time {named}.",
            version=contents.version,
            file=contents.path,
        )


def _check_dropped(
    contents: Contents, before: TableConfiguration, after: TableConfiguration | None, findings: Findings
) -> None:
    """Check that features are dropped only by a DROP FEATURE, which cares for the versions before (C229)."""
    if after is None or any(info.values.get("operation") == "DROP FEATURE" for _, info in contents.of(CommitInfo)):
        return
    dropped = sorted(_final_names(before) - _final_names(after))
    if dropped and not is_supported(after, Feature.CHECKPOINT_PROTECTION):
        findings.add(
            "P12",
            f"The commit drops {', '.join(dropped)} from the protocol.",
            version=contents.version,
            file=contents.path,
            severity=Severity.WARNING,
        )


def _final_names(configuration: TableConfiguration) -> frozenset[str]:
    names = (name for name in supported_features(configuration))
    return frozenset(name if (known := find_feature(name)) is None else known.name for name in names)
