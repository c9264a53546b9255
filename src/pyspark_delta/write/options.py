"""The options of a DataFrame write, with delta-spark's names, which are case-insensitive."""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

import orjson

from pyspark_delta.actions.model import SetTransaction
from pyspark_delta.data.writer import COMPRESSIONS
from pyspark_delta.errors import DeltaWarning, InvalidOptionError
from pyspark_delta.expressions.literals import zone_of
from pyspark_delta.protocol.catalog_table import CatalogTable
from pyspark_delta.schema.json import check_text
from pyspark_delta.storage import ACCESS_PREFIX
from pyspark_delta.transaction.write_plan import FileOptions

MODES = ("append", "overwrite", "error", "errorifexists", "ignore")

KNOWN = (
    "mergeSchema",
    "overwriteSchema",
    "replaceWhere",
    "replaceUsing",
    "replaceOn",
    "targetAlias",
    "partitionOverwriteMode",
    "partitionBy",
    "clusterBy",
    "dataChange",
    "optimizeWrite",
    "userMetadata",
    "txnAppId",
    "txnVersion",
    "maxRecordsPerFile",
    "compression",
    "targetFileSize",
    "path",
    "writePartitionColumns",
    "timeZone",
    "parquet.writer.version",
    "spark.sql.parquet.outputTimestampType",
)
_MOST = 2**63 - 1  # the range of integers in the log
_STORAGE_PREFIXES = (
    ACCESS_PREFIX,
    "fs.",
    "dfs.",
    "spark.hadoop.fs.",
    "aws_",
    "azure_",
    "google_",
    "allow_http",
    "endpoint",
    "region",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """The checked options of a write; None leaves a choice to the session and the table.

    `properties` and `description` are those of a new table. `replace_where` and `replace_on` are SQL; `replace_using`,
    `partition_by` and `cluster_by` hold column names as given. `time_zone` applies to times without one, for writes
    that do not know the session's. `catalog_table` is the table in its catalog; no option of Spark names one.
    """

    files: FileOptions = field(default_factory=FileOptions)
    merge_schema: bool | None = None
    overwrite_schema: bool = False
    replace_where: str | None = None
    replace_using: tuple[str, ...] = ()
    replace_on: str | None = None
    target_alias: str | None = None
    dynamic_partitions: bool | None = None
    partition_by: tuple[str, ...] | None = None
    cluster_by: tuple[str, ...] = ()
    data_change: bool = True
    optimize_write: bool | None = None
    user_metadata: str | None = None
    transaction: SetTransaction | None = None
    time_zone: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)
    description: str | None = None
    catalog_table: CatalogTable | None = None


def parse_mode(mode: str | None) -> str:
    """Return the save mode: append, overwrite, error or ignore. Raises InvalidOptionError listing the valid ones."""
    text = str(mode or "error").lower()
    if text not in (*MODES, "default"):
        near = difflib.get_close_matches(text, MODES, n=1)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        raise InvalidOptionError(f"'{mode}' is not a save mode; valid modes are {', '.join(MODES)}.{hint}", mode=mode)
    return "error" if text in ("errorifexists", "default") else text


def parse_options(options: Mapping[str, object] | None) -> WriteOptions:
    """Check the options of a write.

    Raises InvalidOptionError for an illegal value and for options that exclude each other, because a write that ignored
    one would not do what was requested. An unknown option causes a DeltaWarning and is ignored.
    """
    given = {str(key).lower(): (str(key), _text(value)) for key, value in (options or {}).items() if value is not None}
    _warn_unknown(given)
    for _, text in given.values():
        check_text(text)
    parsed = WriteOptions(
        files=FileOptions(
            compression=_compression(given),
            max_records_per_file=_positive(given, "maxRecordsPerFile"),
            target_file_size=_positive(given, "targetFileSize"),
            partition_columns=_boolean(given, "writePartitionColumns"),
            storage_options={key: value for folded, (key, value) in given.items() if _is_storage(folded)},
        ),
        merge_schema=_boolean(given, "mergeSchema"),
        overwrite_schema=_boolean(given, "overwriteSchema") or False,
        replace_where=_condition(given, "replaceWhere"),
        replace_using=_names(given, "replaceUsing") or (),
        replace_on=_condition(given, "replaceOn"),
        target_alias=_get(given, "targetAlias"),
        dynamic_partitions=_overwrite_mode(given),
        partition_by=_names(given, "partitionBy"),
        cluster_by=_names(given, "clusterBy", paths=True) or (),
        data_change=_boolean(given, "dataChange") is not False,
        optimize_write=_boolean(given, "optimizeWrite"),
        user_metadata=_get(given, "userMetadata"),
        transaction=transaction_of(_get(given, "txnAppId"), _get(given, "txnVersion")),
        time_zone=_time_zone(given),
        properties={key: value for folded, (key, value) in given.items() if folded.startswith("delta.")},
    )
    _check_combination(parsed)
    return parsed


def _check_combination(options: WriteOptions) -> None:
    matching = {
        "replaceWhere": options.replace_where is not None,
        "replaceUsing": bool(options.replace_using),
        "replaceOn": options.replace_on is not None,
        "partitionOverwriteMode=dynamic": options.dynamic_partitions is True,
    }
    asked = [name for name, given in matching.items() if given]
    if len(asked) > 1 and asked != ["replaceWhere", "partitionOverwriteMode=dynamic"]:
        raise InvalidOptionError(
            f"The options {' and '.join(asked)} cannot be combined: each states which rows are replaced. "
            "Give one of them.",
            error_class="DELTA_OVERWRITE_BY_FILTER_INCOMPATIBLE_REPLACE_ON_OR_USING",
        )
    if options.target_alias is not None and options.replace_on is None:
        raise InvalidOptionError(
            "The option 'targetAlias' names the table in the condition of the option 'replaceOn', which is not given.",
            option="targetAlias",
        )
    check_layout(options)


