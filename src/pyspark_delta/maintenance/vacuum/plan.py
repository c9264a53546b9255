"""The plan of a vacuum: which files would go, and which versions stay readable."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.catalog.connections import managed_table
from pyspark_delta.catalog.contract import Maintenance
from pyspark_delta.display import counted, html_facts
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.features.support import check_writable
from pyspark_delta.log.segment import CommitFile
from pyspark_delta.maintenance.vacuum.bookmark import Bookmark, read_bookmark
from pyspark_delta.maintenance.vacuum.candidates import KINDS, from_inventory, from_listing, from_removes
from pyspark_delta.maintenance.vacuum.references import References, live_paths, tombstone_paths
from pyspark_delta.maintenance.vacuum.removes import (
    first_readable_version,
    last_version_before,
    lite_commits,
    named_paths,
    removed_files,
)
from pyspark_delta.maintenance.vacuum.request import Retention, RunOptions, VacuumRequest, retention_of
from pyspark_delta.maintenance.vacuum.run import VacuumResult, run_vacuum
from pyspark_delta.progress import ShowProgress, operation
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.snapshot.difference import commits_between
from pyspark_delta.storage import normalize_location
from pyspark_delta.storage.local import LocalStore

_DAY = 86_400_000  # ms


@dataclass(frozen=True, repr=False)
class VacuumPlan:
    """What a vacuum would delete from a table, and what stays.

    `files` has the columns `path` (below the table), `size` (bytes), `modification_time` (ms since the epoch) and
    `kind`. Files that were removed before `cutoff`, in ms since the epoch, go. Versions from `oldest_readable_version`
    on can be read afterwards. `mode` is `full`, `lite` or `inventory`.
    """

    snapshot: Snapshot = field(repr=False)
    mode: str
    files: pa.Table = field(repr=False)
    retention: Retention = field(repr=False)
    oldest_readable_version: int
    last_version: int | None = field(repr=False)
    bookmark: Bookmark = field(repr=False)
    started: int = field(repr=False)
    engine_info: str = field(default="", repr=False)
    run_options: RunOptions = field(default=RunOptions(), repr=False)

    @property
    def cutoff(self) -> int:
        """The time before which removed files go, in ms since the epoch."""
        return self.retention.cutoff

    @property
    def size_in_bytes(self) -> int:
        """The sum of the known sizes of the files."""
        size: int = pc.sum(self.files["size"]).as_py() or 0
        return size

    def by_kind(self) -> dict[str, tuple[int, int]]:
        """Return the number of files and their bytes for each kind that occurs."""
        found = {}
        for kind in KINDS:
            files = self.files.filter(pc.equal(self.files["kind"], kind))
            if files.num_rows:
                found[kind] = (files.num_rows, pc.sum(files["size"]).as_py() or 0)
        return found

    def execute(self, *, progress: ShowProgress = None) -> VacuumResult:
        """Delete the files. `progress` is as for `Table.vacuum`. Raises as `run_vacuum`."""
        with operation(progress):
            return run_vacuum(
                self.snapshot,
                self.files,
                self.retention,
                self.bookmark.advanced(self.last_version, self.started if self.mode == "full" else None),
                self.oldest_readable_version,
                self.engine_info,
                self.run_options,
            )

    def facts(self) -> dict[str, object]:
        """Return the plan as names and values."""
        kinds = {f"files_of_{kind.replace(' ', '_')}": number for kind, (number, _) in self.by_kind().items()}
        return {
            "operation": "VACUUM",
            "version": self.snapshot.version,
            "mode": self.mode,
            "files": self.files.num_rows,
            **kinds,
            "bytes": self.size_in_bytes,
            "oldest_readable_version": self.oldest_readable_version,
        }

    def _repr_html_(self) -> str:
        return html_facts("VacuumPlan", self.facts())

    def __repr__(self) -> str:
        return f"VacuumPlan({self.snapshot.location!r}, mode={self.mode!r}, {counted(self.files.num_rows, 'file')})"

    def __str__(self) -> str:
        location, number = self.snapshot.location, self.files.num_rows
        lines = [
            f"A {self.mode} vacuum of '{location}' deletes {number} files of {self.size_in_bytes} bytes.",
            *(f"  {kind}: {number} files of {size} bytes" for kind, (number, size) in self.by_kind().items()),
            f"Versions from {self.oldest_readable_version} on stay readable.",
        ]
        return "\n".join(lines)


def plan_vacuum(
    snapshot: Snapshot, request: VacuumRequest, *, now: int | None = None, engine_info: str = ""
) -> VacuumPlan:
    """Return what a vacuum of the newest version would delete, without deleting anything.

    `now` is in ms since the epoch. Raises InvalidOperationError for a retention that is too short, and for a lite
    vacuum if the log does not reach back far enough; MaintenanceNotAllowedError if the catalog of the table does not
    allow it (C478); the errors of `check_writable`, because writers of unknown features may need other files (C344).
    """
    check_writable(snapshot.configuration, snapshot.location)
    managed = managed_table(snapshot.catalog_table)
    if managed is not None:
        managed.require(Maintenance.VACUUM)
    started = int(time.time() * 1000) if now is None else now
    retention = retention_of(request, snapshot, started)
    bookmark = read_bookmark(snapshot.store, snapshot.location)
    last = last_version_before(snapshot, retention.cutoff)
    mode, commits = _mode(request, snapshot, bookmark, last, started)
    sample: list[str] = []
    paths = _protected(snapshot, request, retention, last)
    is_cut = mode == "full" and not isinstance(snapshot.store, LocalStore)  # a local tree is listed in one go
    protected = References.of(_sampled(paths, sample) if is_cut else paths)
    if mode == "lite":
        files = from_removes(removed_files(snapshot, commits), protected)
    else:
        some_stay = retention.unnamed_cutoff < retention.cutoff
        expired = References.of(tombstone_paths(snapshot) if some_stay else ())
        if mode == "full":
            files = from_listing(snapshot, protected, expired, retention, sample)
        else:
            files = from_inventory(snapshot, request.inventory, protected, expired, retention)
    return VacuumPlan(
        snapshot=snapshot,
        mode=mode,
        files=files,
        retention=retention,
        oldest_readable_version=first_readable_version(snapshot) if last is None else last,
        # Later lite vacuums have to find the files that stay for versions or other tables alone.
        last_version=None if mode == "inventory" or request.keep_versions or request.protect else last,
        bookmark=bookmark,
        started=started,
        engine_info=engine_info,
        run_options=request.run,
    )


def _mode(
    request: VacuumRequest, snapshot: Snapshot, bookmark: Bookmark, last: int | None, now: int
) -> tuple[str, list[CommitFile]]:
    """Return how files are found, and the commits whose removed files a lite vacuum deletes.

    By default, a vacuum lists the table once in a while, because files of failed writes are only found so.
    """
    if request.inventory is not None:
        return "inventory", []
    is_due = bookmark.last_full is None or now - bookmark.last_full > request.full_every_days * _DAY
    if request.mode == "full" or (request.mode == "auto" and is_due):
        return "full", []
    try:
        return "lite", lite_commits(snapshot, bookmark.version, last)
    except InvalidOperationError:
        if request.mode == "lite":
            raise
        return "full", []


def _protected(
    snapshot: Snapshot, request: VacuumRequest, retention: Retention, last: int | None
) -> Iterator[pa.Array]:
    """Yield the paths of files that stay, whatever their age. `last` is the last version before the retention."""
    yield from live_paths(snapshot)
    yield from tombstone_paths(snapshot, retention.cutoff)
    if retention.is_longer_than_default:  # the table may have dropped some tombstones already
        yield from named_paths(snapshot, commits_between(snapshot, last or 0, snapshot.version), "remove")
    for version in request.keep_versions:
        yield from live_paths(snapshot.at_version(version))
    for location in request.protect:
        other = Snapshot.load(normalize_location(location), storage_options=request.protect_options)
        yield from live_paths(other, snapshot.location)
        yield from tombstone_paths(other, table_location=snapshot.location)


def _sampled(paths: Iterable[pa.Array], sample: list[str]) -> Iterator[pa.Array]:
    """Yield arrays of paths, and add every sixteenth path to a list."""
    for array in paths:
        sample += array.take(pa.array(range(0, len(array), 16), pa.int64())).to_pylist()
        yield array
