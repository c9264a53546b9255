"""The session's settings for writes. Options of the write and properties of the table override them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_delta.errors import InvalidOptionError
from pyspark_delta.log.checkpoint_writer import TopLevelFormat, check_top_level
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.spark.conf.after_commit import change_is_made
from pyspark_delta.spark.conf.sessions import TIME_ZONE, session_time_zone, settings_like
from pyspark_delta.transaction.evolution import DEFAULTS_PREFIX
from pyspark_delta.transaction.write_plan import FileOptions
from pyspark_delta.write.options import WriteOptions, parse_overwrite_mode, transaction_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DELTA = "spark.databricks.delta."
_AUTO_RESET = f"{_DELTA}write.txnVersion.autoReset.enabled"
_TRANSACTION_VERSION = f"{_DELTA}write.txnVersion"


def with_session_defaults(spark: SparkSession, options: WriteOptions) -> WriteOptions:
    """Return the options, with the session's settings for those that are not given.

    Raises InvalidOptionError for an invalid setting, and for a `timeZone` that differs from the session's.
    """
    zone = session_time_zone(spark)
    if options.time_zone not in (None, zone):
        raise InvalidOptionError(
            f"The option 'timeZone' is '{options.time_zone}', but this write uses the time zone of the session, "
            f"'{zone}'. Leave the option out, or set {TIME_ZONE}.",
            option="timeZone",
        )
    if options.merge_schema is None:
        options = replace(options, merge_schema=is_set(spark, "schema.autoMerge.enabled", default=False))
    if options.dynamic_partitions is None and not (
        options.replace_where is not None or options.replace_on is not None or options.replace_using
    ):
        name = "spark.sql.sources.partitionOverwriteMode"
        value = spark.conf.get(name, None) or "static"
        options = replace(options, dynamic_partitions=parse_overwrite_mode(value, f"session setting {name}"))
    if options.transaction is None:
        names = (f"{_DELTA}write.txnAppId", _TRANSACTION_VERSION)
        application, version = (spark.conf.get(name, None) for name in names)
        options = replace(options, transaction=transaction_of(application, version))
    if options.user_metadata is None:
        options = replace(options, user_metadata=spark.conf.get(f"{_DELTA}commitInfo.userMetadata", None))
    return options


def resets_version(spark: SparkSession) -> bool:
    """Return True if the session sets that its transaction version applies to one write only.

    Call it before the commit: on Spark Connect, the server may not answer after it.
    """
    return (spark.conf.get(_AUTO_RESET, None) or "").lower() == "true"


def after_commit(spark: SparkSession, *, resets: bool) -> None:
    """Unset the session's transaction version if `resets` is True. An error becomes a DeltaWarning."""
    if resets:
        remedy = f"Unset {_TRANSACTION_VERSION}: writes with the same version do nothing."
        with change_is_made(f"the setting {_TRANSACTION_VERSION} could not be unset", remedy):
            spark.conf.unset(_TRANSACTION_VERSION)


def default_properties(spark: SparkSession) -> dict[str, str]:
    """Return the session's properties for new tables, `spark.databricks.delta.properties.defaults.*`."""
    settings = settings_like(spark, re.escape(DEFAULTS_PREFIX) + ".+")
    return {f"delta.{key.removeprefix(DEFAULTS_PREFIX)}": value for key, value in settings.items()}


def file_options(spark: SparkSession, configuration: TableConfiguration, options: WriteOptions) -> FileOptions:
    """Return how files are written: by the options, then by the properties of the table, then by the session."""
    conf, files = spark.conf, options.files
    if files.compression is None and "delta.parquet.compression.codec" not in configuration.properties:
        files = replace(files, compression=conf.get("spark.sql.parquet.compression.codec", None))
    if files.max_records_per_file is None:
        limit = int(conf.get("spark.sql.files.maxRecordsPerFile", "0") or 0)
        files = replace(files, max_records_per_file=limit if limit > 0 else None)
    return files


def top_level_format(spark: SparkSession) -> TopLevelFormat | None:
    """Return the session's format of the top level of V2 checkpoints; None if not set. Raises InvalidOptionError."""
    value = spark.conf.get(f"{_DELTA}checkpointV2.topLevelFileFormat", None)
    return None if value is None else check_top_level(value.strip().lower())


def is_set(spark: SparkSession, name: str, *, default: bool) -> bool:
    """Return a boolean setting, or the default if the session does not set it. Raises as `boolean_setting`."""
    value = boolean_setting(spark, name)
    return default if value is None else value


def delta_setting(spark: SparkSession, name: str) -> str | None:
    """Return the setting `spark.databricks.delta.NAME`; None if the session does not set it."""
    return spark.conf.get(_DELTA + name, None)


def boolean_setting(spark: SparkSession, name: str) -> bool | None:
    """Return the boolean setting `spark.databricks.delta.NAME`; None if the session does not set it.

    Raises InvalidOptionError for any other value.
    """
    value = delta_setting(spark, name)
    if value is None:
        return None
    if value.strip().lower() not in ("true", "false"):
        raise InvalidOptionError(f"The session setting {_DELTA}{name} is true or false, found '{value}'.")
    return value.strip().lower() == "true"


def whole_number_setting(spark: SparkSession, name: str) -> int | None:
    """Return the setting `spark.databricks.delta.NAME`, a number from 1 on; None if the session does not set it.

    Raises InvalidOptionError for any other value.
    """
    value = delta_setting(spark, name)
    if value is None:
        return None
    if not value.strip().isdecimal() or not int(value):
        raise InvalidOptionError(f"The session setting {_DELTA}{name} is a number from 1 on, found '{value}'.")
    return int(value)
