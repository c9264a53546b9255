"""Repairs of findings. Each leaves the rows of the table as they are, unless it is asked for by its name.

Automatic repairs write derived files again, or correct what new writers must know: marks, ids, features. Named repairs
take something from the table, such as the references to files that do not exist. `repair_catalogue` lists both.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from pyspark_delta.catalog.connections import managed_table
from pyspark_delta.catalog.contract import Maintenance
from pyspark_delta.display import counted, html_facts
from pyspark_delta.errors import (
    CatalogError,
    DeltaError,
    DeltaWarning,
    InvalidOptionError,
    MaintenanceNotAllowedError,
    StorageError,
)
from pyspark_delta.features.support import check_known
from pyspark_delta.log.names import ClassicCheckpointName
from pyspark_delta.log.replay import LogReplay
from pyspark_delta.log.segment import segment_of
from pyspark_delta.maintenance.checking import catalogue as names
from pyspark_delta.maintenance.checking.derived_repairs import (
    delete_files,
    rewrite_hint,
    write_sound_checkpoint,
    wrong_checkpoints,
)
from pyspark_delta.maintenance.checking.file_repairs import (
    clear_cubes,
    compute_statistics,
    correct_cardinalities,
    drop_vectors,
    trust_sizes,
)
from pyspark_delta.maintenance.checking.findings import CheckResult, Finding
from pyspark_delta.maintenance.checking.log_leftovers import DAY, FOUND, delete_found
from pyspark_delta.maintenance.checking.repair_catalogue import (
    AUTOMATIC,
    NAMED,
    OF_LOG,
    OF_WRONG_CHECKPOINTS,
    TITLES,
    WRONG_CHECKPOINTS,
)
from pyspark_delta.maintenance.checking.run import CheckRequest, check_table
from pyspark_delta.maintenance.checking.table_log import TableLog
from pyspark_delta.maintenance.checking.table_repairs import (
    add_features,
    add_required_features,
    advance_row_id_mark,
    assign_row_ids,
    keep_existing_clustering,
    raise_max_column_id,
    remove_duplicates,
    remove_files,
    remove_missing,
    sync_identity,
    widen_statistics,
)
from pyspark_delta.protocol.catalog_table import CatalogTable
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.snapshot.cache import clear_cache
from pyspark_delta.storage.paths import file_name
from pyspark_delta.transaction.version_checksum import write_counted_checksum


@dataclass(frozen=True, slots=True)
class RepairStep:
    """One repair: its name, what it does, and the findings that it removes. Without `allowed` it is not made.

    `is_permitted` is False if the catalog that manages the table does not let its log be cleaned up.
    """

    name: str
    title: str
    findings: tuple[Finding, ...] = field(repr=False)
    allowed: bool
    is_permitted: bool = True

    @property
    def is_automatic(self) -> bool:
        """True if the repair need not be named."""
        return self.name in AUTOMATIC


@dataclass(frozen=True, repr=False)
class RepairPlan:
    """What repairing a table would do. `check` is the check whose findings are repaired."""

    check: CheckResult
    steps: tuple[RepairStep, ...]
    storage_options: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)
    catalog_table: CatalogTable | None = None
    engine_info: str = ""

    @property
    def unrepaired(self) -> tuple[Finding, ...]:
        """The findings that no allowed step removes, without those that are only worth knowing."""
        repaired = {finding for step in self.steps if step.allowed for finding in step.findings}
        bad = (*self.check.errors, *self.check.warnings)
        return tuple(finding for finding in bad if finding not in repaired)

    def facts(self) -> dict[str, object]:
        """Return the plan as names and values."""
        return {
            "location": self.check.location,
            "version": self.check.version,
            "repairs": [step.name for step in self.steps if step.allowed],
            "not_allowed": [step.name for step in self.steps if not step.allowed],
            "findings": len(self.check.findings),
            "unrepaired": len(self.unrepaired),
        }

    def execute(self) -> RepairResult:
        """Make the allowed repairs, one after another, and return them with the version after the last.

        Raises UnsupportedFeatureError, before anything is changed, if a feature of the table is unknown;
        MaintenanceNotAllowedError for a repair of the log that `allow` names and the catalog does not allow;
        CommitConflictError if a concurrent commit changes what a repair relies on. The repairs before the error stay
        made.
        """
        if any(step.allowed for step in self.steps):
            self._check_known()
        done, left = [], list(self.unrepaired)
        for step in self.steps:
            if step.allowed:
                made = _REPAIRS[step.name](self, step)
                if made:
                    done.append(step.name)
                if isinstance(made, frozenset):
                    left += [finding for finding in step.findings if finding.file not in made]
        snapshot = self.snapshot() if done else None
        return RepairResult(tuple(done), self.check.version if snapshot is None else snapshot.version, tuple(left))

    def _check_known(self) -> None:
        """Raise an error if the table has an unknown feature, by its commits: a version checksum may be wrong.

        A table that cannot be opened before some repair is checked by those that follow.
        """
        log = TableLog.open(self.check.location, self.storage_options, self.catalog_table)
        log.listing.checksums.clear()
        log.listing.compactions.clear()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeltaWarning)  # the check has found what they say
                replay = LogReplay(log.store, segment_of(log.listing, log.store, log.location))
                configuration = TableConfiguration(*replay.replayed_protocol_and_metadata(), log.location)
        except (StorageError, CatalogError):
            raise
        except DeltaError:
            return
        check_known(configuration, log.location)

    def snapshot(self) -> Snapshot:
        """Open the newest version. Raises the errors of `Snapshot.load`."""
        return Snapshot.load(
            self.check.location, storage_options=self.storage_options, catalog_table=self.catalog_table
        )

    def _repr_html_(self) -> str:
        return html_facts("RepairPlan", self.facts())

    def __repr__(self) -> str:
        return f"RepairPlan({self.check.location!r}, {', '.join(step.name for step in self.steps) or 'nothing'})"

    def __str__(self) -> str:
        lines = [f"Repair '{self.check.location}', at version {self.check.version}:"]
        for step in self.steps:
            reason = f"needs to be allowed: '{step.name}'" if step.is_permitted else "the catalog does not allow it"
            made = "" if step.allowed else f" ({reason})"
            lines.append(f"  {step.title}: {counted(len(step.findings), 'finding')}{made}")
        if not self.steps:
            lines.append("  nothing can be repaired")
        lines += [f"  not repaired: {finding}" for finding in self.unrepaired[:10]]
        return "\n".join(lines)


@dataclass(frozen=True)
class RepairResult:
    """The repairs that were made, by their names, the version after them, and the findings that remain."""

    repairs: tuple[str, ...]
    version: int | None
    unrepaired: tuple[Finding, ...] = ()

    def _repr_html_(self) -> str:
        return html_facts("RepairResult", {"repairs": ", ".join(self.repairs), "version": self.version})


def plan_repair(
    location: str,
    *,
    allow: Collection[str] = (),
    request: CheckRequest | None = None,
    storage_options: Mapping[str, str] | None = None,
    catalog_table: CatalogTable | None = None,
    engine_info: str = "",
) -> RepairPlan:
    """Check a table, and return what repairing it would do. `allow` are repairs of `NAMED`.

    Raises InvalidOptionError for a repair that does not exist, and the errors of `check_table`.
    """
    for name in allow:
        if name not in (*NAMED, *AUTOMATIC):
            raise InvalidOptionError(
                f"'{name}' is not a repair; those that must be allowed are {', '.join(NAMED)}.", option="allow"
            )
    result = check_table(location, request, storage_options=storage_options, catalog_table=catalog_table)
    found: dict[str, list[Finding]] = {}
    for finding in result.findings:
        if finding.repair in TITLES:
            found.setdefault(finding.repair, []).append(finding)
    wrong = [finding for finding in found.get(names.CHECKPOINT, ()) if finding.id in OF_WRONG_CHECKPOINTS]
    if wrong:
        found[WRONG_CHECKPOINTS] = wrong
    forbidden = _forbidden(catalog_table)
    steps = tuple(
        RepairStep(
            name,
            TITLES[name],
            tuple(found[name]),
            name in allow or (name in AUTOMATIC and name not in forbidden),
            name not in forbidden,
        )
        for name in (*AUTOMATIC, *NAMED)
        if name in found
    )
    return RepairPlan(result, steps, dict(storage_options or {}), catalog_table, engine_info)


_Made = bool | frozenset[str]  # whether something was changed, or the files that were repaired
_Repair = Callable[[RepairPlan, RepairStep], _Made]


def _forbidden(catalog_table: CatalogTable | None) -> frozenset[str]:
    """Return the repairs of the log that the catalog of the table does not allow (C478)."""
    if catalog_table is None:
        return frozenset()
    managed = managed_table(catalog_table)
    if managed is None or Maintenance.LOG_CLEANUP in managed.info.allowed_maintenance:
        return frozenset({names.CHECKPOINT})
    return OF_LOG | {names.CHECKPOINT}


def _files(step: RepairStep) -> list[str]:
    return sorted({finding.file for finding in step.findings if finding.file is not None})


def _checksum(plan: RepairPlan, step: RepairStep) -> bool:
    deleted = _delete(plan, step)
    if plan.check.version in {finding.version for finding in step.findings}:
        _write_checksum(plan)
    return deleted


def _write_checksum(plan: RepairPlan) -> None:
    """Write the checksum of the newest version, if it has none; readers need none."""
    if plan.catalog_table is not None:
        return
    with suppress(DeltaError):  # a damaged log, or a feature that may have a say in checksums
        snapshot = plan.snapshot()
        check_known(snapshot.configuration, snapshot.location)
        if snapshot.checksum() is None:
            write_counted_checksum(snapshot)
            clear_cache(snapshot.location)


def _require_cleanup(plan: RepairPlan) -> None:
    managed = managed_table(plan.catalog_table)
    if managed is not None:
        managed.require(Maintenance.LOG_CLEANUP)


def _delete(plan: RepairPlan, step: RepairStep) -> bool:
    _require_cleanup(plan)
    return delete_files(plan.check.location, _files(step), plan.storage_options)


def _wrong_checkpoints(plan: RepairPlan, step: RepairStep) -> bool:
    """Delete checkpoints, but not the one that the repair before has written in the place of a wrong one."""
    _require_cleanup(plan)
    written = None if plan.check.version is None else str(ClassicCheckpointName(plan.check.version))
    files = [file for file in _files(step) if file_name(file) != written]
    return delete_files(plan.check.location, files, plan.storage_options)


def _checkpoint(plan: RepairPlan, step: RepairStep) -> bool:
    if plan.catalog_table is not None:
        raise MaintenanceNotAllowedError(
            f"The log of '{plan.check.location}' belongs to its catalog, so no checkpoint was written. Ask its owner."
        )
    return write_sound_checkpoint(plan.check.location, wrong_checkpoints(step.findings), plan.storage_options)


def _hint(plan: RepairPlan, step: RepairStep) -> bool:
    return rewrite_hint(plan.check.location, plan.storage_options)


def _delete_found(id_: str) -> _Repair:
    """Return the repair that deletes the files of a finding, as a new listing shows them."""

    def run(plan: RepairPlan, step: RepairStep) -> frozenset[str] | bool:
        _require_cleanup(plan)
        now = int(time.time() * 1000)
        log = TableLog.open(plan.check.location, plan.storage_options, plan.catalog_table)
        deleted = delete_found(log, FOUND[id_](log, now), None if id_ == "K13" else now - DAY)
        if id_ == "K13" and deleted:
            rewrite_hint(plan.check.location, plan.storage_options)
        return bool(deleted) if id_ == "K10" else deleted  # whose findings name no file

    return run


def _corrupt(plan: RepairPlan, step: RepairStep) -> bool:
    return remove_files(plan.snapshot(), _files(step), plan.engine_info)


def _committing(repair: Callable[[Snapshot, str], bool]) -> _Repair:
    def run(plan: RepairPlan, step: RepairStep) -> bool:
        snapshot = plan.snapshot()
        check_known(snapshot.configuration, snapshot.location)
        return repair(snapshot, plan.engine_info)

    return run


def _by_file(repair: Callable[[Snapshot, Collection[str], str], frozenset[str]], *, counts: bool = False) -> _Repair:
    """Return the repair of the files of findings. With `counts`, it changes what a version checksum counts."""

    def run(plan: RepairPlan, step: RepairStep) -> frozenset[str]:
        snapshot = plan.snapshot()
        check_known(snapshot.configuration, snapshot.location)
        made = repair(snapshot, _files(step), plan.engine_info)
        if made and counts:
            _write_checksum(plan)
        return made

    return run


def _statistics(plan: RepairPlan, step: RepairStep) -> _Made:
    """Compute the wrong statistics of files again; bounds that are too tight only become wide (S04)."""
    commits = tuple(finding for finding in step.findings if finding.id == "S04")
    wide = _committing(widen_statistics)(plan, step) if commits else False
    files = replace(step, findings=tuple(finding for finding in step.findings if finding.id != "S04"))
    made = _by_file(compute_statistics)(plan, files) if files.findings else frozenset()
    assert isinstance(made, frozenset)
    return made | frozenset(_files(replace(step, findings=commits))) if wide else made


_REPAIRS: Mapping[str, _Repair] = {
    names.COMPACTION: _delete,
    names.CHECKSUM: _checksum,
    names.CHECKPOINT: _checkpoint,
    names.HINT: _hint,
    names.LEFTOVERS: _delete_found("K10"),
    names.REQUIRED_FEATURES: _committing(add_required_features),
    names.MAX_COLUMN_ID: _committing(raise_max_column_id),
    names.IDENTITY: _committing(sync_identity),
    names.ROW_ID_MARK: _committing(advance_row_id_mark),
    names.ROW_IDS: _committing(assign_row_ids),
    names.CLUSTERING: _committing(keep_existing_clustering),
    names.CARDINALITY: _by_file(correct_cardinalities, counts=True),
    names.BOUNDS: _statistics,
    names.CUBES: _committing(clear_cubes),
    names.FEATURES: _committing(add_features),
    WRONG_CHECKPOINTS: _wrong_checkpoints,
    names.PARTS: _delete_found("K05"),
    names.UNPUBLISHED: _delete_found("K13"),
    names.UNKNOWN_FILES: _delete_found("L08"),
    names.MISSING_FILES: _committing(remove_missing),
    names.CORRUPT_FILES: _corrupt,
    names.DUPLICATES: _committing(remove_duplicates),
    names.SIZES: _by_file(trust_sizes, counts=True),
    names.VECTORS: _by_file(drop_vectors),
}
