"""The session's settings for object stores, `fs.s3a.*`, `fs.azure.*` and `fs.gs.*`, for the stores of this package.

Hadoop's own defaults are left out: they would replace the settings that the stores take from the environment.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pyspark import SparkContext

from pyspark_delta.spark.hadoop.client import HadoopClient
from pyspark_delta.spark.hadoop.connections import client_of_driver, given_access

PREFIXES = ("fs.s3a.", "fs.azure.", "fs.gs.", "google.cloud.")
_OF_SCHEME = {"s3": PREFIXES[:1], "gs": PREFIXES[2:]}


def cloud_settings(scheme: str) -> dict[str, str]:
    """Return the settings for the stores of a scheme, from the session or, in a task, from its driver."""
    prefixes = _OF_SCHEME.get(scheme, PREFIXES[1:2])
    return {name: value for name, value in _all_settings().items() if name.startswith(prefixes)}


def driver_settings(context: SparkContext) -> dict[str, str]:
    """Return the settings of a classic session for all object stores, as they were at most a second ago."""
    return _settings(client_of_driver(context), int(time.monotonic()))


def _all_settings() -> Mapping[str, str]:
    context = SparkContext._active_spark_context
    if context is not None and context._gateway is not None:
        return driver_settings(context)
    access = given_access()
    return {} if access is None else access.cloud


@lru_cache(maxsize=2)
def _settings(client: HadoopClient, second: int) -> dict[str, str]:
    defaults = _defaults(client)
    return {name: value for name, value in _with_prefixes(client, client.configuration) if defaults.get(name) != value}


@lru_cache(maxsize=2)
def _defaults(client: HadoopClient) -> dict[str, str]:
    configuration = client.new("org.apache.hadoop.conf.Configuration")(False)
    configuration.addResource("core-default.xml")
    return dict(_with_prefixes(client, configuration))


def _with_prefixes(client: HadoopClient, configuration: Any) -> list[tuple[str, str]]:
    mapper = client.new("com.fasterxml.jackson.databind.ObjectMapper")()
    found: list[tuple[str, str]] = []
    for prefix in PREFIXES:
        named = json.loads(mapper.writeValueAsString(configuration.getPropsWithPrefix(prefix)))
        found += [(prefix + name, value) for name, value in named.items()]
    return found
