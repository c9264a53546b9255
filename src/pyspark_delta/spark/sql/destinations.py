"""Where a statement makes a new table: at a path, where a catalog says, or at its LOCATION."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.schema.column_paths import quoted
from pyspark_delta.spark.hadoop.default_system import on_default_system
from pyspark_delta.spark.session.identifiers import Identified, identify_or_create
from pyspark_delta.spark.sql.targets import is_path_name
from pyspark_delta.storage import normalize_location
from pyspark_delta.storage.paths import is_absolute

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def destination_of(spark: SparkSession, parts: Sequence[str], location: str | None) -> Identified:
    """Return the place of a table to create or replace. `location` is that of LOCATION; only a new name may have one.

    Raises InvalidOperationError for the name of a table of another format or of a view, and for a location beside a
    name that determines it. Raises AnalysisException if the session catalog has no such schema.
    """
    name = ".".join(map(quoted, parts))
    found = Identified(on_default_system(spark, parts[1])) if is_path_name(parts) else identify_or_create(spark, name)
    if found is None:
        raise InvalidOperationError(
            f"{name} cannot be a Delta table: it is the name of a view or of a table of another format, or its catalog "
            "has no Delta tables. Nothing was changed. Choose another name, or give a path, as in "
            "delta.`/path/to/table`.",
            error_class="DELTA_NOT_A_DELTA_TABLE",
        )
    if found.name is None and found.register is None and not is_absolute(found.path):
        raise InvalidOperationError(
            f"The path '{found.path}' is not absolute. Nothing was changed. Give the whole path, as in "
            "delta.`/path/to/table`.",
            error_class="DELTA_INVALID_CLONE_PATH",
            path=found.path,
        )
    found = replace(found, path=normalize_location(found.path))
    given = None if location is None else normalize_location(on_default_system(spark, location))
    if given is None or (found.name is None and given == found.path):
        return found
    if found.register is None:
        reason = f"is at '{found.path}'" if found.name is None else "is where its catalog says"
        raise InvalidOperationError(
            f"The table {name} {reason}, but LOCATION is '{given}'. Nothing was changed. Leave LOCATION out.",
            error_class="DELTA_TABLE_LOCATION_MISMATCH",
        )
    return replace(found, path=given)
