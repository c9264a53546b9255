"""Which classes that a table names are made objects of."""

from __future__ import annotations

import pytest

from pyspark_delta.spark.frames.user_defined_types import is_loadable

VECTOR = {"pyClass": "pyspark.ml.linalg.VectorUDT", "class": "org.apache.spark.ml.linalg.VectorUDT"}


def test_types_of_pyspark_are_found() -> None:
    assert is_loadable(VECTOR)


@pytest.mark.parametrize("name", ["os.getpid", "builtins.dict", "pyspark.sql.types.LongType", "VectorUDT", "no.where"])
def test_nothing_but_user_defined_types_is_called(name: str) -> None:
    """PySpark would call whatever a table names."""
    assert not is_loadable({**VECTOR, "pyClass": name})
