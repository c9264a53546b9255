"""The read options of `format("delta")`, with delta-spark's names, parsed once for every way to read."""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark_delta.changes.versions import ChangeRequest
from pyspark_delta.errors import InvalidOptionError
from pyspark_delta.protocol.catalog_table import CatalogTable
from pyspark_delta.schema.timestamps import parse_timestamp
from pyspark_delta.snapshot.access import PUBLISHED_ONLY
from pyspark_delta.snapshot.path_suffix import has_log, split_suffix

MISSING_PATH = "Reading format 'delta' needs a path"
OUT_OF_RANGE = "changeDataFeed.timestampOutOfRange.enabled"
_KNOWN = {
    name.lower(): name
    for name in (
        "path",
        "paths",
        "versionAsOf",
        "timestampAsOf",
        "columns",
        "where",
        "timeZone",
        "includeRowTracking",
        "publishedOnly",
        "readChangeFeed",
        "readChangeData",
        "startingVersion",
        "startingTimestamp",
        "endingVersion",
        "endingTimestamp",
        OUT_OF_RANGE,
    )
}
_SELECTING = frozenset(_KNOWN) - {"path", "timezone", "publishedonly", OUT_OF_RANGE.lower()}
_CHANGE_RANGE = ("startingVersion", "startingTimestamp", "endingVersion", "endingTimestamp")
# Storage options of Hadoop have dots in their names, those of object stores underscores. Most others have neither.
_STORAGE_KEY = re.compile(r"(?!spark\.|parquet\.).*[._].*")
_STORAGE_WORDS = frozenset(("region", "endpoint", "token", "bucket", "proxy_url", "timeout", "skip_signature"))
_PACKED = "pyspark_delta.secretStorageOptions"


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options of a read.

    At most one of `version` and `timestamp_ms` (milliseconds since the epoch) is set. `columns` are logical names in
    the requested order; `where` is SQL text; `row_tracking` adds `_row_id` and `_row_commit_version`. `storage_options`
    keep their names. `time_zone` applies to times without a zone. With `changes`, the change data feed is read instead
    of one version. `catalog_table` is the table in its catalog; no option sets it.
    """

    location: str
    version: int | None = None
    timestamp_ms: int | None = None
    storage_options: Mapping[str, str] = field(repr=False, default_factory=dict, hash=False)
    columns: tuple[str, ...] | None = None
    where: str | None = None
    row_tracking: bool = False
    time_zone: str = field(default="UTC", compare=False)
    changes: ChangeRequest | None = None
    catalog_table: CatalogTable | None = None

    @classmethod
    def parse(
        cls, path: str | None, options: Mapping[str, str] | None = None, *, time_zone: str | None = None
    ) -> ReadOptions:
        """Parse a path and Spark's options, whose keys are case-insensitive.

        `path` overrides an option `path`. Timestamps without a zone are in the zone of the option `timeZone`, else of
        `time_zone`, else of this machine. Raises InvalidOptionError.
        """
        given = unpacked(options or {})
        _refuse_unusable(given)
        text = path or _value(given, "path")
        if not text:
            raise InvalidOptionError(
                f"{MISSING_PATH}, as in spark.read.format('delta').load('/path/to/table'). Spark's catalog does not "
                "pass the location of a table to a data source. Instead of a table, create a view: "
                "CREATE TEMPORARY VIEW v USING delta OPTIONS (path '/path/to/table').",
                error_class="DELTA_MISSING_PATH",
            )
        storage_options = chosen_storage_options(given)
        if _flag(given, "publishedOnly"):
            storage_options[PUBLISHED_ONLY] = "true"
        zone = _value(given, "timezone") or time_zone or local_time_zone()
        version, timestamp_ms = _time_travel(given, zone)
        location, at_version, at_time = split_suffix(text, storage_options, zone)
        if (at_version, at_time) != (None, None):
            if (version, timestamp_ms) != (None, None):
                raise InvalidOptionError(f"The path '{text}' names a version, and so does an option; give one of them.")
            version, timestamp_ms = at_version, at_time
        changes = _change_request(given, zone)
        if changes is not None and (version, timestamp_ms) != (None, None):
            raise InvalidOptionError(
                "The change data feed is read for a range of versions, but this read names one version to travel to. "
                "Use startingVersion and endingVersion instead."
            )
        where = _value(given, "where")
        columns = _value(given, "columns")
        return cls(
            location=location,
            version=version,
            timestamp_ms=timestamp_ms,
            storage_options=storage_options,
            columns=None if columns is None else parse_columns(columns),
            where=where.strip() or None if where is not None else None,
            row_tracking=_flag(given, "includeRowTracking"),
            time_zone=zone,
            changes=changes,
        )


def refuse_read_options(options: Mapping[str, str]) -> None:
    """Raise InvalidOptionError if the options of a write select what is read.

    Spark passes the options of a view to an INSERT into the view. The write would ignore them, and replace rows that
    the view does not show.
    """
    given = {key.lower(): (key, value) for key, value in options.items() if value is not None}
    selecting = [key for folded, (key, _) in given.items() if folded in _SELECTING]
    if selecting:
        raise InvalidOptionError(
            f"The option '{selecting[0]}' selects what is read, but a write goes to the latest version of the whole "
            f"table. Nothing was written to '{_value(given, 'path')}'. Leave the option out; if the target is a view, "
            'write to the path of its table, as in df.write.format("delta").mode("append").save("/path/to/table").',
            error_class="DELTA_CANNOT_WRITE_INTO_VIEW",
            option=selecting[0],
        )
    path = _value(given, "path") or ""
    location, version, time = split_suffix(path, chosen_storage_options(given), "UTC")
    if (version, time) != (None, None) and has_log(location, chosen_storage_options(given)):
        raise InvalidOptionError(
            f"The path '{path}' names an old version of the table '{location}', but a write goes to the latest one. "
            "Nothing was written. Remove the part of the path that begins with '@'.",
            error_class="DELTA_CANNOT_WRITE_INTO_VIEW",
        )


def packed_options(storage_options: Mapping[str, str]) -> dict[str, str]:
    """Return storage options as one option of the data source, which Spark redacts: its name contains `secret`.

    Spark shows the options of a data source in plans and in its event log. It would not redact most storage options.
    """
    return {_PACKED: json.dumps(dict(storage_options))} if storage_options else {}


def unpacked(options: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return name and value of each option by its name in lower case; unpack the result of `packed_options`."""
    given = {key.lower(): (key, value) for key, value in options.items() if value is not None}
    _, packed = given.pop(_PACKED.lower(), ("", "{}"))
    return {**{key.lower(): (key, value) for key, value in json.loads(packed).items()}, **given}


