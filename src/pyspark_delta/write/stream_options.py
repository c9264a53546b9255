"""The options of a stream that is written to a table. An option that would have no effect is an error."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from pyspark_delta.errors import InvalidOperationError, InvalidOptionError
from pyspark_delta.schema.types import VOID, ArrayType, DataType, MapType, StructType
from pyspark_delta.write.options import KNOWN, WriteOptions, is_free_option, parse_names, parse_options

SPARK_OPTIONS = ("checkpointLocation", "queryName")
"""Options of Spark itself."""

KEYS = "keys"
"""The option with the key of output mode `update`."""

_REPLACES = "a stream appends rows, or in outputMode('complete') replaces all rows. Use foreachBatch for other changes."
_TRANSACTION = "a stream records its own id and the number of the batch. Leave it out."
_MISPLACED = {
    **dict.fromkeys(("replaceWhere", "replaceUsing", "replaceOn", "targetAlias", "partitionOverwriteMode"), _REPLACES),
    **dict.fromkeys(("txnAppId", "txnVersion"), _TRANSACTION),
    "dataChange": "a stream adds rows. Leave it out.",
}
_OF_SOURCES = (
    *("maxFilesPerTrigger", "maxBytesPerTrigger", "startingVersion", "startingTimestamp", "endingVersion"),
    *("endingTimestamp", "ignoreDeletes", "ignoreChanges", "ignoreFileDeletion", "skipChangeCommits", "excludeRegex"),
    *("failOnDataLoss", "readChangeFeed", "readChangeData", "schemaTrackingLocation", "schemaLocation"),
    *("versionAsOf", "timestampAsOf"),
)


def parse_stream_options(options: Mapping[str, object], *, complete: bool) -> WriteOptions:
    """Check the options of a stream; those of Spark are left out of the result.

    Raises InvalidOptionError for an unknown option, one that has no meaning for a stream, and an illegal value.
    """
    given = {name: value for name, value in options.items() if value is not None}
    _check_names(given)
    others = {name.lower() for name in (*SPARK_OPTIONS, KEYS)}
    parsed = parse_options({name: value for name, value in given.items() if name.lower() not in others})
    if parsed.overwrite_schema and not complete:
        raise InvalidOptionError(
            "The option 'overwriteSchema' needs outputMode('complete'): a batch in append mode keeps the rows of the "
            "table, with their schema. Use mergeSchema to add columns.",
            option="overwriteSchema",
        )
    return parsed


def parse_keys(options: Mapping[str, object], output_mode: str) -> tuple[str, ...] | None:
    """Return the columns of the key of a stream in output mode `update`; None in the other modes.

    Raises InvalidOptionError for a key in another mode, and InvalidOperationError for the mode without a key.
    """
    found = next((str(value) for name, value in options.items() if name.lower() == KEYS and value is not None), None)
    if output_mode.lower() != "update":
        if found is not None:
            raise InvalidOptionError(
                f"The option '{KEYS}' needs outputMode('update'), in which each batch updates and inserts rows. "
                "Nothing was started.",
                option=KEYS,
            )
        return None
    if found is None:
        raise InvalidOperationError(
            "Data source delta does not support Update output mode without a key. Nothing was started. Name the "
            "columns that identify a row, as in option('keys', 'id'): each batch then updates and inserts rows. Or "
            "write the table in foreachBatch, with streaming_batch.",
            error_class="DELTA_UNSUPPORTED_OUTPUT_MODE",
            sqlstate="0AKDC",
        )
    return parse_names(found, KEYS)


def _check_names(given: Mapping[str, object]) -> None:
    misplaced = {name.lower(): (name, reason) for name, reason in _MISPLACED.items()}
    sources = {name.lower() for name in _OF_SOURCES}
    known = {name.lower(): name for name in (*KNOWN, *SPARK_OPTIONS, KEYS) if name.lower() not in misplaced}
    for name in given:
        folded = name.lower()
        if folded in misplaced:
            raise InvalidOptionError(
                f"The option '{name}' is not one of writeStream: {misplaced[folded][1]}", option=name
            )
        if folded in sources:
            raise InvalidOptionError(
                f"The option '{name}' is one of the source, not of writeStream. Give it to readStream.", option=name
            )
        if folded not in known and not is_free_option(folded):
            near = difflib.get_close_matches(folded, known, n=1)
            hint = f"Did you mean '{known[near[0]]}'?" if near else "Leave it out."
            raise InvalidOptionError(
                f"The option '{name}' of writeStream is not known. Nothing was started. {hint}", option=name
            )


def check_no_void(schema: StructType) -> None:
    """Raise InvalidOperationError if a column of a stream, or a part of one, has the type void."""
    found = next((field.name for field in schema if _has_void(field.type)), None)
    if found is not None:
        raise InvalidOperationError(
            f"Delta does not accept data types of void for streaming writes, found the column '{found}'. Nothing was "
            f"written. Cast it to the type of the table, as in CAST({found} AS STRING).",
            error_class="DELTA_NULL_SCHEMA_IN_STREAMING_WRITE",
            sqlstate="42P18",
            column=found,
        )


def _has_void(type_: DataType) -> bool:
    match type_:
        case StructType():
            return any(_has_void(field.type) for field in type_)
        case ArrayType():
            return _has_void(type_.element_type)
        case MapType():
            return _has_void(type_.key_type) or _has_void(type_.value_type)
        case _:
            return type_ == VOID
