"""Streams with a schema log: barriers at commits that change the schema, and the consent to go on after them.

A batch ends before such a commit, at the barrier `SCHEMA_CHANGE_INDEX`. The next batch is empty and ends at
`AFTER_SCHEMA_CHANGE_INDEX`; when the batch before it is complete, the new schema is written to the log, and the query
fails. It goes on with the new schema when it is started again.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark_delta.changes.configuration_ranges import Declared, evolved
from pyspark_delta.errors import DeltaError, InvalidOptionError, StreamSchemaError
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.schema.types import ArrayType, DataType, MapType, StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.streaming.options import OnDataLoss, StreamOptions
from pyspark_delta.streaming.schema_changes import columns_by_path
from pyspark_delta.streaming.schema_log import NO_ENTRY, SchemaEntry, SchemaLog, is_tracked_change

RENAME, DROP, TYPE_CHANGE = "RENAME COLUMN", "DROP COLUMN", "TYPE WIDENING"
_ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class _Current:
    number: int
    entry: SchemaEntry


class SchemaTracking:
    """The schema log of one run of a stream."""

    def __init__(self, log: SchemaLog, options: StreamOptions) -> None:
        """Read the log. Raises StreamSchemaError if a change of the schema needs the consent of the user."""
        self.log = log
        self._options = options
        found = log.latest()
        # Of the source in the checkpoint; the caller may know it later.
        self.source_path = "" if found is None else found[1].source_path
        self.is_new = found is None  # when the run began
        self._current = None if found is None else _Current(*found)

    @classmethod
    def of(cls, snapshot: Snapshot, options: StreamOptions) -> SchemaTracking | None:
        """Return the schema tracking that the options ask for; None if they do not."""
        location = options.schema_location
        if location is None:
            return None
        if options.on_data_loss is not OnDataLoss.FAIL:
            raise InvalidOptionError(
                "The options schemaTrackingLocation and failOnDataLoss=false, or onDataLoss, exclude each other: the "
                "schema of lost versions is unknown.",
                option="failOnDataLoss",
            )
        log = SchemaLog(location, snapshot.metadata.id, options.tracking_id, snapshot.storage_options)
        return cls(log, options)

    def start(self, snapshot: Snapshot) -> Snapshot:
        """Return the snapshot with the schema with which the stream goes on.

        Raises StreamSchemaError if the last change of the schema needs the consent of the user.
        """
        if self._current is None:
            return snapshot
        self._check_consent(self._current, snapshot)
        return snapshot.with_configuration(self._current.entry.configuration(snapshot.configuration))

    def begin(self, configuration: TableConfiguration, version: int, reads: TableConfiguration) -> None:
        """Write the schema of the first version that the stream reads to the log.

        The log may have entries of a run that ended before its first batch; another one is written only if the schema
        has changed since, which needs no consent: nothing was read with the former one. Raises StreamSchemaError, so
        that the query starts again, if it reads with another schema.
        """
        current = self._current
        if current is None or is_tracked_change(current.entry.configuration(configuration), configuration):
            number, previous = (0, None) if current is None else (current.number + 1, NO_ENTRY)
            entry = SchemaEntry.of(configuration, version, self.source_path, previous)
            self.log.append(number, entry)
            self._current = _Current(number, entry)
        if is_tracked_change(reads, configuration):
            raise self._evolution(version, configuration.location)

    def is_barrier(self, commit: Declared, reads: TableConfiguration) -> bool:
        """Return True if a commit changes the schema with which the stream reads."""
        if commit.metadata is None and commit.protocol is None:
            return False
        return is_tracked_change(reads, evolved(reads, commit))

    def evolve(self, commit: Declared, reads: TableConfiguration) -> StreamSchemaError:
        """Write the schema of a commit to the log, and return the error with which the query has to fail."""
        assert self._current is not None
        entry = SchemaEntry.of(evolved(reads, commit), commit.version, self.source_path)
        self.log.append(self._current.number + 1, entry)
        return self._evolution(commit.version, reads.location)

    def _evolution(self, version: int, location: str) -> StreamSchemaError:
        return StreamSchemaError(
            f"The schema of '{location}' changed at version {version}. The new schema is in the schema log "
            f"'{self.log.location}'. Start the query again, with a new DataFrame: it goes on with the new schema.",
            error_class="DELTA_STREAMING_METADATA_EVOLUTION",
            sqlstate="22000",
            version=version,
            location=location,
        )

    # ------------------------------------------------------------------------------------------------- consent
    def _check_consent(self, current: _Current, snapshot: Snapshot) -> None:
        """Check that the user agrees to a change that can break what follows in the query (not to added columns)."""
        before = current.entry.previous
        number = current.number - 1 if before is None else before
        if number < 0:
            return
        earlier = self.log.entry(number)
        one, other = (entry.configuration(snapshot.configuration) for entry in (earlier, current.entry))
        options = {RENAME: "Rename", DROP: "Drop", TYPE_CHANGE: "TypeChange"}
        changes = _changes(one, other)
        missing = [kind for kind in changes if not self._allows(kind, current.entry.version)]
        if missing:
            shown = [f"{kind} {', '.join(changes[kind])}" for kind in missing]
            raise self._refused(shown, [f"allowSourceColumn{options[kind]}" for kind in missing], earlier, current)

    def _allows(self, kind: str, version: int) -> bool:
        options = self._options
        given = {RENAME: options.allow_rename, DROP: options.allow_drop, TYPE_CHANGE: options.allow_type_change}[kind]
        return given is not None and given.strip().lower() in (_ALWAYS, str(version))

    def _refused(self, changes: list[str], options: list[str], earlier: SchemaEntry, current: _Current) -> DeltaError:
        version = current.entry.version
        return StreamSchemaError(
            f"The schema changed between version {earlier.version} and {version} in a way that can break the query: "
            f"{'; '.join(changes)}. Check the query and its sink. Then allow it for this version, or for all, with "
            f"{' and '.join(f'option({name!r}, {str(version)!r})' for name in options)} of the stream; 'always' allows "
            "all versions.",
            error_class="DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION",
            sqlstate="KD002",
            version=version,
            options=options,
        )


def _changes(before: TableConfiguration, after: TableConfiguration) -> dict[str, list[str]]:
    """Return the changes, other than added columns, between two schemas at any level, by their kind."""
    old, new = columns_by_path(before), columns_by_path(after)
    kept = [(name, field, *new[path]) for path, (name, field) in old.items() if path in new]
    found = {
        RENAME: [f"'{name}' to '{after}'" for name, field, after, now in kept if field.name != now.name],
        DROP: [f"'{name}'" for path, (name, _) in old.items() if path not in new],
        TYPE_CHANGE: [
            f"'{after}' from {field.type} to {now.type}"
            for _, field, after, now in kept
            if _without_fields(field.type) != _without_fields(now.type)
        ],
    }
    return {kind: changes for kind, changes in found.items() if changes}


def _without_fields(data_type: DataType) -> DataType:
    """Return a type without the fields in it, which are columns of their own, and without nullability."""
    match data_type:
        case StructType():
            return StructType(())
        case ArrayType(element):
            return ArrayType(_without_fields(element), True)
        case MapType(key, value):
            return MapType(_without_fields(key), _without_fields(value), True)
        case _:
            return data_type
