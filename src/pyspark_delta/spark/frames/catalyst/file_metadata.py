"""The hidden column `_metadata`, with Spark's fields and those of Delta, for plans in which Spark would lose it.

A hidden column is selected by name only. Spark keeps the column of a relation in projections and filters, but not in
the union of files with and without deletion vectors, and it does not know the fields that a Delta table adds. So this
module adds an ordinary column and then hides it, as Spark hides the second key of a natural join.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows

from pyspark_delta.spark.frames.catalyst.jvm import Jvm
from pyspark_delta.spark.frames.catalyst.qualified import frame_of_plan
from pyspark_delta.spark.frames.catalyst.sequences import with_element, with_last

METADATA = "_metadata"
_ROW_INDEX = "row_index"
_IS_METADATA = {"__metadata_col": METADATA}  # lets `DataFrame.metadataColumn` find it
_OUTPUT = 1  # the position of `output` among the members of a `LogicalRelation`


def can_expose(column_names: Iterable[str]) -> bool:
    """Return True if no column of a table is named `_metadata`; Spark would show that column instead."""
    return METADATA not in {name.casefold() for name in column_names}


def with_file_metadata(jvm: Jvm, relation: DataFrame) -> tuple[DataFrame, Sequence[str]]:
    """Return the frame of a relation with Spark's `_metadata` as its last column, and the names of its fields.

    The field `row_index` is left out: Spark would number the rows of every file, even if no query uses the numbers. The
    other fields have one value per batch.
    """
    plan = relation._jdf.queryExecution().analyzed().withMetadataColumns()
    output = plan.output()
    data_type, fields = jvm.once("fields of _metadata", lambda: _fields(jvm, output.last().dataType()))
    visible = with_last(jvm, output.init(), output.last().withDataType(data_type))
    members = with_element(jvm, plan.productIterator().toSeq(), _OUTPUT, visible)
    objects = jvm.once("ClassTag", lambda: jvm.type("scala.reflect.ClassTag").AnyRef())
    return frame_of_plan(relation.sparkSession, plan.makeCopy(members.toArray(objects))), fields


def _fields(jvm: Jvm, struct_type: Any) -> tuple[Any, Sequence[str]]:
    struct = json.loads(struct_type.json())
    struct["fields"] = [field for field in struct["fields"] if field["name"] != _ROW_INDEX]
    return jvm.data_type(json.dumps(struct)), tuple(field["name"] for field in struct["fields"])


def metadata_column(fields: Sequence[str], more: Mapping[str, Column]) -> Column:
    """Return the column `_metadata`, a struct of Spark's `fields` and of the columns in `more`."""
    known = [F.col(f"{METADATA}.{name}").alias(name) for name in fields]
    struct = F.struct(*known, *(column.alias(name) for name, column in more.items()))
    return struct.alias(METADATA, metadata=_IS_METADATA)


def hide_last_column(jvm: Jvm, frame: DataFrame) -> DataFrame:
    """Return the frame with its last column hidden; it can still be selected by name."""
    project = jvm.type("org.apache.spark.sql.catalyst.plans.logical.Project")
    plan = frame._jdf.queryExecution().analyzed()
    output = plan.output()
    visible = project(output.init(), plan)
    tag = jvm.once("hiddenOutputTag", project.hiddenOutputTag)
    visible.setTagValue(tag, output.takeRight(1))
    return frame_of_plan(frame.sparkSession, visible)
