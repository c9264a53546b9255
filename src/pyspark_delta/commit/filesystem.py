"""Commits by put-if-absent of the commit file (C010, C013): tables that no catalog manages."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark_delta.commit.contract import (
    CommitRequest,
    CommitResult,
    Committed,
    Rejected,
    TakenVersion,
    Transient,
    Unknown,
    VersionTaken,
)
from pyspark_delta.errors import (
    FileAlreadyExistsError,
    FileNotFoundInStoreError,
    PermissionDeniedError,
    StorageError,
)
from pyspark_delta.log.names import LOG_DIRECTORY, CommitName
from pyspark_delta.log.provenance import transaction_id
from pyspark_delta.parallel import map_requests
from pyspark_delta.storage import ObjectStore
from pyspark_delta.storage.paths import join

_PARALLEL_READS = 32


class FilesystemCommitter:
    """Writes `_delta_log/<version>.json` if it does not exist.

    Stores may report a failure after success, and their clients repeat requests. So after any failure the file is read,
    and the transaction id in it identifies its writer.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def commit(self, request: CommitRequest) -> CommitResult:
        path = join(request.table_location, LOG_DIRECTORY, str(CommitName(request.version)))
        try:
            self._store.write_if_absent(path, request.content)
        except FileAlreadyExistsError as error:
            return self._resolve(request, path, error)
        except StorageError as error:
            found = self._resolve(request, path, error)
            # A refusal has no effect, unless only what follows the effect was refused, such as to sync a directory.
            is_refused = isinstance(error, PermissionDeniedError) and not isinstance(found, Committed)
            return Rejected(error) if is_refused else found
        return Committed(request.version)

    def later(self, table_location: str, version: int) -> Iterator[TakenVersion]:
        """Yield later versions, read in batches of increasing size, because a slow writer has many to read."""

        def read(number: int) -> bytes | None:
            try:
                return self._store.read(join(table_location, LOG_DIRECTORY, str(CommitName(number))))
            except FileNotFoundInStoreError:
                return None

        ahead = 1
        while True:
            block = range(version + 1, version + 1 + ahead)
            for number, content in zip(block, map_requests(read, block, ahead), strict=True):
                if content is None:
                    return
                yield TakenVersion(number, content)
            version, ahead = version + ahead, min(2 * ahead, _PARALLEL_READS)

    def _resolve(self, request: CommitRequest, path: str, error: StorageError) -> CommitResult:
        try:
            content = self._store.read(path)
        except FileNotFoundInStoreError:
            return Transient(error)
        except StorageError:
            return Unknown(error)
        if content == request.content:
            return Committed(request.version)
        if transaction_id(content) == request.transaction_id:
            return Committed(request.version, content)
        return VersionTaken((TakenVersion(request.version, content),))
