"""New data files of a write before they are committed, and their additional columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.data.writer import WriteContext
from pyspark_delta.errors import StorageError
from pyspark_delta.features import Feature, is_active
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import no_files
from pyspark_delta.protocol.properties import (
    MATERIALIZED_ROW_COMMIT_VERSION,
    MATERIALIZED_ROW_ID,
)
from pyspark_delta.schema.types import LONG, StructField, StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage import store_for
from pyspark_delta.storage.paths import resolve_file


@dataclass(frozen=True, slots=True)
class Written:
    """New files with columns of `actions.columns`, how many rows they hold, and their size in bytes."""

    files: pa.Table
    rows: int
    size: int
    marks: Mapping[str, int] = field(default_factory=dict)  # the last numbers assigned to identity columns

    @classmethod
    def of(cls, files: pa.Table, context: WriteContext) -> Written:
        """Return the files that `write_frame` returned for a context."""
        rows, size = (pc.sum(files.column(name)).as_py() or 0 for name in ("num_records", "size"))
        kept = files.drop_columns(["num_records", "marks"]) if files.num_rows else no_files()
        return cls(kept, rows, size, furthest_marks(files, context))

    @property
    def paths(self) -> list[str]:
        """The paths of the files, as in the log."""
        return list(self.files["path"].to_pylist())

    @classmethod
    def nothing(cls) -> Written:
        """Return no files."""
        return cls(no_files(), 0, 0)


def has_row_ids(configuration: TableConfiguration) -> bool:
    """Return True if rewritten rows keep their ids (C321)."""
    return is_active(configuration, Feature.ROW_TRACKING)


def with_row_ids(before: TableConfiguration, context: WriteContext, *, commit_versions: bool = True) -> WriteContext:
    """Return the context for files with rows that the table already has: their ids follow the columns, if any.

    So do their commit versions, unless these are left out.
    """
    if not has_row_ids(before):
        return context
    kept = (MATERIALIZED_ROW_ID, MATERIALIZED_ROW_COMMIT_VERSION) if commit_versions else (MATERIALIZED_ROW_ID,)
    names = [column.of(before.properties) for column in kept]
    return with_columns(context, StructType(tuple(StructField(name, LONG) for name in names if name is not None)))


def with_columns(context: WriteContext, columns: StructType) -> WriteContext:
    """Return the context for files with additional columns."""
    stored = len(context.partition_columns) if context.stores_partition_columns else 0
    fields = context.data_schema.fields
    data, partition = fields[: len(fields) - stored], fields[len(fields) - stored :]
    return replace(
        context,
        schema=StructType((*context.schema, *columns)),
        data_schema=StructType((*data, *columns, *partition)),
    )


def discard(snapshot: Snapshot, written: Sequence[str]) -> None:
    """Delete new files that no commit names, by their paths in the log.

    Files that cannot be deleted are left to vacuum.
    """
    delete_new(snapshot.location, snapshot.storage_options, written)


@contextmanager
def discarded_on_error(location: str, storage_options: Mapping[str, str], written: Written) -> Iterator[None]:
    """Delete new files if the block raises an exception; no commit may have been attempted with them."""
    try:
        yield
    except BaseException:
        delete_new(location, storage_options, written.paths)
        raise


def delete_new(location: str, storage_options: Mapping[str, str], written: Sequence[str]) -> None:
    """Delete new files of the table at a location, as `discard` does."""
    if not written:
        return
    with suppress(StorageError):
        store_for(location, storage_options).delete([resolve_file(location, path) for path in written])


def furthest_marks(files: pa.Table, context: WriteContext) -> dict[str, int]:
    """Return the last number assigned to each identity column in the files of a write."""
    found: dict[str, int] = {}
    for marks in files.column("marks").to_pylist():
        for name, mark in marks or ():
            step = next(c.step for c in context.numbered if c.name == name)
            found[name] = mark if name not in found else (max if step > 0 else min)(found[name], mark)
    return found
