"""Every error that pyspark-delta raises, as one tree under `DeltaError`.

Each class carries delta-spark's error class and SQLSTATE, and the facts as attributes. The text of an error says what
happened, what was found and what to do. It begins with `[ERROR_CLASS]`, because errors that cross Spark's Python Data
Source boundary lose their Python class and keep their text.

DeltaError
      TableNotFoundError  TableAlreadyExistsError  VersionNotFoundError  TimestampOutOfRangeError
      InvalidTableError            the table breaks the protocol
        CorruptLogError  ChecksumMismatchError  DeletionVectorError
        DataFileError
          UnsupportedDataFileError
      UnsupportedTableError        the table is valid, but not supported by this version
        UnsupportedFeatureError
          PathAccessError
      InvalidOperationError        the operation is not allowed
        InvalidPredicateError
          ComputationError
        SqlSyntaxError  InvalidOptionError  SchemaMismatchError  ConstraintViolationError  AppendOnlyTableError
      StreamError                  a stream cannot go on
        InvalidOffsetError  ChangedRowsError  StreamSchemaError  StreamDataLossError
      CommitError
        CommitStateUnknownError  AttemptsExhaustedError
        CommitConflictError
          ConcurrentAppendError  ConcurrentDeleteReadError  ConcurrentDeleteDeleteError
          ConcurrentTransactionError  ConcurrentWriteError  MetadataChangedError  ProtocolChangedError
      CatalogError
        CatalogNameNotFoundError  CatalogNameExistsError  NotDeltaTableError
        NotAuthorizedError  CatalogUnavailableError  RatificationConflictError  TooManyUnpublishedError
        StaleMetadataError  TableReplacedError  InvalidProposalError  PublishedMismatchError
        MaintenanceNotAllowedError
      StorageError
        FileNotFoundInStoreError  FileAlreadyExistsError  PermissionDeniedError  StoreThrottledError
      MissingDependencyError

The concurrency classes have delta-spark's names too: `DeltaConcurrentModificationException` is `CommitConflictError`,
and `ConcurrentAppendException` is `ConcurrentAppendError`, for example.

Where PySpark is imported, `DeltaError` is a `PySparkException`.
"""

from __future__ import annotations

from pyspark_delta.errors.base import (
    DeltaError,
    DeltaWarning,
)
from pyspark_delta.errors.boundary import (
    annotate,
    from_text,
    translate,
)
from pyspark_delta.errors.catalogs import (
    CatalogError,
    CatalogNameExistsError,
    CatalogNameNotFoundError,
    CatalogUnavailableError,
    InvalidProposalError,
    MaintenanceNotAllowedError,
    NotAuthorizedError,
    NotDeltaTableError,
    PublishedMismatchError,
    RatificationConflictError,
    StaleMetadataError,
    TableReplacedError,
    TooManyUnpublishedError,
)
from pyspark_delta.errors.operations import (
    AppendOnlyTableError,
    AttemptsExhaustedError,
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
    DeltaConcurrentModificationException,
    InvalidOperationError,
    InvalidOptionError,
    InvalidPredicateError,
    MetadataChangedError,
    MetadataChangedException,
    ProtocolChangedError,
    ProtocolChangedException,
    SchemaMismatchError,
    SqlSyntaxError,
)
from pyspark_delta.errors.services import (
    FileAlreadyExistsError,
    FileNotFoundInStoreError,
    MissingDependencyError,
    PermissionDeniedError,
    StorageError,
    StoreThrottledError,
)
from pyspark_delta.errors.streams import (
    ChangedRowsError,
    InvalidOffsetError,
    StreamDataLossError,
    StreamError,
    StreamSchemaError,
)
from pyspark_delta.errors.tables import (
    ChecksumMismatchError,
    CorruptLogError,
    DataFileError,
    DeletionVectorError,
    InvalidTableError,
    PathAccessError,
    TableAlreadyExistsError,
    TableNotFoundError,
    TimestampOutOfRangeError,
    UnsupportedDataFileError,
    UnsupportedFeatureError,
    UnsupportedTableError,
    VersionNotFoundError,
)

__all__ = [
    "AppendOnlyTableError",
    "AttemptsExhaustedError",
    "CatalogError",
    "CatalogNameExistsError",
    "CatalogNameNotFoundError",
    "CatalogUnavailableError",
    "ChangedRowsError",
    "ChecksumMismatchError",
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
    "DeletionVectorError",
    "DeltaConcurrentModificationException",
    "DeltaError",
    "DeltaWarning",
    "FileAlreadyExistsError",
    "FileNotFoundInStoreError",
    "InvalidOffsetError",
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
    "SqlSyntaxError",
    "StaleMetadataError",
    "StorageError",
    "StoreThrottledError",
    "StreamDataLossError",
    "StreamError",
    "StreamSchemaError",
    "TableAlreadyExistsError",
    "TableNotFoundError",
    "TableReplacedError",
    "TimestampOutOfRangeError",
    "TooManyUnpublishedError",
    "UnsupportedDataFileError",
    "UnsupportedFeatureError",
    "UnsupportedTableError",
    "VersionNotFoundError",
    "annotate",
    "from_text",
    "translate",
]

for _name in __all__:  # users know all of them by this module
    globals()[_name].__module__ = __name__
