"""The options of `spark.readStream.format("delta")`, with delta-spark's names, parsed once for every way to stream.

Every option must be known: one that is ignored would change the rows of every batch, and nobody looks at them.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark_delta.errors import InvalidOptionError
from pyspark_delta.protocol.catalog_table import CatalogTable
from pyspark_delta.snapshot.access import PUBLISHED_ONLY
from pyspark_delta.snapshot.path_suffix import split_suffix
from pyspark_delta.spark.frames.read_options import (
    MISSING_PATH,
    chosen_storage_options,
    is_storage_key,
    local_time_zone,
    unpacked,
)
from pyspark_delta.streaming.options import SCHEMA_LOCATION, STREAM_OPTIONS, StreamOptions

_TIME_ZONE, _PUBLISHED_ONLY = "timeZone", "publishedOnly"
_KNOWN = {name.lower(): name for name in ("path", _TIME_ZONE, _PUBLISHED_ONLY, *STREAM_OPTIONS)}
_OF_WRITES = "it is an option of writeStream; give it there"
_WITH_DATAFRAME = "select {} in the DataFrame, as in spark.readStream.format('delta').load(path).{}"
_NO_END = "a stream has no end. To read the changes of a range of versions, use spark.read"
_ELSEWHERE = {
    name.lower(): advice
    for names, advice in (
        (("endingVersion", "endingTimestamp"), _NO_END),
        (("columns",), _WITH_DATAFRAME.format("columns", "select('id')")),
        (("includeRowTracking",), _WITH_DATAFRAME.format("the ids", "select('*', '_metadata.row_id')")),
        (("checkpointLocation", "queryName", "mergeSchema", "overwriteSchema", "txnAppId", "txnVersion"), _OF_WRITES),
    )
    for name in names
}
"""Options that do not belong to a stream, and what to do instead."""
_OF_OTHER_READS = {"readchangefeed", "readchangedata", "startingversion", "startingtimestamp", "where"}
_TIME_TRAVEL = ("versionasof", "timestampasof")


@dataclass(frozen=True, slots=True)
class StreamRead:
    """The table that is read as a stream, and the options of the stream. `storage_options` keep their names.

    `time_zone` applies to times and partition values without a zone. `catalog_table` is the table in its catalog; no
    option sets it.
    """

    location: str
    options: StreamOptions
    storage_options: Mapping[str, str] = field(repr=False, default_factory=dict, hash=False)
    time_zone: str = "UTC"
    catalog_table: CatalogTable | None = None

    @classmethod
    def parse(cls, path: str | None, given: Mapping[str, str], *, time_zone: str | None = None) -> StreamRead:
        """Parse a path and Spark's options, whose names are case-insensitive. `path` overrides the option `path`.

        Times without a zone are in the zone of the option `timeZone`, else of `time_zone`, else of this machine. Raises
        InvalidOptionError, also for an unknown option.
        """
        options = unpacked(given)
        _check_names({folded: name for folded, (name, _) in options.items()})
        values = {_KNOWN[folded]: value for folded, (_, value) in options.items() if folded in _KNOWN}
        text = path or values.get("path")
        if not text:
            raise InvalidOptionError(
                f"{MISSING_PATH}, as in spark.readStream.format('delta').load('/path/to/table'), or the name of a "
                "table, as in spark.readStream.table('main.sales.orders').",
                error_class="DELTA_MISSING_PATH",
            )
        storage_options = chosen_storage_options(options)
        if values.get(_PUBLISHED_ONLY, "").strip().lower() == "true":
            storage_options[PUBLISHED_ONLY] = "true"
        zone = values.get(_TIME_ZONE) or time_zone or local_time_zone()
        location, version, time = split_suffix(text, storage_options, zone)
        if (version, time) != (None, None):
            raise _time_travel(f"The path '{text}'")
        return cls(location, StreamOptions.parse(values, time_zone=zone), storage_options, zone)


def has_stream_options(given: Mapping[str, str], *, only: bool = False) -> bool:
    """Return True if an option is one of streams; with `only`, one that other reads do not have."""
    folded = {name.lower() for name in STREAM_OPTIONS} - (_OF_OTHER_READS if only else set())
    return any(name.lower() in folded for name in given)


def tracks_schema(given: Mapping[str, str]) -> bool:
    """Return True if an option asks for a schema log, from which a stream takes its columns."""
    folded = {name.lower() for name in SCHEMA_LOCATION}
    return any(name.lower() in folded for name in given)


def _check_names(names: Mapping[str, str]) -> None:
    """Raise InvalidOptionError for an option that is unknown or belongs elsewhere."""
    for folded, name in names.items():
        if folded in _TIME_TRAVEL:
            raise _time_travel(f"The option '{name}'")
        if folded in _ELSEWHERE:
            raise InvalidOptionError(f"A stream does not take the option '{name}': {_ELSEWHERE[folded]}.", option=name)
        if folded not in _KNOWN and not is_storage_key(folded):
            near = difflib.get_close_matches(folded, _KNOWN, n=1, cutoff=0.75)
            hint = f"did you mean '{_KNOWN[near[0]]}'?" if near else f"the options are {', '.join(_KNOWN.values())}."
            raise InvalidOptionError(f"A stream has no option '{name}'; {hint}", option=name)


def _time_travel(what: str) -> InvalidOptionError:
    return InvalidOptionError(
        f"{what} names a version, but a stream reads the table as it grows. To begin with the changes of a version, "
        "use startingVersion or startingTimestamp; to read one version, use spark.read.",
        error_class="DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS",
        sqlstate="0AKDC",
    )
