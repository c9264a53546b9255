"""Every feature that is written, by peers: they read our table with it, and delta-spark its own that we appended to."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from tests.interop.conftest import DeltaSparkServer
from tests.interop.content import content
from tests.interop.delta_spark_tables import VARIANTS
from tests.interop.feature_tables import DELETED, FEATURES, READS

from pyspark_delta.features import active_features, all_features
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.table import Table
from pyspark_delta.transaction.transaction import Transaction

THEIRS = sorted({table.theirs for table in FEATURES.values() if table.theirs})
# Rows of these have to be checked or computed by Spark; the columns that only the writer may fill are left out.
BY_NAME = "catalogManaged"  # of tables that peers reach by their names alone: see `test_delta_kernel`
BY_SPARK = {"writer_features": ("id", "day"), "column_defaults": (), "old_invariants": ()}


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The tables of every feature."""
    folder = tmp_path_factory.mktemp("features")
    found = {name: folder / f"t{number}" for number, name in enumerate(FEATURES)}
    for name, path in found.items():
        FEATURES[name].make(path)
    return found


def feature_of(name: str) -> str:
    """The feature that a table of the matrix stands for."""
    return name.partition(",")[0]


def refusal(name: str) -> str:
    """How peers call the feature that they refuse: one that it needs, with words and versions of their own."""
    mapped = r"column ?mapping|" if name.startswith("iceberg") else ""
    return rf"(?i){mapped}{feature_of(name).replace('columnMapping', 'column ?mapping')}"


def test_every_feature_that_is_written_is_in_the_matrix(tables: dict[str, Path]) -> None:
    written = {feature.name for feature in all_features() if not feature.write_unsupported_reason}
    assert {feature_of(name) for name in FEATURES} == written - {BY_NAME}
    for name, path in tables.items():
        assert feature_of(name) in active_features(Snapshot.load(str(path)).configuration)


@pytest.mark.parametrize("name", FEATURES)
def test_what_was_written_is_read_here(tables: dict[str, Path], name: str) -> None:
    table, found = FEATURES[name], Table.open(tables[name]).scan().to_arrow()
    first, second = table.rows
    written = [pa.array([*first[n], *second[n]], f.type) for n, f in zip(table.columns, found.schema, strict=True)]
    expected = pa.Table.from_arrays(written, found.schema.names)
    assert content(found) == content(expected.filter(pc.not_equal(expected["id"], DELETED)))


@pytest.mark.parametrize("name", FEATURES)
def test_deltalake_reads_or_names_the_feature(tables: dict[str, Path], name: str) -> None:
    deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed; `make test` installs it")

    def read() -> pa.Table:
        table = deltalake.DeltaTable(str(tables[name]))
        return pa.table(deltalake.QueryBuilder().register("t", table).execute("select * from t").read_all())

    if FEATURES[name].expected("deltalake") != READS:
        with pytest.raises(deltalake.exceptions.DeltaError, match=refusal(name)):
            read()
        return
    assert content(read()) == content(Table.open(tables[name]).scan().to_arrow())


@pytest.mark.parametrize("name", FEATURES)
def test_polars_reads_or_names_the_feature(tables: dict[str, Path], name: str) -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed; `make test` installs it")

    def read() -> pa.Table:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return polars.read_delta(str(tables[name])).to_arrow()

    if FEATURES[name].expected("polars") != READS:
        with pytest.raises(Exception, match=refusal(name)):
            read()
        return
    assert content(read()) == content(Table.open(tables[name]).scan().to_arrow())


@pytest.mark.parametrize("name", FEATURES)
def test_delta_spark_reads_or_names_the_feature(
    tables: dict[str, Path], delta_spark_server: DeltaSparkServer, name: str
) -> None:
    table = FEATURES[name]
    if table.expected("delta-spark") != READS:
        with pytest.raises(AssertionError, match=refusal(name)):
            delta_spark_server.read(tables[name])
        return
    found = delta_spark_server.read(tables[name], texts=table.as_text)
    expected = Table.open(tables[name]).scan().to_arrow()
    for column in table.as_text:
        position = expected.column_names.index(column)
        expected = expected.set_column(position, column, pa.array(["1"] * expected.num_rows))
    assert content(found) == content(expected)


@pytest.mark.parametrize("name", THEIRS)
def test_delta_spark_reads_its_own_with_our_rows(
    our_spark: SparkSession, delta_spark_tables: Path, delta_spark_server: DeltaSparkServer, tmp_path: Path, name: str
) -> None:
    """The rows of the table are appended to it once more."""
    path = tmp_path / "t"
    shutil.copytree(delta_spark_tables / name, path)
    left_out = append_again(our_spark, path, name)
    version = max(json.loads((delta_spark_tables / f"{name}.json").read_text())["versions"])
    with pa.memory_map(str(delta_spark_tables / f"{name}.v{version}.arrow")) as source:
        before = pa.ipc.open_file(source).read_all()
    extra = {"row_id", "row_commit_version"}.intersection(before.column_names)
    found = delta_spark_server.read(path, texts=VARIANTS.get(name, {}))
    assert content(found.drop_columns(left_out)) == sorted(2 * content(before.drop_columns([*left_out, *extra])))
    if not VARIANTS.get(name):
        assert content(found) == content(Table.open(path).scan().to_arrow())


def append_again(spark: SparkSession, path: Path, name: str) -> list[str]:
    """Append all rows of the table; the columns whose values are then others."""
    if name not in BY_SPARK:
        with Transaction.on(Snapshot.load(str(path))) as transaction:
            transaction.write(Table.open(path).scan().to_arrow().to_batches())
        return []
    rows = spark.read.format("delta").load(str(path)).drop(*BY_SPARK[name])
    rows.write.format("delta").mode("append").save(str(path))
    return [column for column in BY_SPARK[name] if column == "id"]
