"""The public names: which there are, and that each can be imported."""

from __future__ import annotations

import inspect

import pytest

import pyspark_delta
from pyspark_delta import errors

ERRORS = [name for name in errors.__all__ if inspect.isclass(getattr(errors, name))]

PUBLIC = [
    "Budget",
    "Cluster",
    "DefaultSource",
    "DeltaCatalog",
    "DeltaTable",
    "DeltaTableBuilder",
    "IdentityGenerator",
    "MaintenancePolicy",
    "Progress",
    "Snapshot",
    "Sort",
    "Table",
    "Transaction",
    "__version__",
    "attach_catalog",
    "configure_spark_with_delta_pip",
    "connect_catalog",
    "disable",
    "disconnect_catalog",
    "enable",
    "errors",
    "install_as_delta",
    "sql",
    "streaming_batch",
]


def test_public_names_are_pinned() -> None:
    assert sorted(pyspark_delta.__all__) == sorted([*PUBLIC, *ERRORS])
    assert set(PUBLIC) <= set(dir(pyspark_delta))


def test_every_public_name_resolves() -> None:
    for name in PUBLIC:
        assert getattr(pyspark_delta, name) is not None


def test_unknown_names_are_attribute_errors() -> None:
    assert not hasattr(pyspark_delta, "no_such_name")


def test_every_error_can_be_imported_from_the_package() -> None:
    assert [getattr(pyspark_delta, name) for name in ERRORS] == [getattr(errors, name) for name in ERRORS]


DELTA_SPARK_NAMES = {
    "ConcurrentAppendException": "DELTA_CONCURRENT_APPEND",
    "ConcurrentDeleteReadException": "DELTA_CONCURRENT_DELETE_READ",
    "ConcurrentDeleteDeleteException": "DELTA_CONCURRENT_DELETE_DELETE",
    "ConcurrentTransactionException": "DELTA_CONCURRENT_TRANSACTION",
    "ConcurrentWriteException": "DELTA_CONCURRENT_WRITE",
    "MetadataChangedException": "DELTA_METADATA_CHANGED",
    "ProtocolChangedException": "DELTA_PROTOCOL_CHANGED",
}


@pytest.mark.parametrize(("name", "error_class"), DELTA_SPARK_NAMES.items(), ids=str)
def test_concurrency_errors_have_delta_sparks_names(name: str, error_class: str) -> None:
    cls = getattr(pyspark_delta, name)
    others = {getattr(pyspark_delta, other) for other in DELTA_SPARK_NAMES} - {cls}
    with pytest.raises(pyspark_delta.DeltaConcurrentModificationException) as raised:
        raise cls("It lost.", version=3)
    assert raised.value.getCondition() == error_class
    assert not isinstance(raised.value, tuple(others))
