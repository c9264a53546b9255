"""Delta tables in Spark sessions, classic and Connect: the only package that imports pyspark."""

from collections.abc import Mapping
from typing import Any

import pyspark.errors  # noqa: F401 - from now on a DeltaError is a PySparkException

from pyspark_delta.errors.base import derive_from_pyspark
from pyspark_delta.session_stores import register_hadoop

derive_from_pyspark()


def _open_hadoop_store(scheme: str, authority: str, options: Mapping[str, str]) -> Any:
    from pyspark_delta.spark.hadoop.store import HadoopStore

    return HadoopStore(scheme, authority, options)


def _settings_for(scheme: str) -> Mapping[str, str]:
    from pyspark_delta.spark.hadoop.cloud_settings import cloud_settings

    return cloud_settings(scheme)


register_hadoop(_open_hadoop_store, _settings_for)
