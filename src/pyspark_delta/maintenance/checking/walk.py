"""The walk over the log: every commit in order, and beside it the checkpoints and checksums of the same versions."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark_delta.errors import DeltaError, StorageError
from pyspark_delta.log.commits import CommitText
from pyspark_delta.log.reconciliation import latest_metadata, latest_protocol
from pyspark_delta.maintenance.checking.checkpoints import compare_checkpoint, load_checkpoint
from pyspark_delta.maintenance.checking.commit_contents import Contents, read_contents
from pyspark_delta.maintenance.checking.derived_files import check_checksum, check_compaction
from pyspark_delta.maintenance.checking.findings import Findings
from pyspark_delta.maintenance.checking.history import History
from pyspark_delta.maintenance.checking.log_files import check_commit
from pyspark_delta.maintenance.checking.row_ids import check_commit_versions
from pyspark_delta.maintenance.checking.state import TableState, partition_names
from pyspark_delta.maintenance.checking.statistics import check_tightness
from pyspark_delta.maintenance.checking.table_log import TableLog
from pyspark_delta.protocol.configuration import TableConfiguration


@dataclass
class Walked:
    """What the walk leaves: the state of the newest version, None if the log does not tell it, and its length."""

    state: TableState | None
    commits: int


def walk_log(log: TableLog, findings: Findings, since: int | None, now: int) -> Walked:
    """Check every commit, checkpoint, compaction and checksum after a version, or all of them (None)."""
    walk = _Walk(log, findings, now)
    first = _beginning(log, since)
    for version in sorted({*log.listing.commits, *(checkpoint.version for checkpoint in log.checkpoints)}):
        if version >= first:
            walk.visit(version)
    walk.history.end(findings)
    if findings.wants("K08"):
        for name, file in sorted(log.listing.compactions.items(), key=lambda item: (item[0].start, item[0].end)):
            if since is None or name.end > since:
                check_compaction(log, name, file, findings)
    return Walked(walk.state, walk.commits)


def _beginning(log: TableLog, since: int | None) -> int:
    """Return the version at which the walk begins: that of the newest checkpoint that is not after `since`."""
    if since is None:
        return 0
    return max((checkpoint.version for checkpoint in log.checkpoints if checkpoint.version <= since), default=0)


class _Walk:
    def __init__(self, log: TableLog, findings: Findings, now: int) -> None:
        self._log, self._findings, self._now = log, findings, now
        self.state: TableState | None = None
        self.history = History()
        self.commits = 0
        self._expected = 0  # the version that may follow without a checkpoint

    def visit(self, version: int) -> None:
        """Check the files of one version."""
        contents = self._read(version) if version in self._log.listing.commits else None
        state, follows = self.state, version == self._expected
        if state is None and version == 0:
            state = TableState(self._log.location)
        if state is not None and contents is not None and (follows or version == 0):
            self._apply(contents, state)
            self.state = state if contents.is_complete else None
        else:
            self.state = None
        for checkpoint in self._log.checkpoints_at(version):
            if self.state is not None:
                if self._findings.wants("K01", "K02", "K03", "K04", "K06", "S05"):
                    compare_checkpoint(self._log, checkpoint, self.state, self._now, self._findings)
            else:
                self.state = load_checkpoint(self._log, checkpoint, self._findings)
                if self.state is not None and contents is not None:
                    self._take_info(contents)
        self._expected = version + 1 if self.state is not None else -1
        checksum = self._log.listing.checksums.get(version)
        if checksum is not None and self.state is not None and self._findings.wants("K09"):
            check_checksum(self._log, checksum, self.state, self._now, self._findings)

    def _take_info(self, contents: Contents) -> None:
        """Begin the history at a checkpoint whose commit is still there."""
        assert self.state is not None
        self.state.apply_others([action for _, action in contents.others])
        self.history.check(contents, None, self.state, self._findings)

    def _read(self, version: int) -> Contents | None:
        self.commits += 1
        file = self._log.listing.commits[version]
        try:
            text = self._log.read_commit(version)
        except StorageError as error:
            self._findings.skip(f"Version {version} was not checked: {error.message}")
            return None
        except (DeltaError, RecursionError) as error:
            reason = error.message if isinstance(error, DeltaError) else "it is nested too deeply"
            newest = version == self._log.listing.latest_version
            self._findings.add(
                "L02",
                f"The commit of version {version} cannot be read: {reason}",
                version=version,
                file=file.path,
                advice="Delete the file if its writer did not finish it: the store lost a part of it."
                if newest
                else None,
            )
            return None
        names, has_names = self._names(text)
        return read_contents(text, self._log.location, names, self._findings, partition_check=has_names)

    def _names(self, text: CommitText) -> tuple[tuple[str, ...], bool]:
        """Return the partition columns of the files of a commit, and whether they are known."""
        protocol = None if self.state is None else self.state.protocol
        metadata = None if self.state is None else self.state.metadata
        try:
            protocol = latest_protocol([text]) or protocol
            metadata = latest_metadata([text]) or metadata
        except DeltaError:
            return (), False
        if protocol is None or metadata is None:
            return (), False
        return partition_names(TableConfiguration(protocol, metadata)), True

    def _apply(self, contents: Contents, state: TableState) -> None:
        findings, before = self._findings, state.configuration
        change = state.plan(contents)
        check_commit(contents, state, change, findings)
        check_commit_versions(contents, change, findings)
        check_tightness(contents, state, findings)
        state.apply(contents, change)
        self.history.check(contents, before, state, findings)
