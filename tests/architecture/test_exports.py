"""The public names, pinned: a change here is a change for users."""

from __future__ import annotations

import pyspark_delta

PUBLIC = [
    "DefaultSource",
    "DeltaCatalog",
    "DeltaTable",
    "DeltaTableBuilder",
    "IdentityGenerator",
    "Table",
    "__version__",
    "configure_spark_with_delta_pip",
    "connect_catalog",
    "enable",
    "errors",
]


def test_public_names_are_pinned() -> None:
    assert sorted(pyspark_delta.__all__) == PUBLIC
    assert set(PUBLIC) <= set(dir(pyspark_delta))


def test_every_public_name_resolves() -> None:
    for name in PUBLIC:
        assert getattr(pyspark_delta, name) is not None


def test_unknown_names_are_attribute_errors() -> None:
    assert not hasattr(pyspark_delta, "no_such_name")
