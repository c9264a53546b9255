"""The commits of a table as a stream of changes sees them: the file actions that tell which rows each changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.columns import DELETION_VECTOR, SIZE
from pyspark_delta.actions.model import CommitInfo
from pyspark_delta.changes.commits import INDEX, VERSION, FileActions, collect, parse_files
from pyspark_delta.changes.configuration_ranges import Declared
from pyspark_delta.log.commits import CommitText
from pyspark_delta.log.segment import CommitFile
from pyspark_delta.storage import ObjectStore
from pyspark_delta.streaming.admission import Sizes


@dataclass(frozen=True, slots=True)
class FeedCommit:
    """One commit, with the file actions that tell its changes."""

    declared: Declared
    file: CommitFile
    info: CommitInfo | None
    actions: FileActions

    @property
    def version(self) -> int:
        """The version."""
        return self.declared.version

    @property
    def sizes(self) -> Sizes:
        """The sizes of the files. A row that was updated is in one batch with its former values: a commit that has
        change data files or deletion vectors is not separated.
        """
        kinds = (self.actions.cdc, self.actions.adds, self.actions.removes)
        sizes = np.concatenate([pc.fill_null(kind[SIZE.name], 0).to_numpy() for kind in kinds])
        order = np.argsort(np.concatenate([kind[INDEX.name].to_numpy() for kind in kinds]))
        marked = any(kind[DELETION_VECTOR.name].null_count < kind.num_rows for kind in kinds[1:])
        return Sizes(pa.array(sizes[order], pa.int64()), self.actions.cdc.num_rows > 0 or marked)

    def between(self, first: int, end: int | None) -> FileActions:
        """Return the actions of some indexes."""
        kinds = (self.actions.cdc, self.actions.adds, self.actions.removes)
        return FileActions(*(_between(kind, first, end) for kind in kinds))


def load_changes(
    store: ObjectStore, files: Sequence[CommitFile], texts: Iterable[CommitText], partition_names: Sequence[str]
) -> list[FeedCommit]:
    """Parse some commits that were read from `store`. `partition_names` are the physical names of the partition
    columns. Raises CorruptLogError.
    """
    commits = collect(texts, tuple(files), {})
    declared = {found.version: found for found in commits.declared}
    actions = parse_files(commits, partition_names, store)
    kinds = (actions.cdc, actions.adds, actions.removes)
    ends = [np.searchsorted(kind[VERSION.name].to_numpy(), [f.version for f in files], "right") for kind in kinds]
    starts, found = [0, 0, 0], []
    for number, file in enumerate(files):
        until = [int(end[number]) for end in ends]
        own = FileActions(*(k.slice(s, e - s) for k, s, e in zip(kinds, starts, until, strict=True)))
        changed = declared.get(file.version, Declared(file.version, None, None))
        found.append(FeedCommit(changed, file, commits.infos.get(file.version), own))
        starts = until
    return found


def _between(files: pa.Table, first: int, end: int | None) -> pa.Table:
    indexes = files[INDEX.name].to_numpy()
    chosen = indexes >= first
    return files.filter(pa.array(chosen if end is None else chosen & (indexes < end)))


def joined(actions: Sequence[FileActions]) -> FileActions:
    """Return the actions of several commits."""
    return FileActions(
        pa.concat_tables([found.cdc for found in actions]),
        pa.concat_tables([found.adds for found in actions]),
        pa.concat_tables([found.removes for found in actions]),
    )
