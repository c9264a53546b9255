"""Checks that need a listing: files that the log names exist, with their sizes, and which others there are.

F01, F02, F09, F11, F12, D01 for files of deletion vectors, K04 and K10 for sidecars. On a local disk each file is asked
for its size; on a store of objects one listing answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.deletion_vectors import vector_locations
from pyspark_delta.display import counted
from pyspark_delta.errors import DeltaError, FileNotFoundInStoreError, StorageError
from pyspark_delta.features import Feature, is_supported
from pyspark_delta.log.checkpoints import CheckpointReader
from pyspark_delta.log.listing import log_location
from pyspark_delta.log.names import SIDECAR_DIRECTORY
from pyspark_delta.log.request import FileRequest
from pyspark_delta.log.segment import CommitFile
from pyspark_delta.maintenance.checking.catalogue import Severity
from pyspark_delta.maintenance.checking.findings import Findings
from pyspark_delta.maintenance.checking.live_files import Array, hashes
from pyspark_delta.maintenance.checking.log_leftovers import DAY, temporary_files
from pyspark_delta.maintenance.checking.removed_files import check_removed, sliced
from pyspark_delta.maintenance.checking.source_copies import SourceCopies
from pyspark_delta.maintenance.checking.table_log import TableLog
from pyspark_delta.maintenance.vacuum import VacuumRequest, plan_vacuum
from pyspark_delta.maintenance.vacuum.removes import named_paths
from pyspark_delta.parallel import map_requests
from pyspark_delta.protocol.properties import DELETED_FILE_RETENTION
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage import store_for
from pyspark_delta.storage.paths import LOCAL_SCHEME, file_name, join, split
from pyspark_delta.storage.percent import resolve_column

_AT_ONCE = 32


def check_listing(snapshot: Snapshot, log: TableLog, now: int, findings: Findings) -> None:
    """Run the checks of the level `list`. Raises StorageError."""
    if findings.wants("K04", "K10"):
        _check_sidecars(log, now, findings)
    tree = _Tree(snapshot)
    if findings.wants("F01", "F02", "F09", "D01"):
        _check_live(snapshot, tree, findings)
    if findings.wants("F10", "T05"):
        check_removed(snapshot, log, tree.sizes, now, findings)
    if findings.wants("F12"):
        _check_change_data(snapshot, log, tree, now, findings)
    if findings.wants("F11"):
        _check_garbage(snapshot, now, findings)


# -------------------------------------------------------------------------------------------------- what there is
class _Tree:
    """The sizes of files below a table: of a listing, or asked for one by one on local disks."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._prefix = join(snapshot.location, "")
        self._is_local = split(snapshot.location)[0] in (LOCAL_SCHEME, "memory")
        self._listed: tuple[Array, Array] | None = None

    def is_inside(self, locations: pa.Array) -> Array:
        """Return a mask of the locations below the table."""
        return np.asarray(pc.starts_with(locations, self._prefix))

    def sizes(self, locations: pa.Array) -> Array:
        """Return the sizes of files in bytes; -1 for one that does not exist, -2 for one that cannot be asked for."""
        inside = self.is_inside(locations)
        sizes = np.full(len(locations), -1, np.int64)
        asked = np.arange(len(locations))
        if not self._is_local and len(locations):
            keys, known = self._listing()
            wanted = hashes(locations)
            at = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
            hit = inside & (keys[at] == wanted) if len(keys) else np.zeros(len(locations), np.bool_)
            sizes[hit] = known[at[hit]]
            asked = np.flatnonzero(~hit | (sizes < 0))
        if len(asked):
            texts = locations.take(pa.array(asked)).to_pylist()
            threads = 1 if self._is_local else min(_AT_ONCE, len(texts))
            sizes[asked] = list(map_requests(self._size, texts, threads))
        return sizes

    def _listing(self) -> tuple[Array, Array]:
        if self._listed is None:
            keys, sizes = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
            for batch in self._snapshot.store.list_tree(self._snapshot.location, lambda name: name == "_delta_log"):
                keys.append(hashes(pc.binary_join_element_wise(self._prefix, batch.column("path"), "")))
                sizes.append(np.asarray(pc.fill_null(batch.column("size"), -1)))
            joined = np.concatenate(keys)
            order = np.argsort(joined)
            self._listed = joined[order], np.concatenate(sizes)[order]
        return self._listed

    def _size(self, location: str) -> int:
        try:
            return store_for(location, self._snapshot.storage_options).status(location).size
        except FileNotFoundInStoreError:
            return -1
        except (StorageError, DeltaError):
            return -2


# ------------------------------------------------------------------------------------------------------- live files
@dataclass
class _Outside:
    files: int = 0
    example: str = ""


def _check_live(snapshot: Snapshot, tree: _Tree, findings: Findings) -> None:
    outside = _Outside()
    vectors: list[pa.Array] = []
    for batch in sliced(snapshot.read_files(FileRequest(("path", "size", "deletion_vector")))):
        locations = resolve_column(snapshot.location, batch.column("path"))
        sizes = tree.sizes(locations)
        _report_sizes(snapshot, batch, sizes, findings)
        inside = tree.is_inside(locations)
        if not inside.all():
            outside.files += int((~inside).sum())
            outside.example = outside.example or locations[int(np.flatnonzero(~inside)[0])].as_py()
        try:
            vectors.append(vector_locations(snapshot.location, batch.column("deletion_vector")))
        except DeltaError:
            continue  # reported with the vectors
    if outside.files:
        findings.add(
            "F09",
            f"{counted(outside.files, 'live file')} are outside of the table, such as '{outside.example}': its owner "
            "may delete them.",
            version=snapshot.version,
        )
    files = pa.concat_arrays([pa.array([], pa.string()), *vectors]).unique()
    for at in np.flatnonzero(tree.sizes(files) == -1).tolist():
        findings.add(
            "D01",
            f"The deletion vector file '{files[at].as_py()}' does not exist.",
            version=snapshot.version,
            file=files[at].as_py(),
        )


