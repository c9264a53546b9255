"""A table feature: a named capability that a table requires of its readers and writers (Table Features; C231-C235)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import ClassVar

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import CommitDraft
from pyspark_delta.protocol.ready import ReadyCommit
from pyspark_delta.protocol.removal import Removal
from pyspark_delta.protocol.rows import ComputedColumn, RowCheck
from pyspark_delta.protocol.state import TableState
from pyspark_delta.schema.traversal import fields_in

_READER_FEATURES_VERSION, _WRITER_FEATURES_VERSION = 3, 7  # from these versions on, features are listed


class FeatureKind(Enum):
    """Which clients need to support a feature; the values are used in messages."""

    WRITER = "writer"  # listed in writerFeatures only
    READER_WRITER = "reader-writer"  # listed in readerFeatures and writerFeatures


class TableFeature:
    """One table feature. A module of `features` declares it as a subclass and one instance named `FEATURE`.

    Class attributes describe the feature; methods are hooks that the layers above call. By default a hook does nothing,
    so a new hook is a method here, called in one place, and features that do not override it are not changed. Hooks
    receive protocol, metadata and schema together, as a `TableConfiguration`.
    """

    name: ClassVar[str]
    """The name in the protocol action."""

    kind: ClassVar[FeatureKind] = FeatureKind.WRITER

    preview_names: ClassVar[tuple[str, ...]] = ()
    """Preview names: names of the feature in tables written before it was final, with the same meaning."""

    legacy_reader_version: ClassVar[int | None] = None
    legacy_writer_version: ClassVar[int | None] = None
    """The version from which a protocol without feature lists implies the feature (C235)."""

    requires: ClassVar[tuple[str, ...]] = ()
    """Features that this feature requires to be supported."""

    excludes: ClassVar[tuple[str, ...]] = ()
    """Features that must not be active at the same time."""

    declaration_check: ClassVar[str] = "P04"
    """The id of the check of tables that reports what `validate` refuses."""

    implied_properties: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Table properties that are set when the feature becomes active, unless the user sets them."""

    listing_unsupported_reason: ClassVar[str] = ""
    """Why the feature cannot be enabled by its name, and what to do; empty if it can."""

    read_unsupported_reason: ClassVar[str] = ""
    """Why tables with the feature cannot be read, and what to do; empty if they can."""

    write_unsupported_reason: ClassVar[str] = ""
    """Why tables on which the feature `hinders_writing` cannot be written, and what to do; empty if they can."""

    rebase_safe_properties: ClassVar[tuple[str, ...]] = ()
    """Properties that enable the feature without invalidating commits prepared before (see `can_rebase`)."""

    assigned_properties: ClassVar[tuple[str, ...]] = ()
    """Properties that `prepare` sets once, without invalidating commits prepared before."""

    rebase_safe_field_keys: ClassVar[tuple[str, ...]] = ()
    """Keys of field metadata whose changes do not affect other commits."""

    computed_domains: ClassVar[tuple[str, ...]] = ()
    """Metadata domains that `finish` computes from the base in every attempt, so concurrent writes do not conflict."""

    removal: ClassVar[Removal | None] = None
    """How the feature is dropped from a table; None if it cannot be, because other clients rely on it."""

    @property
    def names(self) -> tuple[str, ...]:
        """The final name and the preview names."""
        return (self.name, *self.preview_names)

    def listed_name(self, configuration: TableConfiguration) -> str | None:
        """Return the name under which the protocol supports the feature, listed or implied; None if it does not."""
        protocol = configuration.protocol
        names = (*self.preview_names, self.name)
        listed = next((name for name in names if name in protocol.listed_features), None)
        reader, writer = protocol.min_reader_version, protocol.min_writer_version
        implied = self._is_written_at(writer) or self._is_read_at(reader)
        return self.name if listed is None and implied else listed

    def is_implied(self, reader: int, writer: int) -> bool:
        """True if this pair of versions implies the feature without a feature list (C235, C237)."""
        return self._is_written_at(writer) and (self.legacy_reader_version or 1) <= reader

    def _is_written_at(self, version: int) -> bool:
        """True if this writer version implies the feature, independent of the reader version (C235)."""
        least = self.legacy_writer_version
        return least is not None and least <= version < _WRITER_FEATURES_VERSION

    def _is_read_at(self, version: int) -> bool:
        """True if this reader version implies the feature, independent of the writer version (C237)."""
        least = self.legacy_reader_version
        return least is not None and least <= version < _READER_FEATURES_VERSION

    def is_active(self, configuration: TableConfiguration) -> bool:
        """True if the table supports the feature and its metadata make use of it (C231)."""
        return self.listed_name(configuration) is not None and self.uses(configuration)

    def uses(self, configuration: TableConfiguration) -> bool:
        """True if the metadata use the feature, whether the protocol supports it or not.

        A hook for `is_active`; callers use `is_active`.
        """
        return True

    def hinders_writing(self, configuration: TableConfiguration) -> bool:
        """True if the table uses the feature and `write_unsupported_reason` prevents adding rows to it."""
        return bool(self.write_unsupported_reason) and self.is_active(configuration)

    # ------------------------------------------------------------------------ changes of protocol and metadata
    def is_requested(self, configuration: TableConfiguration) -> bool:
        """True if schema or properties use the feature, supported or not: changing to them enables it."""
        return False

    def prepare(self, configuration: TableConfiguration, before: TableConfiguration | None) -> TableConfiguration:
        """Complete new metadata of a table that supports the feature (`before` is None for a new table).

        Called if a commit changes protocol or metadata, in the order of requirements; returns the argument, or a copy
        with the metadata that the feature needs, such as column ids. Raises InvalidOperationError for a forbidden
        change.
        """
        return configuration

    def check_change(self, configuration: TableConfiguration, before: TableConfiguration, *, keeps_files: bool) -> None:
        """Refuse a change of protocol or metadata that the existing table does not allow.

        `keeps_files` is True if data files written under the old configuration stay in the table. Raises
        InvalidOperationError.
        """

    def validate(self, configuration: TableConfiguration) -> None:
        """Check protocol, schema and properties of a table that supports the feature, before anything is written.

        Raises InvalidOperationError or SchemaMismatchError with a remedy.
        """

    # -------------------------------------------------------------------------------------- dropping the feature
    def has_traces(self, configuration: TableConfiguration) -> bool:
        """True if schema or properties of a version show the feature, which clients without it would misread."""
        return False

    def check_removal(self, configuration: TableConfiguration) -> None:
        """Refuse to drop the feature as long as the user's own definitions need it. Raises InvalidOperationError."""

    # -------------------------------------------------------------------------------------------------- new rows
    def row_checks(self, configuration: TableConfiguration) -> tuple[RowCheck, ...]:
        """Return the constraints that the feature sets for new rows."""
        return ()

    def computed_columns(self, configuration: TableConfiguration) -> tuple[ComputedColumn, ...]:
        """Return the columns whose values the feature makes the writer compute."""
        return ()

    def stores_partition_columns(self, configuration: TableConfiguration) -> bool:
        """True if new data files must hold the partition columns too, after the others."""
        return False

    # --------------------------------------------------------------------------------------------------- commits
    def finish(self, commit: ReadyCommit, base: TableState) -> ReadyCommit:
        """Complete a commit for the version after `base`, in every attempt; raise if the commit is not allowed.

        Called for supported features, in the order of requirements; returns the argument or a copy.
        """
        return commit

    def can_rebase(self, draft: CommitDraft) -> bool:
        """True if a draft that was prepared before the feature was enabled may be committed after that.

        That is safe if the feature does not constrain prepared files, or if `finish` adds what it requires.
        """
        return False


def any_field_has(configuration: TableConfiguration, *keys: str) -> bool:
    """True if a column, including nested ones, has one of these keys in its field metadata."""
    return any(key in field.metadata for field in fields_in(configuration.schema) for key in keys)
