"""A model of the planner that knows every file of a table, its version and its index, and every schema.

Its methods are those of a planner. What a planner raises, they return as a `Refusal`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tests.hand_made import Json
from tests.unit.streaming.random_schemas import DROP, RENAME, TYPE_CHANGE, Schema
from tests.unit.streaming.random_tables import Table
from tests.unit.streaming.tables import FIRST_TIME, TABLE_ID

from pyspark_delta.errors import ChangedRowsError, DeltaError, StreamDataLossError, StreamSchemaError
from pyspark_delta.streaming.admission import Limits
from pyspark_delta.streaming.offset import AFTER_SCHEMA_CHANGE_INDEX, BASE_INDEX, SCHEMA_CHANGE_INDEX, Offset
from pyspark_delta.streaming.options import LATEST, OnDataLoss, StreamOptions

EVOLUTION = "DELTA_STREAMING_METADATA_EVOLUTION"
NO_CONSENT = "DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION"


class File(NamedTuple):
    """A file of a stream: its position, its path, its size, and if the condition on rows may be true for them.

    In a change data feed, `kind` is how its rows changed, "recorded" if they tell it themselves; "" if none did.
    """

    position: tuple[int, int, int]
    path: str
    size: int
    is_possible: bool
    kind: str = "insert"

    @property
    def offset(self) -> Offset:
        """The position after the file."""
        version, phase, index = self.position
        return Offset(TABLE_ID, version, index, phase == 0)


class Refusal(NamedTuple):
    """An error of a planner."""

    kind: type[DeltaError]
    error_class: str | None = None
    version: int | None = None


LOST, CHANGED = Refusal(StreamDataLossError), Refusal(ChangedRowsError)


@dataclass
class SchemaLogModel:
    """The entries of a schema log: the version, the schema, and the number of the entry from which it changed."""

    entries: list[tuple[int, Schema, int]] = field(default_factory=list)

    @property
    def schema(self) -> Schema | None:
        """The schema of the last entry."""
        return self.entries[-1][1] if self.entries else None

    def append(self, version: int, schema: Schema, *, is_first: bool = False) -> None:
        """Add an entry, unless it is there already. Nothing was read before the first one."""
        if self.schema != schema:
            self.entries.append((version, schema, -1 if is_first else len(self.entries) - 1))

    def refused(self, options: StreamOptions) -> list[str]:
        """The kinds of changes up to the last entry to which the options do not agree."""
        if not self.entries or self.entries[-1][2] < 0:
            return []
        version, schema, previous = self.entries[-1]
        agreed = {RENAME: options.allow_rename, DROP: options.allow_drop, TYPE_CHANGE: options.allow_type_change}
        kinds = self.entries[previous][1].kinds_to(schema)
        return [kind for kind in kinds if agreed[kind] not in ("always", str(version))]


@dataclass
class Room:
    """What is left of the limits of a batch."""

    files: int | None
    bytes: int | None
    is_empty: bool = True

    @property
    def is_full(self) -> bool:
        """True if no file is admitted."""
        return any(left is not None and left <= 0 for left in (self.files, self.bytes))

    def take(self, file: File) -> None:
        """Admit a file."""
        self.is_empty = False
        if file.is_possible:
            self.files = None if self.files is None else self.files - 1
            self.bytes = None if self.bytes is None else self.bytes - file.size

    def fits(self, files: list[File]) -> bool:
        """True if files that belong together are admitted: alone, they are more than a limit may allow."""
        needs = (self.files, len(files)), (self.bytes, sum(file.size for file in files))
        return self.is_empty or not files or all(left is None or need <= left for left, need in needs)


def last_version(end: Offset) -> int:
    """The last version of a batch."""
    return end.version if end.index >= 0 or end.initial else end.version - 1


class Files:
    """The files that a stream with some options returns."""

    def __init__(self, table: Table, options: StreamOptions) -> None:
        self.table, self.options = table, options

    def initial(self, version: int) -> list[File]:
        """The files of an initial snapshot."""
        live = self.table.states[version].values()
        ordered = sorted(live, key=lambda action: (action["add"]["modificationTime"], action["add"]["path"].encode()))
        return self._files(version, 0, ordered)

    def of_commit(self, version: int) -> list[File]:
        """The files of a commit."""
        commit = self.table.commits[version]
        if self._skips(version):
            return []
        if self.options.changes:
            return self._changes(version, commit.changes)
        return [] if commit.removes and self.options.skip_change_commits else self._files(version, 1, commit.files)

    def are_whole(self, version: int) -> bool:
        """True for a commit whose changes are in one batch."""
        if not self.options.changes:
            return False
        facts = [next(iter(action.items())) for action in self.table.commits[version].changes]
        return any(kind == "cdc" or "deletionVector" in made for kind, made in facts)

    def _changes(self, version: int, actions: list[Json]) -> list[File]:
        """The files with the changes of a commit: of a file that gets another deletion vector, the rows that differ."""
        vectors = {
            (kind, made["path"]): {made["deletionVector"]["pathOrInlineDv"]} if "deletionVector" in made else set()
            for action in actions
            for kind, made in action.items()
        }
        found = []
        for number, action in enumerate(actions):
            [(kind, made)] = action.items()
            change = {"cdc": "recorded", "add": "insert", "remove": "delete"}[kind]
            other = vectors.get(({"add": "remove", "remove": "add"}.get(kind, ""), made["path"]))
            if other is not None and not other - vectors[kind, made["path"]]:
                change = ""
            found.append(File((version, 1, number), made["path"], made["size"], is_possible=True, kind=change))
        return found

    def refuses(self, version: int) -> bool:
        """True for a commit whose changes of rows the options do not allow."""
        commit = self.table.commits[version]
        if not commit.removes or self._skips(version) or self.options.changes:
            return False
        return not (self.options.allows_changes if commit.files else self.options.allows_deletes)

    def _skips(self, version: int) -> bool:
        return self.options.skip_commits_where is not None and self.table.commits[version].marked

    def _files(self, version: int, phase: int, actions: list[Json]) -> list[File]:
        """The files of a snapshot (phase 0) or a commit (phase 1), in order."""
        every_one = self.options.where is None or not self.table.partitioned or self.options.changes
        made = [action["add"] for action in actions]
        possible = [every_one or "x" in one["partitionValues"].values() for one in made]
        return [File((version, phase, n), one["path"], one["size"], possible[n]) for n, one in enumerate(made)]


class Model:
    """What the planners of one query must return."""

    def __init__(self, table: Table, options: StreamOptions) -> None:
        self.table, self.options = table, options
        self.log = SchemaLogModel()

    @property
    def files(self) -> Files:
        """The files of the query."""
        return Files(self.table, self.options)

    def begin_run(self) -> Refusal | None:
        """Make a planner."""
        self.version = self.table.latest
        self.reads = (self.log.schema if self.is_tracked else None) or self.table.schema
        self.has_checked, self.is_new_log = False, not self.log.entries
        refused = self.log.refused(self.options) if self.is_tracked else []
        return Refusal(StreamSchemaError, NO_CONSENT, self.log.entries[-1][0]) if refused else None

    # ------------------------------------------------------------------------------------------------ where it ends
    def latest(self, start: Offset | None, limits: Limits, last: int) -> Offset | Refusal:
        """The end of the next batch, file by file. `last` is the last version that it may contain."""
        position = self._beginning(last) if start is None else start
        if start is None:
            self.beginning = position
        if position.is_barrier and (stop := self._next_barrier(position)) is not None:
            return stop
        refusal = self._first_check(position, is_first=start is None)
        if refusal is None and position.initial:
            refusal = self._schema_refusal(position.version)
        return self._admit(position, Room(limits.files, limits.bytes), last) if refusal is None else refusal

    def _beginning(self, last: int) -> Offset:
        version = self.options.starting_version
        if version == LATEST:
            return Offset(TABLE_ID, self.table.latest + 1)
        if isinstance(version, int):
            return Offset(TABLE_ID, version)
        if self.options.starting_timestamp is not None:
            times = [FIRST_TIME + 1000 * version for version in range(self.table.latest + 1)]
            return Offset(TABLE_ID, next(v for v, time in enumerate(times) if time >= self.options.starting_timestamp))
        return Offset(TABLE_ID, last, BASE_INDEX, initial=True)

    def _admit(self, position: Offset, room: Room, last: int) -> Offset | Refusal:
        while True:
            if position.initial:
                files = self.files.initial(position.version)
            else:
                version = self._first_kept(position.version)
                if version > last or room.is_full:
                    return position
                refusal = self._gap(position.version)
                position = position if version == position.version else Offset(TABLE_ID, version)
                stop = refusal or self._stop(position)
                if stop is not None:
                    return stop
                files = self.files.of_commit(version)
            files = [file for file in files if file.position > position.position]
            is_whole = not position.initial and self.files.are_whole(position.version)
            if is_whole and not room.fits(files):
                return position
            for file in files:
                if room.is_full and not is_whole:
                    return position
                room.take(file)
                position = file.offset
            position = Offset(TABLE_ID, position.version + 1)

    def _stop(self, position: Offset) -> Offset | Refusal | None:
        """Why a batch ends at a commit: a barrier, or an error."""
        version = position.version
        if self._is_barrier(version):
            return replace(position, index=SCHEMA_CHANGE_INDEX)
        return self._declared_refusal(version) or (CHANGED if self.files.refuses(version) else None)

    def _first_kept(self, version: int) -> int:
        """The first version from one on whose commit was not removed."""
        while version <= self.table.latest and self.table.commits[version].lost:
            version += 1
        return version

    def _gap(self, version: int) -> Refusal | None:
        """The error of a stream that comes to a version whose commit may be lost."""
        first = self._first_kept(version)
        if first == version:
            return None
        if self.options.on_data_loss is OnDataLoss.FAIL:
            return LOST
        return self._schema_refusal(first) if self.table.can_open(first) else None

    # ------------------------------------------------------------------------------------------------ what is in it
    def batch(self, start: Offset | None, end: Offset) -> list[File] | Refusal:
        """The files of a batch."""
        position = self.beginning if start is None else start
        refusal = self._first_check(position, end, is_first=start is None)
        if refusal is None and position.initial:
            refusal = self._schema_refusal(position.version)
        refusals = (self._declared_refusal(version) for version in self._versions(position, end))
        refusal = refusal or self._gap_in(position, end) or next((one for one in refusals if one is not None), None)
        return refusal or self.between(position, end)

    def between(self, start: Offset, end: Offset) -> list[File]:
        """The files after a position up to another one."""
        files = self.files.initial(start.version) if start.initial else []
        for version in self._versions(start, end):
            files += self.files.of_commit(version)
        chosen = [
            file for file in files if start.position < file.position <= end.position and file.is_possible and file.kind
        ]
        exclude = self.options.exclude
        return [file for file in chosen if exclude is None or not exclude.search(file.path)]

    def _versions(self, start: Offset, end: Offset) -> Iterator[int]:
        """The versions whose commits a batch needs."""
        first = start.version + 1 if start.initial else start.version
        return (v for v in range(first, last_version(end) + 1) if not self.table.commits[v].lost)

    def _gap_in(self, start: Offset, end: Offset) -> Refusal | None:
        has_commits = not start.initial and next(self._versions(start, end), None) is not None
        return self._gap(start.version) if has_commits else None

    # ---------------------------------------------------------------------------------------------------- schemas
    @property
    def is_tracked(self) -> bool:
        """True if the query has a schema log."""
        return self.options.schema_location is not None

    def release(self, end: Offset) -> Refusal | None:
        """Complete a batch."""
        return self._at_barrier(end) if end.is_barrier and self.is_tracked else None

    def _next_barrier(self, position: Offset) -> Offset | Refusal | None:
        if position.index == SCHEMA_CHANGE_INDEX and self._is_barrier(position.version):
            return replace(position, index=AFTER_SCHEMA_CHANGE_INDEX)
        return self._at_barrier(position)

    def _at_barrier(self, position: Offset) -> Refusal | None:
        """The end of the query at a barrier, if its schema is still the one before."""
        if self.table.commits[position.version].lost:
            return LOST
        if not self._is_barrier(position.version):
            return None
        self.log.append(position.version, self.table.commits[position.version].schema)
        return Refusal(StreamSchemaError, EVOLUTION, position.version)

    def _is_barrier(self, version: int) -> bool:
        commit = self.table.commits[version]
        return self.is_tracked and not commit.lost and commit.declares and commit.schema != self.reads

    def _declared_refusal(self, version: int) -> Refusal | None:
        return self._schema_refusal(version) if self.table.commits[version].declares else None

    def _schema_refusal(self, version: int) -> Refusal | None:
        """The error of a stream that comes to the schema of a version."""
        found = self.reads.refusal(self.table.commits[version].schema, later=version > self.version)
        return None if found is None else Refusal(StreamSchemaError, found, version)

    def _first_check(self, position: Offset, end: Offset | None = None, *, is_first: bool) -> Refusal | None:
        """The error of a planner at its first position; `end` is that of a batch that was planned before."""
        if self.has_checked or (position.initial and not self.is_tracked):
            return None
        refusal = None
        if not self.is_tracked:
            refusal = self._earlier_refusal(position, is_first=is_first)
        elif self.is_new_log or (is_first and end is None):
            refusal = self._begin_log(position.version if end is None else last_version(end))
        self.has_checked = refusal is None
        return refusal

    def _begin_log(self, version: int) -> Refusal | None:
        version = min(version, self.table.latest)
        schema = self.table.commits[version].schema
        self.log.append(version, schema, is_first=True)
        return None if schema == self.reads else Refusal(StreamSchemaError, EVOLUTION, version)

    def _earlier_refusal(self, position: Offset, *, is_first: bool) -> Refusal | None:
        """The error of a query which goes on after rows that it has returned, or within a commit."""
        goes_on = not is_first and position.index < 0
        version = position.version - 1 if goes_on else min(position.version, self.table.latest)
        return self._schema_refusal(version) if version >= 0 and self.table.can_open(version) else None
