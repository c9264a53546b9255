"""Which classes that a table names are made objects of."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql.types import StringType, UserDefinedType

from pyspark_delta.schema.json import parse_type
from pyspark_delta.schema.types import STRING, ArrayType, DataType, MapType, StructField, StructType
from pyspark_delta.spark.engine.write.alignment import spark_type
from pyspark_delta.spark.frames.schemas import to_spark
from pyspark_delta.spark.frames.user_defined_types import is_loadable, with_loadable_types

VECTOR = {"pyClass": "pyspark.ml.linalg.VectorUDT", "class": "org.apache.spark.ml.linalg.VectorUDT"}
HOSTILE = {"type": "udt", "pyClass": "hostile_types.Shape", "serializedClass": "gASVAA==", "sqlType": "string"}


class Shape(UserDefinedType):
    """A type of the user, in a module that is imported."""

    @classmethod
    def sqlType(cls) -> StringType:
        return StringType()

    @classmethod
    def module(cls) -> str:
        return __name__


OWN = {"type": "udt", "pyClass": f"{__name__}.Shape", "serializedClass": "gASVAA==", "sqlType": "string"}


def test_types_of_pyspark_are_found() -> None:
    assert is_loadable(VECTOR)


@pytest.mark.parametrize(
    "name",
    [
        "os.getpid",
        "builtins.dict",
        "pyspark.sql.types.LongType",
        "pyspark.sql.types.UserDefinedType",
        "VectorUDT",
        "no.x",
    ],
)
def test_nothing_but_user_defined_types_is_called(name: str) -> None:
    """PySpark would call whatever a table names."""
    assert not is_loadable({**VECTOR, "pyClass": name})


@pytest.mark.parametrize("name", ["org.apache.spark.util.SparkExitCode", "java.util.HashMap", "org.nowhere.ShapeUDT"])
def test_classes_of_a_jvm_elsewhere_are_not_named(name: str) -> None:
    """The JVM would call their constructors. There is none in this process to ask."""
    assert not is_loadable({**VECTOR, "class": name})


@pytest.fixture
def hostile_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module that can be imported, and leaves a file when it is."""
    trace = tmp_path / "trace"
    (tmp_path / "hostile_types.py").write_text(f"open({str(trace)!r}, 'w').close()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return trace


@pytest.mark.parametrize("shape", [HOSTILE, {"type": "array", "elementType": HOSTILE, "containsNull": True}])
def test_a_module_that_a_table_names_is_not_imported(hostile_module: Path, shape: object) -> None:
    data_type = parse_type(shape)
    schema = StructType((StructField("a", data_type), StructField("m", MapType(STRING, data_type))))
    to_spark(schema)
    spark_type(schema)
    assert not hostile_module.exists()
    assert "hostile_types" not in sys.modules
    assert with_loadable_types(data_type).annotation is None


def test_types_of_imported_modules_are_found_without_the_code_of_the_table() -> None:
    found = with_loadable_types(ArrayType(parse_type(OWN)))
    assert isinstance(found, ArrayType)
    annotation = found.element_type.annotation
    assert annotation is not None
    assert annotation["serializedClass"] == Shape().jsonValue()["serializedClass"] != OWN["serializedClass"]


def test_a_module_that_imports_on_access_is_not_triggered() -> None:
    """`getattr` of a module may run its code."""
    code = (
        "import sys, types\n"
        "lazy = types.ModuleType('lazy')\n"
        "lazy.__getattr__ = lambda name: sys.exit('imported')\n"
        "sys.modules['lazy'] = lazy\n"
        "from pyspark_delta.spark.frames.user_defined_types import is_loadable\n"
        "assert not is_loadable({'pyClass': 'lazy.Shape'})\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_stored_types_stay_as_they_are() -> None:
    plain: DataType = StructType((StructField("l", ArrayType(STRING, contains_null=False), nullable=False),))
    assert with_loadable_types(plain) == plain
