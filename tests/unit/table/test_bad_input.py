"""Every entry of `Table` refuses bad input with one sentence, commits nothing, and leaves no file behind."""

from __future__ import annotations

import os
import resource
import shutil
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from pyspark_delta.errors import (
    ConstraintViolationError,
    DeltaError,
    InvalidOperationError,
    InvalidOptionError,
    InvalidPredicateError,
    PermissionDeniedError,
    SchemaMismatchError,
    StorageError,
)
from pyspark_delta.storage import intercepted, store_for
from pyspark_delta.table import Table
from pyspark_delta.testing.faults import Fault, FaultyStore

SCHEMA = (
    "id BIGINT NOT NULL, n INT, s STRING, d DECIMAL(5, 2), v VARCHAR(3), day DATE, at TIMESTAMP, "
    "st STRUCT<a: INT, x: STRING>, p STRING"
)
Act = Callable[[Table], object]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """One table for all tests, because none of them may change it: partitions, a constraint, the change feed."""
    made = Table.create(
        tmp_path_factory.mktemp("bad input") / "table",
        SCHEMA,
        partition_by=["p"],
        properties={"delta.enableChangeDataFeed": True, "delta.constraints.small": "n IS NULL OR n < 1000000"},
    )
    made.append({"id": [1, 2, 3], "n": [1, 2, 3], "p": ["a", "a", "b"]})
    return made


def files_in(path: str | Path) -> list[str]:
    """Every file below the folder of a table and beside it, hidden ones too."""
    return sorted(str(file) for file in Path(path).parent.rglob("*") if file.is_file())


@contextmanager
def unchanged(table: Table) -> Iterator[None]:
    """The block leaves the table as it was."""
    before, version = files_in(table.location), Table.open(table.location).version
    yield
    assert files_in(table.location) == before
    assert Table.open(table.location).version == version


def check_refused(table: Table, act: Act, error: Any, why: str) -> None:
    with unchanged(table), pytest.raises(error, match=f"(?s){why}") as raised:
        act(table)
    assert isinstance(raised.value, DeltaError | TypeError | ValueError)
    text = str(raised.value)
    assert "Traceback" not in text
    assert "object at 0x" not in text


