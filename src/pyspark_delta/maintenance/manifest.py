"""GENERATE: symlink manifests of all partitions, for engines that read Parquet files and not the log."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.display import counted, html_facts
from pyspark_delta.errors import InvalidOptionError
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage.paths import join
from pyspark_delta.transaction.symlink_manifest import DIRECTORY, check_manifest, manifests, write_manifests

MODE = "symlink_format_manifest"


@dataclass(frozen=True)
class ManifestResult:
    """How many manifests were written, how many old ones deleted, and how many data files they list."""

    manifests: int
    manifests_deleted: int
    files: int

    def _repr_html_(self) -> str:
        return html_facts("ManifestResult", vars(self))


@dataclass(frozen=True, repr=False)
class ManifestPlan:
    """The manifests to write for a version, and the paths of manifests of partitions that have no files any more."""

    snapshot: Snapshot
    manifests: dict[str, pa.Array]
    outdated: tuple[str, ...]

    @cached_property
    def num_files(self) -> int:
        """The number of data files that the manifests list."""
        return sum(map(len, self.manifests.values()))

    def facts(self) -> dict[str, object]:
        """Return the plan as names and values."""
        return {
            "operation": "GENERATE",
            "version": self.snapshot.version,
            "manifests": len(self.manifests),
            "manifests_deleted": len(self.outdated),
            "files": self.num_files,
        }

    def execute(self) -> ManifestResult:
        """Write the manifests, then delete outdated ones. Nothing is committed. Raises StorageError."""
        write_manifests(self.snapshot, self.manifests)
        self.snapshot.store.delete(join(self.snapshot.location, path) for path in self.outdated)
        return ManifestResult(len(self.manifests), len(self.outdated), self.num_files)

    def _repr_html_(self) -> str:
        return html_facts("ManifestPlan", self.facts())

    def __repr__(self) -> str:
        return f"ManifestPlan({self.snapshot.location!r}, {counted(len(self.manifests), 'manifest')})"

    def __str__(self) -> str:
        return (
            f"Write {counted(len(self.manifests), 'manifest')} of {counted(self.num_files, 'file')} of version "
            f"{self.snapshot.version} of '{self.snapshot.location}', and delete {len(self.outdated)} outdated ones."
        )


def plan_manifest(snapshot: Snapshot, mode: str = MODE) -> ManifestPlan:
    """Return the manifests of a version, without writing them. Lists existing manifests.

    Raises InvalidOptionError for another mode, and InvalidOperationError for a table with column mapping or deletion
    vectors, which engines without Delta would read wrongly.
    """
    if mode.lower() != MODE:
        raise InvalidOptionError(
            f"generate supports the mode '{MODE}', found '{mode}'.",
            error_class="DELTA_UNSUPPORTED_GENERATE_MODE",
            option="mode",
        )
    check_manifest(snapshot)
    wanted = manifests(snapshot)
    existing = pa.concat_arrays(
        [
            pa.array([], pa.string()),
            *(
                pc.binary_join_element_wise(f"{DIRECTORY}/", batch.column("path"), "")
                for batch in snapshot.store.list_tree(join(snapshot.location, DIRECTORY), lambda _: False)
            ),
        ]
    )
    manifest = pc.or_(pc.ends_with(existing, "/manifest"), pc.equal(existing, f"{DIRECTORY}/manifest"))
    kept = pc.is_in(existing, value_set=pa.array(list(wanted), pa.string()))
    outdated = existing.filter(pc.and_(manifest, pc.invert(kept))).to_pylist()
    return ManifestPlan(snapshot, wanted, tuple(sorted(outdated)))
