"""`insertInto`: writes rows to the columns of a table by position, regardless of their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark_delta.errors import SchemaMismatchError
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.engine.write.save import TableWrite, write_table
from pyspark_delta.write.options import parse_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def insert_into(frame: DataFrame, location: str, options: Mapping[str, object], *, overwrite: bool) -> int | None:
    """Write a frame to an existing table by position. Raises TableNotFoundError, and what writing raises."""
    parsed = parse_options(options)
    names = Snapshot.load(location, storage_options=parsed.files.storage_options).schema.names
    if len(frame.columns) != len(names):
        raise SchemaMismatchError(
            f"insertInto puts columns into the table by position, but the data has {len(frame.columns)} columns "
            f"({', '.join(frame.columns)}) and the table {len(names)} ({', '.join(names)}). Select as many columns, in "
            "the order of the table; or write by name with df.write.mode('append').save(path).",
            error_class="DELTA_INSERT_COLUMN_ARITY_MISMATCH",
        )
    renamed = frame.toDF(*names)
    return write_table(TableWrite(renamed, location, "overwrite" if overwrite else "append", parsed, must_exist=True))
