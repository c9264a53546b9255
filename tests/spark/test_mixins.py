"""The readers and writers of enabled sessions look like PySpark's own, classic and Connect."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from pyspark.sql import readwriter as classic
from pyspark.sql.connect import readwriter as connect
from pyspark.sql.connect.streaming import readwriter as connect_streaming
from pyspark.sql.streaming import readwriter as streaming

from pyspark_delta.spark.session.frame_writer import DeltaAwareWriter
from pyspark_delta.spark.session.mixins import DeltaMixin, mixed_class
from pyspark_delta.spark.session.reader import DeltaAwareReader
from pyspark_delta.spark.session.stream_reader import DeltaAwareStreamReader
from pyspark_delta.spark.session.stream_writer import DeltaAwareStreamWriter
from pyspark_delta.spark.session.table_writer import DeltaAwareTableWriter

MIXED = [
    (DeltaAwareReader, classic.DataFrameReader),
    (DeltaAwareReader, connect.DataFrameReader),
    (DeltaAwareWriter, classic.DataFrameWriter),
    (DeltaAwareWriter, connect.DataFrameWriter),
    (DeltaAwareTableWriter, classic.DataFrameWriterV2),
    (DeltaAwareTableWriter, connect.DataFrameWriterV2),
    (DeltaAwareStreamReader, streaming.DataStreamReader),
    (DeltaAwareStreamReader, connect_streaming.DataStreamReader),
    (DeltaAwareStreamWriter, streaming.DataStreamWriter),
    (DeltaAwareStreamWriter, connect_streaming.DataStreamWriter),
]


@pytest.mark.parametrize(("mixin", "base"), MIXED, ids=lambda cls: f"{cls.__module__}.{cls.__name__}")
def test_members_parameters_and_documentation_are_pysparks(mixin: type[DeltaMixin], base: type) -> None:
    mixed = mixed_class(mixin, base)
    assert issubclass(mixed, base)
    assert _public(mixed) == _public(base)
    assert _looks(mixed) == _looks(base)


def _public(cls: type) -> set[str]:
    return {name for name in dir(cls) if not name.startswith("_")}


def _looks(cls: type) -> dict[str, Any]:
    """The parameters and the documentation of every method, as `help` shows them for an object of the class."""
    holder = object.__new__(cls)
    looks: dict[str, Any] = {"": cls.__doc__}
    for name in _public(cls):
        method = inspect.getattr_static(cls, name)
        if inspect.isfunction(method):
            parameters = inspect.signature(method).parameters.values()
            looks[name] = [(p.name, p.kind, p.default) for p in parameters], inspect.getdoc(getattr(holder, name))
    return looks