def check_layout(options: WriteOptions) -> None:
    """Raise InvalidOptionError for a new table that is both partitioned and clustered."""
    if options.partition_by and options.cluster_by:
        raise InvalidOptionError(
            "A table can be partitioned (partitionBy) or clustered (clusterBy), not both.",
            error_class="DELTA_CLUSTER_BY_WITH_PARTITIONED_BY",
        )


_Given = Mapping[str, tuple[str, str]]


def _warn_unknown(given: _Given) -> None:
    known = {name.lower(): name for name in KNOWN}
    for folded, (name, _) in given.items():
        if folded in known or is_free_option(folded):
            continue
        near = difflib.get_close_matches(folded, known, n=1)
        hint = f" Did you mean '{known[near[0]]}'?" if near else ""
        warnings.warn(DeltaWarning(f"The write option '{name}' is not known and has no effect.{hint}"), stacklevel=4)


def is_free_option(folded: str) -> bool:
    """Return True for an option in lower case whose name is open: a table property, or one of the storage."""
    return folded.startswith("delta.") or _is_storage(folded)


def _is_storage(folded: str) -> bool:
    return folded.startswith(_STORAGE_PREFIXES)


def _get(given: _Given, name: str) -> str | None:
    found = given.get(name.lower())
    return None if found is None else found[1]


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _compression(given: _Given) -> str | None:
    value = _get(given, "compression")
    if value is not None and value.lower() not in COMPRESSIONS:
        raise InvalidOptionError(
            f"'{value}' is not a compression; valid values are {', '.join(COMPRESSIONS)}.", option="compression"
        )
    return value


def _positive(given: _Given, name: str) -> int | None:
    value = _get(given, name)
    if value is None:
        return None
    if not value.strip().isdecimal():
        raise InvalidOptionError(f"The option '{name}' is a whole number from 0 on, found '{value}'.", option=name)
    return int(value) or None


def _boolean(given: _Given, name: str) -> bool | None:
    value = _get(given, name)
    if value is None:
        return None
    if value.strip().lower() not in ("true", "false"):
        raise InvalidOptionError(f"The option '{name}' is true or false, found '{value}'.", option=name, value=value)
    return value.strip().lower() == "true"


def _condition(given: _Given, name: str) -> str | None:
    value = _get(given, name)
    if value is not None and not value.strip():
        raise InvalidOptionError(f"The option '{name}' is a condition in SQL, found an empty string.", option=name)
    return value


def _time_zone(given: _Given) -> str | None:
    value = _get(given, "timeZone")
    if value is not None:
        zone_of(value)
    return value


def _names(given: _Given, name: str, *, paths: bool = False) -> tuple[str, ...] | None:
    value = _get(given, name)
    return None if value is None else parse_names(value, name, paths=paths)


def parse_names(value: str, name: str, *, paths: bool = False) -> tuple[str, ...]:
    """Return column names from a JSON list, or from text such as "a, `b,c`"; `paths` stay quoted.

    `name` is that of the option. Raises InvalidOptionError.
    """
    if value.strip().startswith("["):
        try:
            names = orjson.loads(value)
        except orjson.JSONDecodeError:
            names = None
        if not isinstance(names, list) or not all(isinstance(item, str) for item in names):
            raise InvalidOptionError(f"The option '{name}' is a list of column names, found '{value}'.", option=name)
    else:
        found = [part.strip() for part in _NAME.findall(value) if part.strip()]
        names = found if paths else [_unquoted(part) for part in found]
    if not names and value.strip() != "[]":
        raise InvalidOptionError(f"The option '{name}' names columns, such as \"a, b\"; found none.", option=name)
    return tuple(names)


_NAME = re.compile(r"(?:`(?:[^`]|``)*`|[^,`])+")


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if len(name) > 1 and name[0] == name[-1] == "`" else name


def parse_overwrite_mode(value: str, where: str) -> bool:
    """Return True if a value of partitionOverwriteMode means dynamic.

    `where` names the setting. Raises InvalidOptionError.
    """
    if value.strip().lower() not in ("static", "dynamic"):
        raise InvalidOptionError(f"The {where} is static or dynamic, found '{value}'.", value=value)
    return value.strip().lower() == "dynamic"


def _overwrite_mode(given: _Given) -> bool | None:
    value = _get(given, "partitionOverwriteMode")
    return None if value is None else parse_overwrite_mode(value, "option 'partitionOverwriteMode'")


def transaction_of(application: str | None, version: str | None) -> SetTransaction | None:
    """Return the transaction of a write from txnAppId and txnVersion. Raises InvalidOptionError."""
    if application is None and version is None:
        return None
    if application is None or version is None:
        raise InvalidOptionError("Give both txnAppId and txnVersion, or neither: together they identify a write.")
    if not version.strip().isdecimal() or int(version) > _MOST:
        raise InvalidOptionError(f"txnVersion is a whole number from 0 to {_MOST}, found '{version}'.")
    return SetTransaction(app_id=application, version=int(version))
