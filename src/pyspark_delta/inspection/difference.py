"""What differs between two versions of a table: files, rows, and everything that the versions declare."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.display import counted, html_facts
from pyspark_delta.inspection.declared import Declared, declared
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.snapshot.difference import exclusive_files

_FILES = ("path", "partition_values", "size", "modification_time", "stats", "deletion_vector")
_CHANGES = pa.schema([(name, pa.string()) for name in ("kind", "name", "before", "after")])


@dataclass(frozen=True, repr=False)
class TableDiff:
    """The differences from the version `before` to the version `after` of a table. Each is read when it is asked for.

    A file with another deletion vector is another file: the old one is removed and the new one is added.
    """

    before: Snapshot
    after: Snapshot

    @cached_property
    def _files(self) -> tuple[pa.Table, pa.Table]:
        return exclusive_files(self.before, self.after, _FILES, _FILES)

    @property
    def files_added(self) -> pa.Table:
        """The live files that only the later version has, with the columns of `Table.files`."""
        return self._files[1]

    @property
    def files_removed(self) -> pa.Table:
        """The live files that only the earlier version has, with the columns of `Table.files`."""
        return self._files[0]

    @cached_property
    def rows(self) -> tuple[int | None, int | None]:
        """The number of rows of both versions, from the log; None if a file has no statistics."""
        return self.before.record_count.total, self.after.record_count.total

    @cached_property
    def changes(self) -> pa.Table:
        """What the versions declare differently, with the columns `kind`, `name`, `before` and `after`, all texts.

        The kinds are `column`, `partitioning`, `table` (its id, name, description), `property`, `protocol` (the
        versions), `feature` and `domain`. `before` is null for what is new, `after` for what is gone. A renamed column
        is one change. Column mapping ids and high-water marks of identity columns are left out.
        """
        old, new = declared(self.before), declared(self.after)
        rows = [_row(key, old.get(key), new.get(key)) for key in {**old, **new} if old.get(key) != new.get(key)]
        return pa.Table.from_pylist(rows, _CHANGES)

    def facts(self) -> dict[str, object]:
        """Return the difference in numbers, by name. Sizes are bytes."""
        added, removed = self.files_added, self.files_removed
        return {
            "version_before": self.before.version,
            "version_after": self.after.version,
            "rows_before": self.rows[0],
            "rows_after": self.rows[1],
            "files_added": added.num_rows,
            "files_removed": removed.num_rows,
            "bytes_added": _size(added),
            "bytes_removed": _size(removed),
            "declarations_changed": self.changes.num_rows,
        }

    def _repr_html_(self) -> str:
        return html_facts("TableDiff", self.facts())

    def __repr__(self) -> str:
        return f"TableDiff({self.before.location!r}, {self.before.version} to {self.after.version})"

    def __str__(self) -> str:
        added, removed = self.files_added, self.files_removed
        old, new = ("unknown" if rows is None else f"{rows:,}" for rows in self.rows)
        lines = [
            f"From version {self.before.version} to version {self.after.version} of '{self.before.location}':",
            f"  rows: {old} to {new}",
            f"  files added: {counted(added.num_rows, 'file')} of {counted(_size(added), 'byte')}",
            f"  files removed: {counted(removed.num_rows, 'file')} of {counted(_size(removed), 'byte')}",
        ]
        return "\n".join([*lines, *(f"  {_sentence(**change)}" for change in self.changes.to_pylist())])


def _row(key: tuple[str, ...], old: Declared | None, new: Declared | None) -> dict[str, str | None]:
    found = new or old
    assert found is not None
    before, after = (None if one is None else one.text for one in (old, new))
    if old is not None and new is not None and old.name != new.name:
        before, after = f"{old.name} {before}", f"{new.name} {after}"
    return {"kind": key[0], "name": found.name, "before": before, "after": after}


def _sentence(kind: str, name: str, before: str | None, after: str | None) -> str:
    if before is None:
        return f"{kind} {name}: new, {after}"
    return f"{kind} {name}: gone, was {before}" if after is None else f"{kind} {name}: {before} to {after}"


def _size(files: pa.Table) -> int:
    size: int = pc.sum(files["size"]).as_py() or 0
    return size
