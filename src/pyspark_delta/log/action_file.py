"""Write a Parquet file of actions: one column for each kind of action, row group by row group (C044)."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pyspark_delta.errors import StorageError
from pyspark_delta.storage import FileStatus, ObjectStore

_ROW_GROUP_ROWS = 50_000
_ROW_GROUP_BYTES = 64 << 20  # bytes of Arrow data before a row group is written
_FEW_VALUES = ("partitionValues", "tags", "storageType", "clusteringProvider", "defaultRowCommitVersion")


class ActionFile:
    """Writes one file, which becomes visible when the `with` block ends without an error.

    The actions of each kind are adjacent, so that the statistics of row groups show where they are.
    """

    def __init__(self, store: ObjectStore, path: str, schema: pa.Schema, compression: str) -> None:
        self.path = path
        self.rows = 0
        self.size = 0
        self._store = store
        self._schema = schema
        self._compression = compression
        self._kind = ""
        self._waiting: list[pa.StructArray] = []

    def __enter__(self) -> ActionFile:
        self._sink = self._store.open_output(self.path)
        try:
            self._writer = pq.ParquetWriter(
                self._sink,
                self._schema,
                compression=self._compression,
                compression_level=1 if self._compression == "zstd" else None,
                use_dictionary=_repetitive(self._schema),
                store_schema=False,
            )
        except BaseException:
            self._sink.__exit__(RuntimeError, None, None)
            raise
        return self

    def write(self, kind: str, rows: pa.StructArray) -> None:
        """Write some actions of one kind; all actions of a kind must be adjacent."""
        if kind != self._kind:
            self.flush()
            self._kind = kind
        self._waiting.append(rows)
        self.rows += len(rows)
        if (
            sum(map(len, self._waiting)) >= _ROW_GROUP_ROWS
            or sum(array.nbytes for array in self._waiting) >= _ROW_GROUP_BYTES
        ):
            self.flush()

    def write_mixed(self, actions: Sequence[Mapping[str, Any]]) -> None:
        """Write actions of several kinds as one row group, each in wire form: `{"txn": {...}}`."""
        self.flush()
        columns = [
            pa.array([action.get(field.name) for action in actions], field.type, from_pandas=False)
            for field in self._schema
        ]
        self._write(pa.Table.from_arrays(columns, schema=self._schema))
        self.rows += len(actions)

    def flush(self) -> None:
        """Write the actions so far as a row group."""
        if not self._waiting:
            return
        number = sum(map(len, self._waiting))
        columns = [
            pa.chunked_array(self._waiting) if field.name == self._kind else pa.nulls(number, field.type)
            for field in self._schema
        ]
        self._waiting = []
        self._write(pa.Table.from_arrays(columns, schema=self._schema))

    def _write(self, table: pa.Table) -> None:
        self._writer.write_table(table, row_group_size=max(table.num_rows, 1))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.flush()
                self._writer.close()
                self.size = self._sink.tell()
        except BaseException as failure:
            self._discard(failure)
            raise
        if error is not None:
            self._discard(error)
        else:
            self._sink.__exit__(None, None, None)

    def _discard(self, error: BaseException) -> None:
        with contextlib.suppress(Exception):
            self._writer.close()  # otherwise it closes itself later, into a sink that no longer exists
        self._sink.__exit__(type(error), error, None)

    def status(self) -> FileStatus:
        """Return the status of the finished file, as a listing of the store shows it."""
        found = self._store.status(self.path)
        if found.size != self.size:
            raise StorageError(
                f"'{self.path}' has {found.size} bytes, but {self.size} were written. Another program replaced it.",
                path=self.path,
            )
        return found


def _repetitive(schema: pa.Schema) -> list[str]:
    """Return the leaves that benefit from a dictionary: those with few distinct values, without the long strings."""
    leaves = (leaf for field in schema for leaf in _paths(field.name, field.type))
    return [leaf for leaf in leaves if any(name in leaf.split(".") for name in _FEW_VALUES)]


def _paths(path: str, kind: pa.DataType) -> list[str]:
    if pa.types.is_struct(kind):
        return [leaf for child in kind for leaf in _paths(f"{path}.{child.name}", child.type)]
    if pa.types.is_map(kind):
        return [f"{path}.key_value.key", f"{path}.key_value.value"]
    if pa.types.is_list(kind):
        return [f"{path}.list.element"]
    return [path]
