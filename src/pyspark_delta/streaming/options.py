"""The options of a stream that reads a table, with delta-spark's names, parsed once for every way to read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from pyspark_delta.errors import InvalidOptionError
from pyspark_delta.protocol.property_values import parse_size
from pyspark_delta.schema.timestamps import parse_timestamp
from pyspark_delta.storage import normalize_location
from pyspark_delta.streaming.admission import Limits

LATEST = "latest"
DEFAULT_MAX_FILES = 1000
_MAX_FILES, _MAX_BYTES = "maxFilesPerTrigger", "maxBytesPerTrigger"
_START_VERSION, _START_TIMESTAMP = "startingVersion", "startingTimestamp"
_IGNORE_DELETES, _IGNORE_CHANGES = "ignoreDeletes", "ignoreChanges"
_IGNORE_FILE_DELETION, _SKIP_CHANGE_COMMITS = "ignoreFileDeletion", "skipChangeCommits"
_CHANGE_FEED = ("readChangeFeed", "readChangeData")
_WHERE, _SKIP_COMMITS = "where", "skipCommitsWhere"  # ours
_CHANGES = "changes"  # ours
_FAIL_ON_DATA_LOSS = "failOnDataLoss"
_ON_DATA_LOSS = "onDataLoss"  # ours
_EVENT_TIME_ORDER = "withEventTimeOrder"
SCHEMA_LOCATION = ("schemaTrackingLocation", "schemaLocation")
_TRACKING_ID = "streamingSourceTrackingId"
_ALLOW_RENAME, _ALLOW_DROP = "allowSourceColumnRename", "allowSourceColumnDrop"
_ALLOW_TYPE_CHANGE = "allowSourceColumnTypeChange"

STREAM_OPTIONS = (
    _MAX_FILES,
    _MAX_BYTES,
    _START_VERSION,
    _START_TIMESTAMP,
    _IGNORE_DELETES,
    _IGNORE_CHANGES,
    _IGNORE_FILE_DELETION,
    _SKIP_CHANGE_COMMITS,
    "excludeRegex",
    _FAIL_ON_DATA_LOSS,
    _ON_DATA_LOSS,
    *_CHANGE_FEED,
    _CHANGES,
    _WHERE,
    _SKIP_COMMITS,
    *SCHEMA_LOCATION,
    _TRACKING_ID,
    _ALLOW_RENAME,
    _ALLOW_DROP,
    _ALLOW_TYPE_CHANGE,
    _EVENT_TIME_ORDER,
)
"""The names of all options of a stream."""


class OnDataLoss(StrEnum):
    """What a stream does when log clean-up has removed versions that it has not read: fail, skip them, or return the
    rows that were added since and are still there.
    """

    FAIL = "fail"
    SKIP = "skip"
    SNAPSHOT_DIFF = "snapshotDiff"


class NewRows(StrEnum):
    """Which rows of a commit that changes rows are new: those it inserted, or also those it updated."""

    INSERTS = "inserts"
    UPSERTS = "upserts"


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """What a stream reads, and in which portions.

    `limits` apply to each batch. At most one of `starting_version` (a version, or "latest" for later changes only) and
    `starting_timestamp` (milliseconds since the epoch) is set; without both, the stream begins with all rows of the
    latest version. `exclude` skips files whose path in the log it matches. `changes` reads the change data feed;
    `new_rows` reads the new rows of commits that change rows. `on_data_loss` applies to versions that log clean-up has
    removed.

    `where` is a condition in Spark's SQL on the rows: files that it rules out are not returned, and cost nothing of the
    limits. The rows of other files are not filtered. `skip_commits_where` is a condition on commits (`CommitFilter`):
    those that meet it return nothing. `time_zone` is that of texts without a zone.

    `schema_location` is the directory of the schema log, with `tracking_id` if several sources share it.
    `allow_rename`, `allow_drop` and `allow_type_change` are the version, or "always", for which the user agrees to such
    changes of the schema.
    """

    limits: Limits = field(default_factory=lambda: Limits(files=DEFAULT_MAX_FILES))
    starting_version: int | str | None = None
    starting_timestamp: int | None = None
    ignore_deletes: bool = False
    ignore_changes: bool = False
    skip_change_commits: bool = False
    exclude: re.Pattern[str] | None = None
    on_data_loss: OnDataLoss = OnDataLoss.FAIL
    changes: bool = False
    new_rows: NewRows | None = None
    where: str | None = None
    skip_commits_where: str | None = None
    time_zone: str = "UTC"
    schema_location: str | None = None
    tracking_id: str | None = None
    allow_rename: str | None = None
    allow_drop: str | None = None
    allow_type_change: str | None = None

    def __post_init__(self) -> None:
        check_start(self.starting_version, self.starting_timestamp)
        if self.new_rows is not None and (self.changes or self.allows_changes):
            of_commits = _IGNORE_CHANGES if self.ignore_changes else _SKIP_CHANGE_COMMITS
            other = _CHANGE_FEED[0] if self.changes else of_commits
            raise _contradiction(_CHANGES, other, "both say what a stream returns of commits that change rows")
        if self.on_data_loss is OnDataLoss.SNAPSHOT_DIFF and (self.changes or self.new_rows is NewRows.INSERTS):
            other = _CHANGE_FEED[0] if self.changes else f"{_CHANGES}={self.new_rows}"
            why = "the difference of snapshots does not tell how a row came to be"
            raise _contradiction(f"{_ON_DATA_LOSS}={self.on_data_loss}", other, why)

    @property
    def is_read_in_one_way(self) -> bool:
        """True if all files of a stream are read alike, and return all of their rows."""
        return not self.changes and self.new_rows is None and self.on_data_loss is not OnDataLoss.SNAPSHOT_DIFF

    @property
    def allows_deletes(self) -> bool:
        """True if commits that only remove files return no rows, in place of an error."""
        return self.ignore_deletes or self.allows_changes

    @property
    def allows_changes(self) -> bool:
        """True if commits that rewrite rows are no error."""
        return self.ignore_changes or self.skip_change_commits

    @classmethod
    def parse(cls, given: Mapping[str, str], *, time_zone: str = "UTC") -> StreamOptions:
        """Parse the options of a stream, whose names are case-insensitive; other options are ignored.

        `time_zone` is that of times without a zone. Raises InvalidOptionError.
        """
        options = _Given({name.lower(): str(value) for name, value in given.items() if value is not None})
        if options.flag(_EVENT_TIME_ORDER):
            raise InvalidOptionError(
                f"The option '{_EVENT_TIME_ORDER}' is not supported: the initial snapshot is read by modification time "
                "of its files. Leave the option out, and choose the watermark with a delay that covers the table.",
                option=_EVENT_TIME_ORDER,
            )
        timestamp = options.text(_START_TIMESTAMP)
        return cls(
            limits=options.limits(),
            starting_version=options.starting_version(),
            starting_timestamp=None if timestamp is None else parse_timestamp(timestamp, time_zone=time_zone),
            ignore_deletes=options.flag(_IGNORE_DELETES),
            ignore_changes=options.flag(_IGNORE_CHANGES) or options.flag(_IGNORE_FILE_DELETION),
            skip_change_commits=options.flag(_SKIP_CHANGE_COMMITS),
            exclude=options.pattern("excludeRegex"),
            on_data_loss=options.on_data_loss(),
            changes=any(options.flag(name) for name in _CHANGE_FEED),
            new_rows=options.new_rows(),
            where=options.text(_WHERE),
            skip_commits_where=options.text(_SKIP_COMMITS),
            time_zone=time_zone,
            schema_location=options.location(SCHEMA_LOCATION),
            tracking_id=options.text(_TRACKING_ID),
            allow_rename=options.text(_ALLOW_RENAME),
            allow_drop=options.text(_ALLOW_DROP),
            allow_type_change=options.text(_ALLOW_TYPE_CHANGE),
        )


def check_start(version: int | str | None, timestamp: int | None) -> None:
    """Raise InvalidOptionError for a start that is given twice, or that is not a version."""
    if version is not None and timestamp is not None:
        raise InvalidOptionError(
            f"Give either {_START_VERSION} or {_START_TIMESTAMP}, not both.",
            error_class="DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET",
            sqlstate="42613",
        )
    is_number = isinstance(version, int) and not isinstance(version, bool) and version >= 0
    if version not in (None, LATEST) and not is_number:
        raise InvalidOptionError(
            f"The option '{_START_VERSION}' is a version number or '{LATEST}', found {version!r}.",
            option=_START_VERSION,
        )


def _contradiction(option: str, other: str, why: str) -> InvalidOptionError:
    return InvalidOptionError(f"The options '{option}' and '{other}' exclude each other: {why}.", option=option)


def parse_on_data_loss(text: str) -> OnDataLoss:
    """Return what an option names, in any case. Raises InvalidOptionError."""
    found = next((one for one in OnDataLoss if one.value.lower() == text.strip().lower()), None)
    if found is None:
        raise InvalidOptionError(
            f"The option '{_ON_DATA_LOSS}' is 'fail', 'skip' (go on with the versions that are left) or 'snapshotDiff' "
            f"(return the rows that were added since), found '{text}'.",
            option=_ON_DATA_LOSS,
        )
    return found


def parse_new_rows(text: str) -> NewRows:
    """Return the kind of new rows that an option names. Raises InvalidOptionError."""
    try:
        return NewRows(text.strip().lower())
    except ValueError:
        raise InvalidOptionError(
            f"The option '{_CHANGES}' is 'inserts' (new rows of changed commits that were inserted) or 'upserts' (rows "
            f"that were inserted or updated), found '{text}'. For deleted rows too, set {_CHANGE_FEED[0]} to true.",
            option=_CHANGES,
        ) from None


class _Given:
    """Options by name in lower case."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

    def text(self, name: str) -> str | None:
        return self._values.get(name.lower())

    def flag(self, name: str, *, default: bool = False) -> bool:
        text = self.text(name)
        if text is None:
            return default
        if text.strip().lower() not in ("true", "false"):
            raise InvalidOptionError(f"The option '{name}' is true or false, found '{text}'.", option=name)
        return text.strip().lower() == "true"

    def on_data_loss(self) -> OnDataLoss:
        text, fails = self.text(_ON_DATA_LOSS), self.flag(_FAIL_ON_DATA_LOSS, default=True)
        if text is None:
            return OnDataLoss.FAIL if fails else OnDataLoss.SKIP
        found = parse_on_data_loss(text)
        if not fails and found is not OnDataLoss.SKIP:
            why = "set one of them"
            raise _contradiction(f"{_ON_DATA_LOSS}={found}", f"{_FAIL_ON_DATA_LOSS}=false", why)
        return found

    def new_rows(self) -> NewRows | None:
        text = self.text(_CHANGES)
        return None if text is None else parse_new_rows(text)

    def location(self, names: Sequence[str]) -> str | None:
        text = next((text for name in names if (text := self.text(name)) is not None), None)
        return None if text is None else normalize_location(text)

    def limits(self) -> Limits:
        files, size = self._positive(_MAX_FILES), self._size(_MAX_BYTES)
        return Limits(files=DEFAULT_MAX_FILES) if files is None and size is None else Limits(files, size)

    def starting_version(self) -> int | str | None:
        text = self.text(_START_VERSION)
        if text is None:
            return None
        if text.strip().lower() == LATEST:
            return LATEST
        return int(text) if re.fullmatch(r"\s*\d+\s*", text, re.ASCII) else text

    def pattern(self, name: str) -> re.Pattern[str] | None:
        text = self.text(name)
        if text is None:
            return None
        try:
            return re.compile(text)
        except re.error as error:
            raise InvalidOptionError(
                f"The option '{name}' is not a regular expression: {error}. Found: {text}",
                error_class="DELTA_REGEX_OPT_SYNTAX_ERROR",
                sqlstate="2201B",
                option=name,
            ) from None

    def _positive(self, name: str) -> int | None:
        text = self.text(name)
        if text is None:
            return None
        if re.fullmatch(r"\s*\d+\s*", text, re.ASCII) is None or int(text) == 0:
            raise InvalidOptionError(
                f"The option '{name}' is a positive integer, found '{text}'.",
                option=name,
            )
        return int(text)

    def _size(self, name: str) -> int | None:
        text = self.text(name)
        if text is None:
            return None
        try:
            size = parse_size(text)
        except ValueError as error:
            raise InvalidOptionError(f"The option '{name}': {error}.", option=name) from None
        if size == 0:
            raise InvalidOptionError(f"The option '{name}' is a positive size in bytes, found '{text}'.", option=name)
        return size
