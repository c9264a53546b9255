"""Delta Lake for PySpark in pure Python.

Spark imports every module named `pyspark_*` at the first look-up of a Python Data Source, so importing this one costs
next to nothing and cannot fail: public names are resolved when they are used.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pyspark_delta._version import __version__

if TYPE_CHECKING:
    from pyspark_delta import errors
    from pyspark_delta.catalogs import DeltaCatalog, connect_catalog
    from pyspark_delta.errors import (
        AppendOnlyTableError,
        AttemptsExhaustedError,
        CatalogError,
        CatalogNameExistsError,
        CatalogNameNotFoundError,
        CatalogUnavailableError,
        ChecksumMismatchError,
        CommitConflictError,
        CommitError,
        CommitStateUnknownError,
        ConcurrentAppendError,
        ConcurrentAppendException,
        ConcurrentDeleteDeleteError,
        ConcurrentDeleteDeleteException,
        ConcurrentDeleteReadError,
        ConcurrentDeleteReadException,
        ConcurrentTransactionError,
        ConcurrentTransactionException,
        ConcurrentWriteError,
        ConcurrentWriteException,
        ConstraintViolationError,
        CorruptLogError,
        DataFileError,
        DeletionVectorError,
        DeltaConcurrentModificationException,
        DeltaError,
        DeltaWarning,
        FileAlreadyExistsError,
        FileNotFoundInStoreError,
        InvalidOperationError,
        InvalidOptionError,
        InvalidPredicateError,
        InvalidProposalError,
        InvalidTableError,
        MaintenanceNotAllowedError,
        MetadataChangedError,
        MetadataChangedException,
        MissingDependencyError,
        NotAuthorizedError,
        NotDeltaTableError,
        PathAccessError,
        PermissionDeniedError,
        ProtocolChangedError,
        ProtocolChangedException,
        PublishedMismatchError,
        RatificationConflictError,
        SchemaMismatchError,
        StaleMetadataError,
        StorageError,
        TableAlreadyExistsError,
        TableNotFoundError,
        TableReplacedError,
        TimestampOutOfRangeError,
        TooManyUnpublishedError,
        UnsupportedDataFileError,
        UnsupportedFeatureError,
        UnsupportedTableError,
        VersionNotFoundError,
    )
    from pyspark_delta.spark.builder import DeltaTableBuilder, IdentityGenerator
    from pyspark_delta.spark.session import configure_spark_with_delta_pip, enable
    from pyspark_delta.spark.source import DefaultSource
    from pyspark_delta.spark.table import DeltaTable
    from pyspark_delta.table import Table

__all__ = [
    "AppendOnlyTableError",
    "AttemptsExhaustedError",
    "CatalogError",
    "CatalogNameExistsError",
    "CatalogNameNotFoundError",
    "CatalogUnavailableError",
    "ChecksumMismatchError",
    "CommitConflictError",
    "CommitError",
    "CommitStateUnknownError",
    "ConcurrentAppendError",
    "ConcurrentAppendException",
    "ConcurrentDeleteDeleteError",
    "ConcurrentDeleteDeleteException",
    "ConcurrentDeleteReadError",
    "ConcurrentDeleteReadException",
    "ConcurrentTransactionError",
    "ConcurrentTransactionException",
    "ConcurrentWriteError",
    "ConcurrentWriteException",
    "ConstraintViolationError",
    "CorruptLogError",
    "DataFileError",
    "DefaultSource",
    "DeletionVectorError",
    "DeltaCatalog",
    "DeltaConcurrentModificationException",
    "DeltaError",
    "DeltaTable",
    "DeltaTableBuilder",
    "DeltaWarning",
    "FileAlreadyExistsError",
    "FileNotFoundInStoreError",
    "IdentityGenerator",
    "InvalidOperationError",
    "InvalidOptionError",
    "InvalidPredicateError",
    "InvalidProposalError",
    "InvalidTableError",
    "MaintenanceNotAllowedError",
    "MetadataChangedError",
    "MetadataChangedException",
    "MissingDependencyError",
    "NotAuthorizedError",
    "NotDeltaTableError",
    "PathAccessError",
    "PermissionDeniedError",
    "ProtocolChangedError",
    "ProtocolChangedException",
    "PublishedMismatchError",
    "RatificationConflictError",
    "SchemaMismatchError",
    "StaleMetadataError",
    "StorageError",
    "Table",
    "TableAlreadyExistsError",
    "TableNotFoundError",
    "TableReplacedError",
    "TimestampOutOfRangeError",
    "TooManyUnpublishedError",
    "UnsupportedDataFileError",
    "UnsupportedFeatureError",
    "UnsupportedTableError",
    "VersionNotFoundError",
    "__version__",
    "configure_spark_with_delta_pip",
    "connect_catalog",
    "enable",
    "errors",
]

# Public name -> the module that holds it; "" stands for a module of this package.
_HOMES = {
    "DefaultSource": "pyspark_delta.spark.source",
    "DeltaCatalog": "pyspark_delta.catalogs",
    "DeltaTable": "pyspark_delta.spark.table",
    "DeltaTableBuilder": "pyspark_delta.spark.builder",
    "IdentityGenerator": "pyspark_delta.spark.builder",
    "Table": "pyspark_delta.table",
    "configure_spark_with_delta_pip": "pyspark_delta.spark.session",
    "connect_catalog": "pyspark_delta.catalogs",
    "enable": "pyspark_delta.spark.session",
    "errors": "",
    **dict.fromkeys(
        (name for name in __all__ if name.endswith(("Error", "Exception", "Warning"))), "pyspark_delta.errors"
    ),
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'pyspark_delta' has no attribute '{name}'")
    if name == "DefaultSource":
        value = _default_source()
    elif home:
        value = getattr(_import(home, name), name)
    else:
        value = import_module(f"pyspark_delta.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _default_source() -> Any:
    """The data source under its short name; an AttributeError tells Spark's look-up that there is none."""
    if os.environ.get("PYSPARK_DELTA_SHORT_NAME") == "":
        raise AttributeError("PYSPARK_DELTA_SHORT_NAME is empty, so pyspark_delta claims no short name")
    try:
        return import_module(_HOMES["DefaultSource"]).DefaultSource
    except Exception as error:  # Spark imports all sources at once: a failure here would break the others.
        raise AttributeError(f"the data source cannot be loaded: {error}") from error


def _import(home: str, name: str) -> Any:
    try:
        return import_module(home)
    except ModuleNotFoundError as error:
        if error.name not in ("pyspark", "py4j"):
            raise
        from pyspark_delta.errors import MissingDependencyError

        raise MissingDependencyError(
            f"pyspark_delta.{name} needs PySpark, which is not installed: pip install 'pyspark-delta[spark]'."
        ) from None
