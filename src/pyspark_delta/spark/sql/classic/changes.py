"""ALTER TABLE of the catalogs: from Spark's `TableChange`s to changes of a table."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from pyspark.sql.types import StructField as SparkField
from pyspark.sql.types import StructType as SparkStruct

from pyspark_delta.ddl.alter import Alteration, position_of
from pyspark_delta.ddl.column_changes import NewColumn
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.schema.declaration_keys import CURRENT_DEFAULT
from pyspark_delta.schema.types import StructField
from pyspark_delta.spark.frames.catalyst.jvm import Jvm
from pyspark_delta.spark.frames.catalyst.nodes import kind_of
from pyspark_delta.spark.frames.schemas import from_spark
from pyspark_delta.spark.sql.classic.definitions import quoted_path
from pyspark_delta.spark.sql.classic.relations import CATALYST

_COMMENT = "comment"


def apply_changes(alteration: Alteration, jvm: Jvm, changes: Sequence[Any]) -> None:
    """Make the changes in their order. Properties that one statement sets are one commit, and so are its columns.

    Raises InvalidOperationError for changes that Delta does not know, before anything is written, and as `Alteration`.
    """
    kinds = [kind_of(change) for change in changes]
    for kind in kinds:
        if kind not in _ALONE and kind not in _TOGETHER:
            raise InvalidOperationError(
                f"ALTER TABLE does not support {kind} for Delta tables. Nothing was changed.",
                error_class="DELTA_OPERATION_NOT_ALLOWED",
                sqlstate="0AKDC",
            )
    if {"AddColumn", "DeleteColumn"} <= set(kinds):
        _replace_columns(alteration, jvm, changes)
        return
    if len(set(kinds)) == 1 and kinds[0] in _TOGETHER:
        _TOGETHER[kinds[0]](alteration, jvm, changes)
    elif len(kinds) > 1 and set(kinds) <= _OF_COLUMNS:
        with alteration.together() as collecting:
            for kind, change in zip(kinds, changes, strict=True):
                _ALONE[kind](collecting, jvm, change)
    else:
        for kind, change in zip(kinds, changes, strict=True):
            if kind in _TOGETHER:
                _TOGETHER[kind](alteration, jvm, [change])
            else:
                _ALONE[kind](alteration, jvm, change)


def _set_properties(alteration: Alteration, jvm: Jvm, changes: Sequence[Any]) -> None:
    properties = {str(one.property()): str(one.value()) for one in changes}
    comment = properties.pop(_COMMENT, None)
    if comment is not None:
        alteration.set_comment(comment)
    if properties:
        alteration.set_properties(properties)


def _unset_properties(alteration: Alteration, jvm: Jvm, changes: Sequence[Any]) -> None:
    alteration.unset_properties([str(one.property()) for one in changes], if_exists=True)


def _add_columns(alteration: Alteration, jvm: Jvm, changes: Sequence[Any]) -> None:
    alteration.add_new_columns([_new_column(jvm, one) for one in changes])


def _drop_columns(alteration: Alteration, jvm: Jvm, changes: Sequence[Any]) -> None:
    alteration.drop_columns([_path(one) for one in changes])


def _replace_columns(alteration: Alteration, jvm: Jvm, changes: Sequence[Any]) -> None:
    """Make the changes of REPLACE COLUMNS: Spark drops all columns, and then adds those of the statement."""
    by_kind = {kind: list(group) for kind, group in groupby(changes, kind_of)}
    dropped = [_names(one) for one in by_kind["DeleteColumn"]]
    if list(by_kind) != ["DeleteColumn", "AddColumn"] or len(dropped) != len(alteration.open_snapshot().schema):
        raise InvalidOperationError(
            "A statement cannot add some columns and drop others; use two. Nothing was changed.",
            error_class="DELTA_OPERATION_NOT_ALLOWED",
            sqlstate="0AKDC",
        )
    alteration.replace_columns([_field(jvm, one) for one in by_kind["AddColumn"]])


def _rename(alteration: Alteration, jvm: Jvm, change: Any) -> None:
    alteration.rename_column(_path(change), str(change.newName()))


def _change_type(alteration: Alteration, jvm: Jvm, change: Any) -> None:
    alteration.change_type(_path(change), _spark_field(jvm, "column", change.newDataType(), True))


def _change_comment(alteration: Alteration, jvm: Jvm, change: Any) -> None:
    comment = change.newComment()
    alteration.set_column_comment(_path(change), None if comment is None else str(comment))


def _change_nullability(alteration: Alteration, jvm: Jvm, change: Any) -> None:
    alteration.set_nullable(_path(change), bool(change.nullable()))


def _move(alteration: Alteration, jvm: Jvm, change: Any) -> None:
    first, after = _position(change.position())
    alteration.move_column(_path(change), first=first, after=after)


def _change_default(alteration: Alteration, jvm: Jvm, change: Any) -> None:
    text = change.newDefaultValue()
    alteration.set_default(_path(change), str(text) if text else None)


def _cluster(alteration: Alteration, jvm: Jvm, change: Any) -> None:
    columns = [tuple(map(str, column.fieldNames())) for column in change.clusteringColumns()]
    alteration.cluster_by([quoted_path(column) for column in columns])


_TOGETHER: dict[str, Callable[[Alteration, Jvm, Sequence[Any]], None]] = {
    "SetProperty": _set_properties,
    "RemoveProperty": _unset_properties,
    "AddColumn": _add_columns,
    "DeleteColumn": _drop_columns,
}
"""The kinds of changes that one commit makes together, however many a statement has."""

_ALONE: dict[str, Callable[[Alteration, Jvm, Any], None]] = {
    "RenameColumn": _rename,
    "UpdateColumnType": _change_type,
    "UpdateColumnComment": _change_comment,
    "UpdateColumnNullability": _change_nullability,
    "UpdateColumnPosition": _move,
    "UpdateColumnDefaultValue": _change_default,
    "ClusterBy": _cluster,
}

_OF_COLUMNS = {kind for kind in _ALONE if kind.startswith("UpdateColumn")}


def _names(change: Any) -> tuple[str, ...]:
    return tuple(map(str, change.fieldNames()))


def _path(change: Any) -> str:
    return quoted_path(_names(change))


def _new_column(jvm: Jvm, change: Any) -> NewColumn:
    first, after = _position(change.position())
    return NewColumn(_field(jvm, change), _names(change)[:-1], position_of(first=first, after=after))


def _position(position: Any) -> tuple[bool, str | None]:
    if position is None:
        return False, None
    return (True, None) if kind_of(position) == "First" else (False, quoted_path((str(position.column()),)))


def _field(jvm: Jvm, change: Any) -> StructField:
    name, comment, default = _names(change)[-1], change.comment(), change.defaultValue()
    metadata = {} if comment is None else {_COMMENT: str(comment)}
    if default is not None:
        metadata[CURRENT_DEFAULT] = str(default.getSql())
    return _spark_field(jvm, name, change.dataType(), bool(change.isNullable()), metadata)


def _spark_field(
    jvm: Jvm, name: str, data_type: Any, nullable: bool, metadata: dict[str, str] | None = None
) -> StructField:
    struct = jvm.type("org.apache.spark.sql.types.StructType")().add(name, data_type, nullable)
    struct = jvm.type(f"{CATALYST}.util.CharVarcharUtils").replaceCharVarcharWithStringInSchema(struct)
    field = SparkStruct.fromJson(json.loads(struct.json())).fields[0]
    field = SparkField(name, field.dataType, nullable, {**field.metadata, **(metadata or {})})
    return from_spark(lambda: SparkStruct([field])).fields[0]