# ----------------------------------------------------------------------------------------------------------- sources
def rows(first: int, count: int = 2000, **columns: Any) -> pa.RecordBatch:
    """Good rows, and columns that may be bad."""
    good = {"id": pa.array(range(first, first + count), pa.int64()), "p": ["a", "b"] * (count // 2)}
    return pa.record_batch({**good, **columns})


def one(**columns: Any) -> Any:
    """A row with an id."""
    return lambda: pa.table({"id": [1], **columns})


def values(**columns: Any) -> Any:
    """Python values of a row with an id."""
    return lambda: {"id": [1], **{name: [value] for name, value in columns.items()}}


def read_reader() -> pa.RecordBatchReader:
    reader = pa.table({"id": [1], "p": ["a"]}).to_reader()
    Table.write(f"memory://{uuid.uuid4().hex}/table", reader)
    return reader


def other_schema() -> Iterator[pa.RecordBatch]:
    yield rows(10)
    yield pa.record_batch({"id": ["a"]})


def other_things() -> Iterator[object]:
    yield rows(10)
    yield 5


def vanished(directory: str = "/tmp") -> ds.Dataset:
    path = Path(directory, f"vanished-{os.getpid()}.parquet")
    pq.write_table(pa.table({"id": [1]}), path)
    dataset = ds.dataset(path)
    path.unlink()
    return dataset


def closed_duckdb() -> object:
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed; `make test` installs it")
    connection = duckdb.connect()
    relation = connection.sql("select 1::bigint id")
    connection.close()
    return relation


def failing_duckdb() -> object:
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed; `make test` installs it")
    query = "select i::bigint id, cast(if(i > 400000, 'x', '1') as int) n from range(500000) t(i)"
    return duckdb.connect().sql(query)


def failing_polars() -> object:
    polars = pytest.importorskip("polars", reason="polars is not installed; `make test` installs it")
    return polars.LazyFrame({"id": [1]}).select(polars.col("none"))


def odd_pandas() -> object:
    return pytest.importorskip("pandas").DataFrame({"id": [1, "a"]})


def last_of_many() -> Iterator[pa.RecordBatch]:
    for number in range(20):
        yield rows(number * 2000, n=pa.array([1] * 2000, pa.int32()))
    yield rows(0, 2, n=pa.array([1, 1_000_000], pa.int32()))


MISMATCH, VIOLATION, OPERATION = SchemaMismatchError, ConstraintViolationError, InvalidOperationError
SOURCES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "an unknown column": (one(nn=[1]), MISMATCH, "nn .*not a column of the table; did you mean 'n'.*merge_schema"),
    "an unknown nested column": (one(st=[{"aa": 1}]), MISMATCH, r"st\.aa .*did you mean 'a'"),
    "columns that differ in case": (one(ID=[2]), MISMATCH, "same name, ignoring case: 'id' and 'ID'. Rename or drop"),
    "columns twice": (lambda: pa.table([[1], [2]], names=["id", "id"]), MISMATCH, "same name"),
    "another kind of type": (one(n=["a"]), MISMATCH, "n .*integer.*string.*Cast the columns"),
    "another kind of value": (values(n="a"), MISMATCH, "column 'n' are not of the type integer: 'a' is not.*Correct"),
    "an integer too large": (one(n=[2**40]), VIOLATION, "value 1099511627776 does not fit .* column 'n'.*Cast or"),
    "a value too large": (values(n=2**40), MISMATCH, "column 'n' are not .* 1099511627776 is not"),
    "more than 64 bits": (lambda: {"id": [1, 2**70]}, MISMATCH, f"'id' are not .* {2**70} is not"),
    "unsigned": (lambda: pa.table({"id": pa.array([2**63], pa.uint64())}), VIOLATION, f"{2**63} .* column 'id'"),
    "digits that would be lost": (one(d=[Decimal("1.234")]), MISMATCH, "d .*digits after the decimal point"),
    "a decimal's digits": (values(d=Decimal("1.234")), MISMATCH, r"'d' are not .*decimal\(5,2\): Decimal\('1.234'\)"),
    "a decimal too large": (
        one(d=pa.array([Decimal("12345.6")], pa.decimal128(10, 1))),
        VIOLATION,
        "value 12345.6 does not fit .* column 'd'",
    ),
    "a float for a decimal": (one(d=[1.5]), MISMATCH, "d .*values could be rounded"),
    "a time for a date": (one(day=[datetime(2024, 1, 1)]), MISMATCH, "day .*date.*Cast"),
    "text for a date": (values(day="2024-01-01"), MISMATCH, "'day' are not of the type date: '2024-01-01' is not"),
    "a time out of range": (
        one(at=pa.array([2**60], pa.timestamp("s", "UTC"))),
        VIOLATION,
        f"value {2**60} does not fit .* column 'at'",
    ),
    "nanoseconds": (one(at=pa.array([1], pa.timestamp("ns", "UTC"))), VIOLATION, "column 'at'.*lose data: 1"),
    "a text too long": (one(v=["abcd"]), VIOLATION, "'v' is longer.* - v : abcd"),
    "null": (lambda: {"id": [1, None]}, VIOLATION, "'id' is NOT NULL.*Fill or filter"),
    "an absent column": (lambda: {"n": [1]}, VIOLATION, "'id' is NOT NULL.*Add the column"),
    "intervals": (one(x=[timedelta(1)]), MISMATCH, "x .*not a column of the table"),
    "a number": (lambda: 5, TypeError, "int holds no rows. Give a PyArrow table"),
    "a path": (lambda: Path("x.parquet"), TypeError, "PosixPath holds no rows. Give"),
    "a class": (lambda: pa.Table, TypeError, "holds no rows. Give"),
    "a column of one value": (lambda: {"id": 1}, TypeError, "column 'id' of the data must be a list.*int 1"),
    "a column of text": (lambda: {"s": "abc"}, TypeError, "column 's' of the data must be a list.*str 'abc'"),
    "lengths": (lambda: {"id": [1], "n": [1, 2]}, MISMATCH, "different lengths"),
    "lists of lists": (lambda: [[1]], TypeError, "holds list, not rows"),
    "dicts and numbers": (lambda: [{"id": 1}, 5], TypeError, "holds int among dicts"),
    "rows without columns": (lambda: [{}], MISMATCH, "have no columns"),
    "several types": (lambda: [{"id": 1, "zz": "a"}, {"id": 2, "zz": 1}], MISMATCH, "'zz' are not of one type"),
    "no batch": (lambda: iter([]), OPERATION, "no batch and no row"),
    "a reader that was read": (read_reader, OPERATION, "can be read only once.*Open it again"),
    "batches of another schema": (other_schema, MISMATCH, "different schemas: first .*id: int64.* then .*id: string"),
    "other things after batches": (other_things, TypeError, "holds int after a record batch"),
    "later columns": (lambda: ({"id": i} if i < 65_000 else {"no": 1} for i in range(65_001)), MISMATCH, "Later rows"),
    "a file that vanished": (vanished, OPERATION, "rows of the .*Dataset cannot be read: .*vanished.*open it again"),
    "a closed connection": (closed_duckdb, OPERATION, "DuckDBPyRelation cannot be read: .*already been closed"),
    "a query that fails late": (failing_duckdb, OPERATION, "cannot be read: .*Could not convert string 'x'"),
    "a lazy frame that fails": (failing_polars, OPERATION, 'LazyFrame cannot be read: .*"none"'),
    "a frame of objects": (odd_pandas, OPERATION, "DataFrame of pandas cannot be converted .*'a'"),
    "a violation in the last batch": (last_of_many, VIOLATION, "constraint 'small'.* - n : 1000000"),
}
WRITES: dict[str, Callable[[Table, Any], object]] = {
    "append": lambda table, data: table.append(data, max_records_per_file=1000),
    "write": lambda table, data: Table.write(table.location, data, mode="append"),
    "overwrite": lambda table, data: table.overwrite(data, max_records_per_file=1000),
    "overwrite dynamically": lambda table, data: table.overwrite(data, partitions="dynamic"),
    "overwrite where": lambda table, data: table.overwrite(data, where="p IS NULL OR id >= 0"),
}


def merge(table: Table, data: Any) -> object:
    clauses = table.merge(data, "target.id = source.id").when_matched_update({"p": "source.p"})
    return clauses.when_not_matched_insert({"id": "source.id", "p": "source.p"}).execute()


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("source", SOURCES)
def test_rows_that_cannot_be_written_are_refused(table: Table, source: str, write: str) -> None:
    make, error, why = SOURCES[source]
    if write == "write":  # no table gives Python values their types
        error, why = DeltaError if issubclass(error, DeltaError) else error, ""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_refused(table, lambda found: WRITES[write](found, make()), error, why)


# What merges refuse besides is tested with their engine.
@pytest.mark.parametrize("source", [name for name, (_, error, _) in SOURCES.items() if error is not VIOLATION])
def test_rows_that_cannot_be_merged_are_refused(table: Table, source: str) -> None:
    check_refused(table, lambda found: merge(found, SOURCES[source][0]()), (DeltaError, TypeError, ValueError), "")


@pytest.mark.parametrize("as_reader", [False, True], ids=["iterator", "reader"])
@pytest.mark.parametrize("error", [RuntimeError("the line is down"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("write", [*WRITES, "merge"])
def test_what_a_source_raises_half_way_is_raised(
    table: Table, write: str, error: BaseException, as_reader: bool
) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield rows(0)
        yield rows(2000)
        raise error

    source = pa.RecordBatchReader.from_batches(rows(0).schema, failing()) if as_reader else failing()
    with unchanged(table), pytest.raises(type(error)) as raised:
        {**WRITES, "merge": merge}[write](table, source)
    assert raised.value is error


# --------------------------------------------------------------------------------------------------------- arguments
GOOD = {"id": [1, 9], "n": [5, 6], "p": ["a", "b"]}
PREDICATE, OPTION = InvalidPredicateError, InvalidOptionError


def merging(**clause: Any) -> Act:
    """A merge with one clause for matched rows."""
    return lambda t: t.merge(GOOD, "target.id = source.id").when_matched_update(**clause).execute()


def on(condition: Any, **more: Any) -> Act:
    return lambda t: t.merge(GOOD, condition, **more).when_matched_delete().execute()


def creating(schema: Any = "id INT, p INT", **more: Any) -> Act:
    return lambda t: Table.create(f"{t.location} 2", schema, **more)


ARGUMENTS: dict[str, tuple[Act, type[Exception], str]] = {
    "delete: number": (lambda t: t.delete(5), TypeError, "where must be a string or None, found int 5"),
    "delete: unknown": (lambda t: t.delete("idd = 1"), PREDICATE, "no column 'idd' in the table. Did you mean 'id'"),
    "delete: syntax": (lambda t: t.delete("id ="), PREDICATE, "Cannot parse the condition 'id ='"),
    "delete: nothing": (lambda t: t.delete(""), PREDICATE, "Expected one condition"),
    "delete: random": (lambda t: t.delete("rand() > 0.5"), PREDICATE, r"not deterministic: rand\(\)"),
    "delete: plan": (lambda t: t.delete("id = 1", plan="no"), TypeError, "plan must be True or False, found str 'no'"),
    "txn: text": (lambda t: t.delete("id = 1", txn="x"), OPTION, r"txn is the id .* found 'x'"),
    "txn: no id": (lambda t: t.append(GOOD, txn=(None, 1)), OPTION, r"txn is the id .* found \(None, 1\)"),
    "txn: no number": (lambda t: t.append(GOOD, txn=("a", True)), OPTION, r"txn is the id .* found \('a', True\)"),
    "txn: negative": (lambda t: t.update({"n": "1"}, txn=("a", -1)), OPTION, "txn is the id"),
    "commit_info: number": (lambda t: t.delete("id = 1", commit_info=5), TypeError, "commit_info must be .* int 5"),
    "commit_info: object": (lambda t: t.append(GOOD, commit_info={"a": object}), TypeError, "commit_info .*JSON"),
    "commit_info: surrogate": (lambda t: t.delete("id = 1", commit_info="\ud800"), OPERATION, "unpaired surrogate"),
    "update: unknown": (lambda t: t.update({"nn": "1"}), OPERATION, "no column 'nn' .* Did you mean 'n'"),
    "update: twice": (lambda t: t.update({"n": "1", "N": "2"}), OPERATION, "gives the column 'n' two values"),
    "update: number": (lambda t: t.update({"n": 1}), TypeError, "value of 'n' is SQL text, found int 1"),
    "update: list": (lambda t: t.update([("n", "1")]), TypeError, "values must be a dict"),
    "update: nothing": (lambda t: t.update({}), ValueError, "values must hold a column"),
    "update: syntax": (lambda t: t.update({"n": "1 +"}), PREDICATE, r"Cannot parse .*'1 \+'"),
    "update: unknown in a value": (lambda t: t.update({"n": "nn + 1"}), PREDICATE, "no column 'nn' .* mean 'n'"),
    "update: unknown in where": (lambda t: t.update({"n": "1"}, "idd = 1"), PREDICATE, "'idd' .* mean 'id'"),
    "update: too large": (lambda t: t.update({"n": "n + 2147483647"}), DeltaError, "overflow"),
    "merge: on": (on(5), TypeError, "on must be a string, found int 5"),
    "merge: on unknown": (on("target.idd = source.id"), PREDICATE, "no column 'idd' in 'target'. Did you mean 'id'"),
    "merge: on unknown source": (on("target.id = source.idd"), PREDICATE, "no column 'idd' in 'source'. Did you"),
    "merge: on alias": (on("t.id = source.id"), PREDICATE, "'t' in .* names neither side"),
    "merge: on bare": (on("target.id = zz"), PREDICATE, "no column 'zz' on either side"),
    "merge: alias": (on("a.id = target.id", source_alias=1), TypeError, "source_alias must be a string, found int 1"),
    "merge: no clause": (lambda t: t.merge(GOOD, "target.id = source.id").execute(), OPERATION, "at least one clause"),
    "merge: values": (merging(values="n = 1"), TypeError, "values must be a dict of columns.*found str 'n = 1'"),
    "merge: number": (merging(values={"n": 1}), TypeError, "SQL text, found int 1"),
    "merge: unknown": (merging(values={"nn": "1"}), OPERATION, "no column 'nn' .* Did you mean 'n'"),
    "merge: unknown value": (merging(values={"n": "source.nn"}), PREDICATE, "no column 'nn' in 'source'"),
    "merge: condition": (merging(values={"n": "1"}, condition=5), TypeError, "condition must be .* found int 5"),
    "overwrite: where": (lambda t: t.overwrite(GOOD, where=5), TypeError, "where must be .* found int 5"),
    "overwrite: unknown": (lambda t: t.overwrite(GOOD, where="idd = 1"), PREDICATE, "'idd' .* Did you mean 'id'"),
    "overwrite: not met": (lambda t: t.overwrite(GOOD, where="id = 1"), VIOLATION, "does not meet .* - id : 9"),
    "overwrite: partitions": (lambda t: t.overwrite(GOOD, partitions="x"), OPTION, "partitions is 'dynamic' or None"),
    "overwrite: flag": (lambda t: t.overwrite(GOOD, overwrite_schema="no"), TypeError, "overwrite_schema .* str 'no'"),
    "overwrite: data_change": (lambda t: t.overwrite(GOOD, data_change=0), TypeError, "data_change must .* int 0"),
    "overwrite: partition_by": (lambda t: t.overwrite(GOOD, partition_by="p"), TypeError, "must be a list of strings"),
    "overwrite: other": (lambda t: t.overwrite(GOOD, partition_by=["n"]), OPTION, "partitioned by p"),
    "append: flag": (lambda t: t.append(GOOD, merge_schema="no"), TypeError, "merge_schema must be True or False"),
    "append: rows": (lambda t: t.append(GOOD, max_records_per_file=0), OPTION, "max_records_per_file is a whole"),
    "append: size": (lambda t: t.append(GOOD, target_file_size=-1), OPTION, "target_file_size is a whole number"),
    "append: compression": (lambda t: t.append(GOOD, compression="zip"), OPTION, "'zip' is not a compression"),
    "append: old": (lambda t: Table.open(t.location, version=0).append(GOOD), OPERATION, "opened at version 0"),
    "write: mode": (lambda t: Table.write(t.location, GOOD, mode="add"), OPTION, "'add' is not a save mode"),
    "write: number": (lambda t: Table.write(t.location, GOOD, mode=5), OPTION, "'5' is not a save mode"),
    "write: location": (lambda t: Table.write(5, GOOD), TypeError, "location must be a path, found int 5"),
    "create: schema": (creating(["id"]), TypeError, "list is not a schema. Give"),
    "create: twice": (creating("id INT, ID INT"), MISMATCH, "'id' and 'ID'"),
    "create: type": (creating("id NOTYPE"), OPERATION, "NOTYPE"),
    "create: name": (creating({5: "INT"}), TypeError, "name of a column must be a string, found int 5"),
    "create: characters": (creating({"a b": "INT"}), MISMATCH, "'a b' holds ' '"),
    "create: partition_by": (creating(partition_by="p"), TypeError, "partition_by must be a list of strings.* str 'p'"),
    "create: no partition": (creating(partition_by=["q"]), OPERATION, "'q' is not one of the columns"),
    "create: cluster_by": (creating(cluster_by=["q"]), OPERATION, "no column 'q'"),
    "create: property": (creating(properties={"delta.apendOnly": 1}), OPTION, "Did you mean 'delta.appendOnly'"),
    "create: properties": (creating(properties=["a"]), TypeError, "properties must be a dict"),
    "create: description": (creating(description=5), TypeError, "description must be a string or None, found int 5"),
    "create: default": (creating("id INT DEFAULT zz"), OPERATION, "default of the column 'id' is zz"),
    "create: generated": (creating("id INT, g INT GENERATED ALWAYS AS (zz)"), OPERATION, "'g' refers to .* 'zz'"),
    "create: if_exists": (creating(if_exists="x"), OPTION, "if_exists is one of error, ignore, replace"),
    "alter: same": (lambda t: t.alter().add_column("ID", "INT"), OPERATION, "a column 'id' already exists"),
    "alter: type": (lambda t: t.alter().add_column("x", "NOTYPE"), OPERATION, "NOTYPE"),
    "alter: no type": (lambda t: t.alter().add_column("x", None), TypeError, "type of the column 'x'"),
    "alter: after": (lambda t: t.alter().add_column("x", "INT", after="idd"), OPERATION, "'idd'. Did you mean 'id'"),
    "alter: unknown": (lambda t: t.alter().set_not_null("nn"), OPERATION, "'nn'. Did you mean 'n'"),
    "alter: null": (lambda t: t.alter().set_not_null("s"), VIOLATION, "violate the NOT NULL column 's'.*'s': None"),
    "alter: narrower": (lambda t: t.alter().change_type("id", "INT"), MISMATCH, "'id' of type long cannot become"),
    "alter: comment": (lambda t: t.alter().set_comment(5), TypeError, "comment must be a string or None, found int 5"),
    "alter: column": (lambda t: t.alter().set_column_comment("id", 5), TypeError, "comment must be .* found int 5"),
    "alter: default": (lambda t: t.alter().set_default("n", 1), TypeError, "expression must be a string, found int 1"),
    "alter: constraint": (lambda t: t.alter().add_constraint("c", "idd > 0"), OPERATION, "'idd'.* Did you mean 'id'"),
    "alter: violated": (lambda t: t.alter().add_constraint("c", "id > 1"), VIOLATION, "'id': 1"),
    "alter: property": (lambda t: t.alter().set_properties({"delta.appendOnly": "x"}), OPTION, "'x' must be true or"),
    "alter: properties": (lambda t: t.alter().set_properties(["a"]), TypeError, "properties must be a dict"),
    "alter: unset": (lambda t: t.alter().unset_properties("zz"), OPERATION, "'zz' is not set"),
    "scan: where": (lambda t: t.scan(where=5), TypeError, "where must be a string or None, found int 5"),
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_arguments_that_are_wrong_are_named(table: Table, case: str) -> None:
    check_refused(table, *ARGUMENTS[case])


# ------------------------------------------------------------------------------------------------------------ stores
CHANGES: dict[str, Act] = {
    **{name: lambda t, write=write: write(t, GOOD) for name, write in WRITES.items()},  # type: ignore[misc]
    "overwrite where": lambda t: t.overwrite({"id": [1], "p": ["a"]}, where="id = 1"),
    "delete": lambda t: t.delete("id = 1"),
    "update": lambda t: t.update({"n": "n + 1"}, "id = 1"),
    "merge": lambda t: merge(t, GOOD),
    "alter": lambda t: t.alter().set_comment("text"),
}


def denied(path: str) -> BaseException:
    return PermissionDeniedError(f"No permission to write '{path}'.", path=path)


@pytest.mark.parametrize("vectors", [False, True], ids=["rewriting", "vectors"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_store_that_refuses_a_file_is_left_as_it_was(tmp_path: Path, change: str, vectors: bool) -> None:
    """Each new file in turn cannot be opened, or cannot be closed; and the commit is refused."""
    properties = {"delta.enableChangeDataFeed": True, "delta.enableDeletionVectors": vectors}
    ready = tmp_path / "ready" / "table"
    Table.create(ready, "id BIGINT, n INT, p STRING", partition_by=["p"], properties=properties).append(
        {"id": [1, 2, 3], "n": [1, 2, 3], "p": ["a", "a", "b"]}
    )
    faults = [Fault(kind="write_if_absent", path_part=".json", raises=denied)]
    faults += [Fault(kind="open_output", nth=nth, raises=denied) for nth in (1, 2, 3, 4)]
    faults += [Fault(kind="open_output", nth=nth, when="after", raises=denied) for nth in (1, 2, 3, 4)]
    faults += [Fault(kind="any", path_part="deletion_vector", raises=denied)]
    refused = [_is_refused(ready, tmp_path / str(n), CHANGES[change], fault) for n, fault in enumerate(faults)]
    assert refused.count(True) >= (1 if change == "alter" else 2)


def _is_refused(ready: Path, directory: Path, act: Act, fault: Fault) -> bool:
    """Whether the change has so many calls that the fault occurs; then everything is as before."""
    shutil.copytree(ready.parent, directory)
    table = Table.open(directory / ready.name)
    store = FaultyStore(store_for(table.location), fault)
    with intercepted(lambda _: store):
        before = files_in(table.location)
        try:
            act(table)
        except PermissionDeniedError:
            assert store.struck
            assert files_in(table.location) == before
            return True
    assert not store.struck
    return False


def test_a_full_disk_is_named(table: Table) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2048, hard))
    try:
        for write in WRITES.values():
            check_refused(table, lambda t, write=write: write(t, rows(0)), StorageError, "Cannot write '.*part-")  # type: ignore[misc]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize(
    "data_type",
    ["INT NOT NULL", "INT, b INT", "STRING COLLATE UNICODE_CI", "ARRAY<STRING COLLATE UNICODE_CI>", "INT x", ""],
)
def test_the_text_of_a_type_holds_nothing_else(tmp_path: Path, data_type: str) -> None:
    """It would be ignored: the column would be null, or compare in another way than declared."""
    table = Table.create(tmp_path, "id INT")
    with pytest.raises(InvalidOperationError, match=r"and nothing else|collations"):
        table.alter().add_column("z", data_type)
    assert Table.open(tmp_path).version == 0
