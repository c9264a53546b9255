"""What travels to workers is plain data: plans, schemas, actions, configurations and errors survive pickling."""

from __future__ import annotations

import dataclasses
import inspect
import pickle

import pyarrow as pa
import pytest
from tests.declarations import field, with_features

from pyspark_delta import errors
from pyspark_delta.actions import model
from pyspark_delta.actions.model import DeletionVectorDescriptor
from pyspark_delta.expressions.tree import Column
from pyspark_delta.scan.plan import (
    FromFile,
    Missing,
    PartitionConstant,
    PruningStage,
    ReadContext,
    RowCommitVersion,
    RowId,
    ScanPlan,
    ScanTask,
)
from pyspark_delta.schema.types import (
    BOOLEAN,
    LONG,
    STRING,
    VOID,
    ArrayType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)

ID = StructField("id", LONG, metadata={"delta.columnMapping.id": 1})
NESTED = StructField("n", StructType((StructField("a", ArrayType(MapType(STRING, DecimalType(10, 2)))),)))
VECTOR = DeletionVectorDescriptor(
    storage_type="u", path_or_inline_dv="ab^-aqEH.-t@S}K{vb[*k^", size_in_bytes=34, cardinality=2, offset=1
)
CONTEXT = ReadContext(
    table_location="s3://bucket/table",
    columns=(
        FromFile(ID, ID),
        PartitionConstant(StructField("p", STRING), "col-p"),
        Missing(StructField("v", VOID)),
        RowId(StructField("row_id", LONG), "_row-id"),
        RowCommitVersion(StructField("row_commit_version", LONG), None),
    ),
    output=("id", "p"),
    column_mapping_mode="name",
    residual=Column(("flag",), BOOLEAN),
    storage_options={"region": "eu-west-1"},
)
TASK = ScanTask("part-0.parquet", 100, {"col-p": None}, VECTOR, 7, 3)
PLAN = ScanPlan(
    version=3,
    schema=StructType((ID, NESTED)),
    context=CONTEXT,
    files=pa.table({"path": ["part-0.parquet"]}),
    stages=(PruningStage("partitions", 2, 1, "p = 'a'"),),
)


@pytest.mark.parametrize(
    "value", [CONTEXT, TASK, PLAN, StructType((ID, NESTED)), VECTOR], ids=lambda v: type(v).__name__
)
def test_plan_values_survive_pickling(value: object) -> None:
    assert pickle.loads(pickle.dumps(value)) == value


def test_a_configuration_survives_pickling_with_its_parsed_schema() -> None:
    configuration = with_features("deletionVectors", fields=[field("x", "string")])
    assert configuration.schema.names == ("x",)
    copy = pickle.loads(pickle.dumps(configuration))
    assert copy == configuration
    assert copy.schema == configuration.schema


@pytest.mark.parametrize(
    "plan_class",
    [FromFile, PartitionConstant, Missing, RowId, RowCommitVersion, ReadContext, ScanTask, ScanPlan, PruningStage],
)
def test_plan_values_are_frozen_and_slotted(plan_class: type) -> None:
    _assert_frozen_and_slotted(plan_class)


@pytest.mark.parametrize(
    "name", [n for n, c in inspect.getmembers(model, dataclasses.is_dataclass) if inspect.isclass(c)]
)
def test_actions_are_frozen_and_slotted(name: str) -> None:
    _assert_frozen_and_slotted(getattr(model, name))


ERRORS = [
    errors.TableNotFoundError("/t"),
    errors.VersionNotFoundError(9, 0, 3, "/t"),
    errors.UnsupportedFeatureError(["x", "y"], "write", "Upgrade.", "/t"),
    errors.CorruptLogError("Broken.", path="/t/_delta_log/0.json"),
    errors.MetadataChangedError("Changed.", version=4),
    errors.InvalidOptionError("No.", option="x"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda e: type(e).__name__)
def test_errors_keep_class_text_and_facts(error: errors.DeltaError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


def _assert_frozen_and_slotted(value_class: type) -> None:
    assert dataclasses.is_dataclass(value_class)
    assert value_class.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert "__slots__" in vars(value_class)
