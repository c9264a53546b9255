"""A run of checks: the log is walked once, then the newest version is looked at, as deep as the level says.

A table that cannot be opened is checked as far as its log can be read.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from pyspark_delta.errors import (
    CatalogError,
    DeltaError,
    DeltaWarning,
    InvalidOptionError,
    StorageError,
    TableNotFoundError,
)
from pyspark_delta.features.support import check_readable
from pyspark_delta.log.replay import LogReplay
from pyspark_delta.log.segment import segment_of
from pyspark_delta.maintenance.checking.catalogs import check_catalog
from pyspark_delta.maintenance.checking.catalogue import CHECKS
from pyspark_delta.maintenance.checking.checkpoints import check_kinds
from pyspark_delta.maintenance.checking.cubes import CubeTags
from pyspark_delta.maintenance.checking.declaration import ROW_TRACKING, check_declaration
from pyspark_delta.maintenance.checking.derived_files import check_hint
from pyspark_delta.maintenance.checking.files import HiddenNames, PartitionValues, Sizes, UniquePaths
from pyspark_delta.maintenance.checking.findings import LEVELS, CheckLevel, CheckResult, Findings
from pyspark_delta.maintenance.checking.footers import check_footers
from pyspark_delta.maintenance.checking.listing import check_listing
from pyspark_delta.maintenance.checking.live import LiveCheck, LiveTable, pass_over
from pyspark_delta.maintenance.checking.log_files import check_names, check_times, check_versions
from pyspark_delta.maintenance.checking.row_ids import RowIds
from pyspark_delta.maintenance.checking.rows import check_rows
from pyspark_delta.maintenance.checking.state import TableState
from pyspark_delta.maintenance.checking.statistics import IdentityMarks, Values, check_texts
from pyspark_delta.maintenance.checking.table_log import TableLog
from pyspark_delta.maintenance.checking.vectors import VectorPlaces, Vectors
from pyspark_delta.maintenance.checking.walk import walk_log
from pyspark_delta.protocol.catalog_table import CatalogTable
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.snapshot import Snapshot


@dataclass(frozen=True)
class CheckRequest:
    """What to check: how deep, which checks (ids such as L01, or letters for all of a kind), and from which version.

    With `since`, only commits after that version are checked, and what the newest version has.
    """

    level: CheckLevel = "list"
    only: Collection[str] = ()
    ignore: Collection[str] = ()
    since: int | None = None
    now: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            raise InvalidOptionError(
                f"'{self.level}' is not a level of checks; valid levels are {', '.join(LEVELS)}.", option="level"
            )
        for name in (*self.only, *self.ignore):
            if not self._matches(name):
                raise InvalidOptionError(
                    f"'{name}' is not the id of a check, such as L01, nor the letter of several, such as L.",
                    option="only",
                )
        if self.since is not None and (isinstance(self.since, bool) or not isinstance(self.since, int)):
            raise InvalidOptionError(f"since is a version, found {self.since!r}.", option="since")

    @staticmethod
    def _matches(name: str) -> list[str]:
        return [id_ for id_ in CHECKS if id_ == name or (len(name) == 1 and id_.startswith(name))]

    @property
    def wanted(self) -> frozenset[str]:
        """The ids of the checks to run."""
        depth = LEVELS.index(self.level)
        ids = [id_ for id_, check in CHECKS.items() if LEVELS.index(check.level) <= depth]
        chosen = {id_ for name in self.only for id_ in self._matches(name)} if self.only else set(ids)
        return frozenset(chosen.intersection(ids) - {id_ for name in self.ignore for id_ in self._matches(name)})


def check_table(
    location: str,
    request: CheckRequest | None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
    catalog_table: CatalogTable | None = None,
) -> CheckResult:
    """Check a table without changing it. `catalog_table` is the table in its catalog.

    Raises TableNotFoundError if there is no log, and StorageError and CatalogError if store or catalog do not answer.
    """
    request = request or CheckRequest()
    options = dict(storage_options or {})
    log = TableLog.open(location, options, catalog_table)
    if log.listing.latest_version is None and not log.listing.checkpoint_files and not log.unknown:
        raise TableNotFoundError(location)
    return _Run(log, request, options, catalog_table).result()


class _Run:
    def __init__(
        self,
        log: TableLog,
        request: CheckRequest,
        options: Mapping[str, str],
        catalog_table: CatalogTable | None,
    ) -> None:
        self._log, self._request, self._options, self._catalog_table = log, request, options, catalog_table
        self._findings = Findings(request.wanted, request.since)
        self._now = int(time.time() * 1000) if request.now is None else request.now
        self._files = 0

    def result(self) -> CheckResult:
        """Run the checks. What readers only warn of is a finding here."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeltaWarning)
            return self._checked()

    def _checked(self) -> CheckResult:
        log, findings = self._log, self._findings
        check_versions(log, findings)
        check_names(log, findings)
        check_hint(log, findings)
        walked = walk_log(log, findings, self._request.since, self._now)
        state = walked.state
        if state is not None:
            check_times(log, state.configuration, findings)
            check_kinds(log, state, findings)
            check_declaration(state, findings)
        if self._log.tail is not None or self._catalog_table is not None:
            check_catalog(log, findings)
        table = self._live_table()
        if table is not None:
            self._check_live(table, state)
        return CheckResult(
            log.location,
            self._request.level,
            log.listing.latest_version,
            findings.sorted(),
            findings.omitted(),
            tuple(findings.skipped),
            walked.commits,
            self._files,
        )

    def _live_table(self) -> LiveTable | None:
        """Return the newest version as readers see it; None, with a note, if they cannot."""
        log = self._log
        try:
            replay = LogReplay(log.store, segment_of(log.listing, log.store, log.location))
            configuration = TableConfiguration(*replay.replayed_protocol_and_metadata(), log.location)
            _ = configuration.schema
            return LiveTable(replay, configuration, replay.segment.end_version)
        except (StorageError, CatalogError):
            raise
        except (DeltaError, RecursionError) as error:
            reason = error.message if isinstance(error, DeltaError) else "the schema is nested too deeply"
            self._findings.skip(f"The newest version cannot be opened, so its files were not checked: {reason}")
            return None

    def _check_live(self, table: LiveTable, state: TableState | None) -> None:
        findings = self._findings
        domain = None if state is None else state.live_domains.get(ROW_TRACKING)
        try:
            checks: list[LiveCheck] = [
                UniquePaths(table, findings),
                PartitionValues(table, findings),
                HiddenNames(table, findings),
                Sizes(table, findings),
                Values(table, findings),
                IdentityMarks(table, findings),
                Vectors(table, findings),
                VectorPlaces(table, findings),
                CubeTags(table, findings),
                RowIds(table, domain, findings),
            ]
        except DeltaError as error:
            findings.skip(f"Live files were not checked: {error.message}")
            return
        self._files = pass_over(table, checks, findings)
        if findings.wants("S01"):
            self._guarded(lambda: check_texts(table, findings))
        depth = LEVELS.index(self._request.level)
        if depth < 1:
            return
        try:
            check_readable(table.configuration, table.location)
        except DeltaError as error:
            findings.skip(f"Files were not opened: {error.message}")
            return
        snapshot = Snapshot(table.replay, table.configuration, self._options, self._catalog_table)
        self._guarded(lambda: check_listing(snapshot, self._log, self._now, findings))
        if depth >= 2:
            self._guarded(lambda: check_footers(snapshot, findings))
        if depth >= 3:
            self._guarded(lambda: check_rows(snapshot, findings))

    def _guarded(self, check: Callable[[], None]) -> None:
        try:
            check()
        except (StorageError, CatalogError):
            raise
        except DeltaError as error:
            self._findings.skip(error.message)