def chosen_storage_options(given: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """Return the storage options among the given options."""
    return {key: value for folded, (key, value) in given.items() if folded not in _KNOWN and is_storage_key(folded)}


def parse_columns(text: str) -> tuple[str, ...]:
    """Parse column names separated by commas; a name with a comma or a backtick is in backticks.

    Raises InvalidOptionError.
    """
    names = re.findall(r"\s*(`(?:[^`]|``)*`|[^,`]*)\s*(?:,|$)", text)
    if ",".join(names).replace(" ", "") != text.replace(" ", "") + ",":
        raise InvalidOptionError(f"The option 'columns' is a list such as \"a, b, `c,d`\", found '{text}'.")
    return tuple(_unquote(name.strip()) for name in names[:-1])


def local_time_zone() -> str:
    """Return the name of this machine's time zone, which is also Spark's default; UTC if it has no name."""
    name = os.environ.get("TZ", "").lstrip(":")
    if name and not name.startswith("/"):
        return name
    link = str(Path(name or "/etc/localtime").resolve())
    return link.partition("zoneinfo/")[2] or "UTC"


def _unquote(name: str) -> str:
    if name.startswith("`"):
        name = name[1:-1].replace("``", "`")
    if not name:
        raise InvalidOptionError("The option 'columns' contains an empty name.")
    return name


def _value(given: Mapping[str, tuple[str, str]], name: str) -> str | None:
    return given[name][1] if name in given else None


def _flag(given: Mapping[str, tuple[str, str]], name: str) -> bool:
    text = _value(given, name.lower())
    if text is None:
        return False
    if text.strip().lower() not in ("true", "false"):
        raise InvalidOptionError(f"The option '{name}' is true or false, found '{text}'.", option=name)
    return text.strip().lower() == "true"


def _refuse_unusable(given: Mapping[str, tuple[str, str]]) -> None:
    """Raise InvalidOptionError for more than one path, and for an option with nearly the name of a known one.

    Other unknown options are ignored. A misspelled one would change the rows.
    """
    if "paths" in given:
        raise InvalidOptionError(
            "A Delta table is read from one path, but several were given. Read each with load(path), and union them."
        )
    for folded, (key, _) in given.items():
        if folded in _KNOWN or is_storage_key(folded):
            continue
        near = difflib.get_close_matches(folded, _KNOWN, n=1, cutoff=0.85)
        if near:
            raise InvalidOptionError(f"There is no option '{key}'; did you mean '{_KNOWN[near[0]]}'?", option=key)


def is_storage_key(folded: str) -> bool:
    return folded in _STORAGE_WORDS or _STORAGE_KEY.fullmatch(folded) is not None


def _change_request(given: Mapping[str, tuple[str, str]], zone: str) -> ChangeRequest | None:
    """Return the changes to read; None if the rows of the table are read."""
    if not (_flag(given, "readChangeFeed") or _flag(given, "readChangeData")):
        for name in _CHANGE_RANGE:
            if name.lower() in given:
                raise InvalidOptionError(
                    f"The option '{name}' belongs to the change data feed. To read the feed, add "
                    ".option('readChangeFeed', 'true'). To read one version, use versionAsOf.",
                    option=name,
                )
        return None
    if _flag(given, "includeRowTracking"):
        raise InvalidOptionError(
            "Change data files have no row ids and no row commit versions. To read the change data feed, leave out "
            "'includeRowTracking'.",
            option="includeRowTracking",
        )
    return ChangeRequest(
        starting_version=_version(given, "startingVersion"),
        starting_timestamp=_timestamp(given, "startingTimestamp", zone),
        ending_version=_version(given, "endingVersion"),
        ending_timestamp=_timestamp(given, "endingTimestamp", zone),
        allow_out_of_range=_flag(given, OUT_OF_RANGE),
    )


def _time_travel(given: Mapping[str, tuple[str, str]], zone: str) -> tuple[int | None, int | None]:
    version, timestamp = _version(given, "versionAsOf"), _timestamp(given, "timestampAsOf", zone)
    if version is not None and timestamp is not None:
        raise InvalidOptionError("Give either versionAsOf or timestampAsOf, not both.")
    return version, timestamp


def _version(given: Mapping[str, tuple[str, str]], name: str) -> int | None:
    text = _value(given, name.lower())
    if text is not None and not re.fullmatch(r"\d{1,19}", text.strip(), re.ASCII):
        raise InvalidOptionError(f"The option '{name}' is a whole number from 0 on, found '{text}'.")
    return None if text is None else int(text)


def _timestamp(given: Mapping[str, tuple[str, str]], name: str, zone: str) -> int | None:
    text = _value(given, name.lower())
    return None if text is None else parse_timestamp(text, time_zone=zone)
