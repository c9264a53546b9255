"""SQL statements on Delta tables without Spark: parsed by `parser`, carried out by `Table`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Literal

import pyarrow as pa

from pyspark_delta.errors import InvalidOptionError
from pyspark_delta.interpreter.execute import execute
from pyspark_delta.interpreter.names import Namespace
from pyspark_delta.interpreter.session import Session
from pyspark_delta.progress import ShowProgress
from pyspark_delta.storage import normalize_location

__all__ = ["sql"]


def sql(
    text: str,
    location: str | PathLike[str] | None = None,
    *,
    catalog: str | None = None,
    schema: str | None = None,
    args: Mapping[str, Any] | Sequence[Any] | None = None,
    engine: Literal["duckdb", "polars"] | None = None,
    storage_options: Mapping[str, str] | None = None,
    progress: ShowProgress = None,
) -> pa.Table:
    """Run one SQL statement without Spark, and return its result with the columns that Spark gives it.

    Tables are named by path, as in ``delta.`/data/t` ``, or by name: `catalog.schema.table` in a connected catalog,
    shorter names in the connected catalog `catalog` and its schema `schema` (`default` without one), or in the folder
    `location`, where `t` is the table in the folder `t` and `s.t` the one in `s/t`. `args` are the values of
    parameters: a mapping for `:name`, a sequence for `?`. `storage_options` are for tables at paths. `progress` is as
    for `Table.append`.

    Statements are those of Delta Lake (VACUUM, OPTIMIZE, RESTORE, DESCRIBE HISTORY, ...), DELETE, UPDATE, MERGE,
    INSERT, CREATE, ALTER and DROP TABLE, SHOW and DESCRIBE. DuckDB or Polars runs queries, whichever `engine` names or
    is installed; conditions and values of other statements are computed by Arrow with Spark's results.

    >>> sql("SELECT count(*) FROM delta.`/data/t` VERSION AS OF 3")      # doctest: +SKIP
    >>> sql("DELETE FROM t WHERE id = :id", "/data", args={"id": 7})     # doctest: +SKIP

    Raises SqlSyntaxError, InvalidOperationError for what is not supported, MissingDependencyError if neither DuckDB nor
    Polars is installed, and the errors of the method of `Table` that the statement calls.
    """
    if location is not None and catalog is not None:
        raise InvalidOptionError("Give either location or catalog: each says where names are looked up.")
    if schema is not None and catalog is None:
        raise InvalidOptionError("A schema is in a catalog: give catalog as well.", option="schema")
    names = Namespace(
        catalog=catalog,
        schema=schema,
        root=None if location is None else normalize_location(location),
        storage_options=dict(storage_options or {}),
    )
    return execute(text, Session(names, engine, progress), args)
