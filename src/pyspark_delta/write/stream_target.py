"""The table that a stream is written to, when it is made before the first batch."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark_delta.ddl.create import CreateMode, TableDefinition, create_table
from pyspark_delta.schema.column_paths import parse_column_path
from pyspark_delta.schema.types import StructType
from pyspark_delta.transaction.commit_info import engine_info
from pyspark_delta.transaction.new_table import stored_columns
from pyspark_delta.write.options import WriteOptions


def create_for_stream(
    location: str, data: StructType, options: WriteOptions, engine: str, defaults: Mapping[str, str] | None = None
) -> None:
    """Create the table of a stream with the columns `data`, unless it exists.

    `engine` is for the history, and `defaults` are properties of the session. Raises as `create_table`.
    """
    create_table(
        location,
        TableDefinition(
            schema=stored_columns(data),
            partition_columns=options.partition_by or (),
            clustering=tuple(parse_column_path(column) for column in options.cluster_by),
            properties=options.properties,
            defaults=defaults or {},
        ),
        CreateMode.CREATE_IF_NOT_EXISTS,
        storage_options=options.files.storage_options,
        catalog_table=options.catalog_table,
        engine_info=engine_info(engine),
    )
