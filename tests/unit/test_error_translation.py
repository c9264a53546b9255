"""A DeltaError that Spark turned into text comes back with its class, its message and its facts."""

from __future__ import annotations

import ast
import inspect
import os
import pickle
import subprocess
import sys
import traceback
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, IllegalArgumentException, ParseException, PySparkException

from pyspark_delta import errors
from pyspark_delta.errors import (
    CatalogNameNotFoundError,
    CommitConflictError,
    DeltaError,
    InvalidOptionError,
    SchemaMismatchError,
    SqlSyntaxError,
    StorageError,
    TableAlreadyExistsError,
    TableNotFoundError,
    VersionNotFoundError,
    annotate,
    from_text,
    translate,
)


def as_spark_reports(error: DeltaError) -> AnalysisException:
    """The exception that Spark makes of an error in a Python Data Source."""
    try:
        with annotate():
            raise error
    except DeltaError:
        text = traceback.format_exc()
    return AnalysisException(f"[PYTHON_DATA_SOURCE_ERROR] Failed to create Python data source reader: {text}")


def test_the_class_comes_back() -> None:
    with pytest.raises(TableNotFoundError, match="no Delta table at '/no/table'") as raised, translate():
        raise as_spark_reports(TableNotFoundError("/no/table"))
    assert raised.value.error_class == "DELTA_TABLE_NOT_FOUND"
    assert raised.value.sqlstate == "42P01"


def test_facts_are_attributes_again() -> None:
    with pytest.raises(VersionNotFoundError) as raised, translate():
        raise as_spark_reports(VersionNotFoundError(9, 2, 7, "/t"))
    assert (raised.value.requested, raised.value.earliest, raised.value.latest) == (9, 2, 7)
    assert raised.value.facts["requested"] == 9


def test_a_message_of_several_lines_is_kept() -> None:
    error = InvalidOptionError("First line.\nSecond: [odd] 'line'.", error_class="DELTA_SPECIAL")
    found = from_text(str(as_spark_reports(error)))
    assert found is not None
    assert str(found) == str(error)


def test_a_fact_that_json_lacks_does_not_hide_the_error() -> None:
    found = from_text(str(as_spark_reports(StorageError("It broke.", path="/a"))))
    assert isinstance(found, StorageError)
    error = InvalidOptionError("Odd.", value={1, 2}, blob=b"x")
    assert isinstance(from_text(str(as_spark_reports(error))), InvalidOptionError)


def test_other_errors_pass_unchanged() -> None:
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW"), translate():
        raise AnalysisException("[TABLE_OR_VIEW_NOT_FOUND] no table")
    with pytest.raises(KeyError), translate():
        raise KeyError("x")


def test_a_delta_error_itself_passes_unchanged() -> None:
    error = TableNotFoundError("/t")
    with pytest.raises(TableNotFoundError) as raised, translate():
        raise error
    assert raised.value is error


def test_translate_decorates_functions() -> None:
    @translate()
    def read() -> None:
        raise as_spark_reports(TableNotFoundError("/t"))

    with pytest.raises(TableNotFoundError):
        read()


def test_the_translated_error_can_be_pickled() -> None:
    found = from_text(str(as_spark_reports(VersionNotFoundError(9, 2, 7))))
    copy = pickle.loads(pickle.dumps(found))
    assert isinstance(copy, VersionNotFoundError)
    assert str(copy) == str(found)
    assert copy.requested == 9


def test_the_last_error_of_a_chain_counts() -> None:
    first = str(as_spark_reports(TableNotFoundError("/first")))
    second = str(as_spark_reports(InvalidOptionError("Second.")))
    assert isinstance(from_text(f"{first}\nDuring handling of the above exception ...\n{second}"), InvalidOptionError)


@pytest.mark.parametrize(
    "cls",
    [c for c in vars(errors).values() if inspect.isclass(c) and issubclass(c, DeltaError)],
    ids=lambda c: c.__name__,
)
def test_every_class_of_the_tree_comes_back(cls: type[DeltaError]) -> None:
    error = cls.__new__(cls)
    Exception.__init__(error, "Something happened.")
    error.message, error.facts = "Something happened.", {"path": "/a"}
    assert type(from_text(str(as_spark_reports(error)))) is cls


@pytest.mark.parametrize(
    ("cls", "base"),
    [
        (CatalogNameNotFoundError, AnalysisException),
        (CommitConflictError, PySparkException),
        (InvalidOptionError, IllegalArgumentException),
        (SchemaMismatchError, AnalysisException),
        (SqlSyntaxError, ParseException),
        (TableAlreadyExistsError, AnalysisException),
        (TableNotFoundError, AnalysisException),
        (VersionNotFoundError, AnalysisException),
    ],
    ids=lambda c: c.__name__,
)
def test_clauses_that_name_an_exception_of_pyspark_catch_it(cls: type[DeltaError], base: type[Exception]) -> None:
    assert issubclass(cls, base)
    assert cls.__str__ is not base.__str__  # the text is that of DeltaError


def test_they_catch_it_if_pyspark_is_imported_after_the_errors() -> None:
    code = (
        "from pyspark_delta.errors import InvalidOptionError, TableNotFoundError\n"
        "from pyspark.errors import AnalysisException, IllegalArgumentException\n"
        "for error in (TableNotFoundError('/nowhere'), InvalidOptionError('Why.')):\n"
        "    print(isinstance(error, AnalysisException), isinstance(error, IllegalArgumentException))"
    )
    path = os.pathsep.join([str(Path(errors.__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.splitlines() == ["True False", "True True"]


def test_every_error_is_in_the_one_package_that_translation_knows() -> None:
    package = Path(errors.__file__).parent
    known = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, DeltaError)}
    elsewhere = [
        f"{path.name}: {node.name}"
        for path in package.parent.rglob("*.py")
        if path.parent != package or path.name == "__init__.py"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and any(isinstance(b, ast.Name) and b.id in known for b in node.bases)
    ]
    assert elsewhere == ["contract.py: EngineDeclined"]  # it never leaves its engine
