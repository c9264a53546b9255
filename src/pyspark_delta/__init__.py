"""Delta Lake for PySpark in pure Python.

Public are the names in `__all__` with their documented members, and the modules in `PUBLIC_MODULES` with all names that
do not begin with an underscore. Everything else is private: it may change in any release.

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
    from pyspark_delta.catalog.connections import attach_catalog, disconnect_catalog
    from pyspark_delta.catalogs import DeltaCatalog, connect_catalog
    from pyspark_delta.errors import (
        AppendOnlyTableError,
        AttemptsExhaustedError,
        CatalogError,
        CatalogNameExistsError,
        CatalogNameNotFoundError,
        CatalogUnavailableError,
        ChangedRowsError,
        ChecksumMismatchError,
        CommitConflictError,
        CommitError,
        CommitStateUnknownError,
        ComputationError,
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
        InvalidOffsetError,
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
        SqlSyntaxError,
        StaleMetadataError,
        StorageError,
        StoreThrottledError,
        StreamDataLossError,
        StreamError,
        StreamSchemaError,
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
    from pyspark_delta.interpreter import sql
    from pyspark_delta.maintenance.budget import Budget
    from pyspark_delta.maintenance.layout.layouts import Cluster, Sort
    from pyspark_delta.maintenance.policy import MaintenancePolicy
    from pyspark_delta.progress import Progress
    from pyspark_delta.snapshot import Snapshot
    from pyspark_delta.spark.api.builder import DeltaTableBuilder, IdentityGenerator
    from pyspark_delta.spark.api.delta_modules import install_as_delta
    from pyspark_delta.spark.api.table import DeltaTable
    from pyspark_delta.spark.session.enable import configure_spark_with_delta_pip, disable, enable
    from pyspark_delta.spark.source import DefaultSource
    from pyspark_delta.spark.streaming.batch import streaming_batch
    from pyspark_delta.table import Table
    from pyspark_delta.table.transaction import Transaction

__all__ = [
    "AppendOnlyTableError",
    "AttemptsExhaustedError",
    "Budget",
    "CatalogError",
    "CatalogNameExistsError",
    "CatalogNameNotFoundError",
    "CatalogUnavailableError",
    "ChangedRowsError",
    "ChecksumMismatchError",
    "Cluster",
    "CommitConflictError",
    "CommitError",
    "CommitStateUnknownError",
    "ComputationError",
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
    "InvalidOffsetError",
    "InvalidOperationError",
    "InvalidOptionError",
    "InvalidPredicateError",
    "InvalidProposalError",
    "InvalidTableError",
    "MaintenanceNotAllowedError",
    "MaintenancePolicy",
    "MetadataChangedError",
    "MetadataChangedException",
    "MissingDependencyError",
    "NotAuthorizedError",
    "NotDeltaTableError",
    "PathAccessError",
    "PermissionDeniedError",
    "Progress",
    "ProtocolChangedError",
    "ProtocolChangedException",
    "PublishedMismatchError",
    "RatificationConflictError",
    "SchemaMismatchError",
    "Snapshot",
    "Sort",
    "SqlSyntaxError",
    "StaleMetadataError",
    "StorageError",
    "StoreThrottledError",
    "StreamDataLossError",
    "StreamError",
    "StreamSchemaError",
    "Table",
    "TableAlreadyExistsError",
    "TableNotFoundError",
    "TableReplacedError",
    "TimestampOutOfRangeError",
    "TooManyUnpublishedError",
    "Transaction",
    "UnsupportedDataFileError",
    "UnsupportedFeatureError",
    "UnsupportedTableError",
    "VersionNotFoundError",
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

PUBLIC_MODULES = (
    "pyspark_delta",
    "pyspark_delta.errors",
    "pyspark_delta.catalog.contract",  # for catalogs of users, which `attach_catalog` connects to
    "pyspark_delta.testing",  # with its modules: contracts as test suites, faults, tables for tests
)
"""The modules from which users import. Of the packages, only `pyspark_delta.testing` is public with all its modules."""

# Public name -> the module that holds it; "" stands for a module of this package.
_HOMES = {
    "Cluster": "pyspark_delta.maintenance.layout.layouts",
    "DefaultSource": "pyspark_delta.spark.source",
    "DeltaCatalog": "pyspark_delta.catalogs",
    "DeltaTable": "pyspark_delta.spark.api.table",
    "DeltaTableBuilder": "pyspark_delta.spark.api.builder",
    "IdentityGenerator": "pyspark_delta.spark.api.builder",
    "Budget": "pyspark_delta.maintenance.budget",
    "MaintenancePolicy": "pyspark_delta.maintenance.policy",
    "Table": "pyspark_delta.table",
    "configure_spark_with_delta_pip": "pyspark_delta.spark.session.enable",
    "connect_catalog": "pyspark_delta.catalogs",
    "disable": "pyspark_delta.spark.session.enable",
    "disconnect_catalog": "pyspark_delta.catalog.connections",
    "attach_catalog": "pyspark_delta.catalog.connections",
    "Progress": "pyspark_delta.progress",
    "Snapshot": "pyspark_delta.snapshot",
    "Sort": "pyspark_delta.maintenance.layout.layouts",
    "Transaction": "pyspark_delta.table.transaction",
    "enable": "pyspark_delta.spark.session.enable",
    "errors": "",
    "install_as_delta": "pyspark_delta.spark.api.delta_modules",
    "sql": "pyspark_delta.interpreter",
    "streaming_batch": "pyspark_delta.spark.streaming.batch",
    **dict.fromkeys(
        (name for name in __all__ if name.endswith(("Error", "Exception", "Warning"))), "pyspark_delta.errors"
    ),
}


if not TYPE_CHECKING:  # checkers know the names above, and no others

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
