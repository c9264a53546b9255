"""What a commit means to a stream: its files are read, or it is skipped, or the stream cannot go on."""

from __future__ import annotations

from pyspark_delta.changes.configuration_ranges import Declared
from pyspark_delta.errors import ChangedRowsError
from pyspark_delta.features.support import check_readable
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.streaming.commits import StreamCommit
from pyspark_delta.streaming.offset import different_table
from pyspark_delta.streaming.options import StreamOptions
from pyspark_delta.streaming.schema_changes import check_schema


def reads_files(
    commit: StreamCommit, configuration: TableConfiguration, schema_version: int, options: StreamOptions
) -> bool:
    """Return True if a stream returns the rows of the files of a commit.

    `configuration` has the schema of the stream, which the table had at `schema_version`.

    Raises ChangedRowsError if the commit deletes or updates rows and the options do not allow that, StreamSchemaError
    if the schema changed, InvalidOffsetError if the table was replaced, and UnsupportedFeatureError for a protocol that
    cannot be read.
    """
    check_configuration(commit.declared, configuration, schema_version)
    if not commit.removes:
        return True
    if options.skip_change_commits:
        return False
    updates = commit.num_files > 0
    if not (options.allows_changes if updates else options.allows_deletes):
        raise _changed_rows(commit, configuration.location, updates=updates)
    return True


def check_configuration(commit: Declared, configuration: TableConfiguration, schema_version: int) -> None:
    """Check that a stream can go on after the metadata and protocol of a commit. Errors as in `reads_files`."""
    if commit.protocol is None and commit.metadata is None:
        return
    metadata = commit.metadata or configuration.metadata
    changed = TableConfiguration(commit.protocol or configuration.protocol, metadata, configuration.location)
    if metadata.id != configuration.metadata.id:
        raise different_table(configuration.metadata.id, metadata.id, configuration.location)
    check_readable(changed, configuration.location)
    if commit.metadata is not None:
        check_schema(configuration, changed, commit.version, later=commit.version > schema_version)


def _changed_rows(commit: StreamCommit, location: str, *, updates: bool) -> ChangedRowsError:
    what = "rewrote" if updates else "deleted"
    shown = f" ({commit.operation})" if commit.operation else ""
    ways = (
        "To skip the commits that change rows, set the option skipChangeCommits to true; to read every rewritten file "
        "again, with unchanged rows, set ignoreChanges"
        if updates
        else "To ignore deleted rows, set the option ignoreDeletes to true"
    )
    feed = "to read changes as rows of their own, enable the change data feed of the table and set readChangeFeed"
    return ChangedRowsError(
        f"Version {commit.version} of '{location}'{shown} {what} rows that the stream has returned or will not return. "
        f"{ways}; {feed}.",
        error_class="DELTA_SOURCE_TABLE_IGNORE_CHANGES" if updates else "DELTA_SOURCE_IGNORE_DELETE",
        version=commit.version,
        operation=commit.operation,
        location=location,
    )