def _report_sizes(snapshot: Snapshot, batch: pa.RecordBatch, sizes: Array, findings: Findings) -> None:
    paths, expected = batch.column("path"), np.asarray(pc.fill_null(batch.column("size"), -3))
    copies = SourceCopies(snapshot)

    def lost(path: str, size: int) -> str:
        place = copies.place(path, size)
        known = "" if place is None else f" '{place}', in the source of this clone, has its name and size."
        return f"The live file '{path}' does not exist.{known}"

    missing, other = np.flatnonzero(sizes == -1), np.flatnonzero((sizes >= 0) & (sizes != expected))
    findings.add_rows(
        "F01",
        len(missing),
        ((path, lost(path, int(expected[at]))) for at, path in ((at, paths[int(at)].as_py()) for at in missing)),
        version=snapshot.version,
    )
    findings.add_rows(
        "F02",
        len(other),
        (
            (path, f"The file '{path}' has {sizes[at]:,} bytes, and the log says {expected[at]:,}.")
            for at, path in ((at, paths[int(at)].as_py()) for at in other)
        ),
        version=snapshot.version,
    )
    for at in np.flatnonzero(sizes == -2)[:1]:
        findings.skip(f"The store did not answer for some files, such as '{paths[int(at)].as_py()}'.")


# ------------------------------------------------------------------------------------------------ change data files
def _check_change_data(snapshot: Snapshot, log: TableLog, tree: _Tree, now: int, findings: Findings) -> None:
    """Check that the change data files of commits within the retention are still there (F12)."""
    if not is_supported(snapshot.configuration, Feature.CHANGE_DATA_FEED):
        return
    cutoff = now - DELETED_FILE_RETENTION.of(snapshot.properties) // timedelta(milliseconds=1)
    for version, file in sorted(log.listing.commits.items()):
        if file.modification_time < cutoff:
            continue
        try:
            paths = list(named_paths(snapshot, [CommitFile(version, file)], "cdc"))
        except DeltaError:
            continue  # a finding of the commit
        for batch in paths:
            locations = pc.binary_join_element_wise(join(snapshot.location, ""), batch, "")
            gone = np.flatnonzero(tree.sizes(locations) == -1)
            if len(gone):
                findings.add(
                    "F12",
                    f"{counted(len(gone), 'change data file')} of version {version} do not exist, such as "
                    f"'{batch[int(gone[0])].as_py()}'.",
                    version=version,
                    file=file.path,
                )


def _check_garbage(snapshot: Snapshot, now: int, findings: Findings) -> None:
    """Count the files that a vacuum would delete now (F11)."""
    try:
        plan = plan_vacuum(snapshot, VacuumRequest(mode="full"), now=now)
    except DeltaError:
        return  # a table that this client may not vacuum
    if plan.files.num_rows:
        findings.add(
            "F11",
            f"No version within the retention needs {counted(plan.files.num_rows, 'file')} of {plan.size_in_bytes:,} "
            "bytes.",
            version=snapshot.version,
        )


# ---------------------------------------------------------------------------------------------------------- sidecars
def _check_sidecars(log: TableLog, now: int, findings: Findings) -> None:
    named: set[str] = set()
    complete = True
    for checkpoint in log.checkpoints:
        reader = CheckpointReader(log.store, log.location, checkpoint)
        try:
            sidecars = reader.sidecars
        except DeltaError:
            complete = False
            continue  # a finding of the checkpoint
        for part in sidecars:
            named.add(file_name(part.path))
            _check_sidecar(log, part.file.path, part.file.size, checkpoint.version, findings)
    directory = join(log_location(log.location), SIDECAR_DIRECTORY)
    loose = size = 0
    for file in log.store.list_from(join(directory, "")) if complete else ():
        if file_name(file.path) not in named and file.modification_time < now - DAY:
            loose, size = loose + 1, size + file.size
    if loose:
        findings.add("K10", f"No checkpoint names {counted(loose, 'sidecar')} of {size:,} bytes, older than a day.")
    temporary = [file.size for file in temporary_files(log, now)]
    if temporary:
        findings.add(
            "K10",
            f"Writers that ended left {counted(len(temporary), 'temporary file')} of {sum(temporary):,} bytes in the "
            "log, older than a day.",
        )


def _check_sidecar(log: TableLog, path: str, size: int, version: int, findings: Findings) -> None:
    try:
        found = log.store.status(path)
    except FileNotFoundInStoreError:
        findings.add("K04", f"The sidecar '{file_name(path)}' does not exist.", version=version, file=path)
        return
    if found.size != size:
        findings.add(
            "K04",
            f"The sidecar '{file_name(path)}' has {found.size:,} bytes, and its checkpoint says {size:,}.",
            version=version,
            file=path,
            severity=Severity.WARNING,
        )
