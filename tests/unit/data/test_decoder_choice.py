"""Polars is chosen where it decodes the rows exactly and faster; nothing else depends on it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from tests.unit.data.planned import mapped, plan_of, schema_of

from pyspark_delta.data import decoder_choice
from pyspark_delta.data.decoder_choice import VARIABLE, choose_decoder
from pyspark_delta.scan.plan import RowIndex, ScanPlan
from pyspark_delta.schema.types import LONG, STRING, ArrayType, StructField, StructType
from pyspark_delta.storage import intercepted
from pyspark_delta.storage.counting import CountingStore, Counts
from pyspark_delta.table import Table

SOURCE = Path(decoder_choice.__file__).parents[2]


@pytest.fixture(autouse=True)
def _any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder_choice, "_FEWEST_BYTES", 0)


def plan(folder: Path, schema: StructType, **options: object) -> ScanPlan:
    return plan_of(folder, schema, [{"path": "f.parquet", "size": 10}], **options)  # type: ignore[arg-type]


def test_numbers_for_arrow_and_texts_only_as_views(tmp_path: Path) -> None:
    numbers, texts = plan(tmp_path, schema_of(x=LONG)), plan(tmp_path, schema_of(x=LONG, s=STRING))
    assert [choose_decoder(numbers, views=views) is not None for views in (False, True)] == [True, True]
    assert [choose_decoder(texts, views=views) is not None for views in (False, True)] == [False, True]
    partition = plan(tmp_path, schema_of(x=LONG, s=STRING), partitions=["s"])
    assert choose_decoder(partition) is not None


@pytest.mark.parametrize("case", ["nested", "positions", "ids", "no column", "only partitions"])
def test_columns_that_pyarrow_decodes(tmp_path: Path, case: str) -> None:
    x = schema_of(x=LONG)
    given = {
        "nested": plan(tmp_path, schema_of(x=LONG, a=ArrayType(LONG))),
        "positions": plan(tmp_path, x, extra=[RowIndex(StructField("i", LONG))]),
        "ids": plan(tmp_path, StructType((mapped("x", LONG, "col-1", 1),)), mode="id"),
        "no column": plan(tmp_path, StructType(())),
        "only partitions": plan(tmp_path, x, partitions=["x"]),
    }
    assert choose_decoder(given[case], views=True) is None


def test_the_variable_switches_it_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "pyarrow")
    assert choose_decoder(plan(tmp_path, schema_of(x=LONG)), views=True) is None


def test_few_and_small_files_are_read_into_arrow_by_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder_choice, "_FEWEST_BYTES", 11)
    x = schema_of(x=LONG)
    assert choose_decoder(plan(tmp_path, x)) is None
    assert choose_decoder(plan(tmp_path, x), views=True) is not None
    assert choose_decoder(plan_of(tmp_path, x, [{"path": f"{i}", "size": 0} for i in range(16)])) is not None


def test_stores_other_than_the_local_one_are_never_passed_by(tmp_path: Path) -> None:
    x = plan(tmp_path, schema_of(x=LONG))
    with intercepted(lambda store: CountingStore(store, Counts())):
        assert choose_decoder(x, views=True) is None
    remote = Table.write("memory://choice/table", {"x": [1]}).scan()
    assert choose_decoder(remote.plan, views=True) is None


def test_an_old_polars_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pl, "__version__", "1.32.0")
    assert choose_decoder(plan(tmp_path, schema_of(x=LONG)), views=True) is None


# -------------------------------------------------------------------------------------------- in processes of their own
def run(code: str, **environment: str) -> str:
    """Run a program in a fresh interpreter and return what it prints."""
    full = {**os.environ, "PYTHONPATH": str(SOURCE), **environment}
    done = subprocess.run(
        [sys.executable, "-c", code], env=full, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


ABSENT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "polars":
            raise ModuleNotFoundError("No module named 'polars'", name="polars")
sys.meta_path.insert(0, Absent())
"""
READ = """
import sys
from pyspark_delta import Table
from pyspark_delta.data import decoder_choice
rows = Table.open({path!r}).scan()
decoder_choice._IMPORT_FILES = {files}
print(rows.to_arrow()["x"].to_pylist(), "polars" in sys.modules)
"""


def test_only_a_large_read_imports_polars(tmp_path: Path) -> None:
    Table.write(tmp_path, {"x": [1, 2]})
    assert run(READ.format(path=str(tmp_path), files=4096)) == "[1, 2] False"
    small = READ.replace("decoder_choice._IMPORT_FILES", "decoder_choice._FEWEST_FILES = decoder_choice._IMPORT_FILES")
    assert run(small.format(path=str(tmp_path), files=1)) == "[1, 2] True"


def test_a_large_read_without_polars(tmp_path: Path) -> None:
    Table.write(tmp_path, {"x": [1, 2]})
    small = READ.replace("decoder_choice._IMPORT_FILES", "decoder_choice._FEWEST_FILES = decoder_choice._IMPORT_FILES")
    assert run(ABSENT + small.format(path=str(tmp_path), files=1)) == "[1, 2] False"


FORK = """
import os, polars, sys
from pyspark_delta import Table
from pyspark_delta.data import decoder_choice, polars_decoder
decoder_choice._FEWEST_BYTES = polars_decoder._FEWEST_BYTES = 0
rows = Table.open({path!r}).scan()
assert decoder_choice.choose_decoder(rows.plan) is not None
assert rows.to_arrow().num_rows == 2
child = os.fork()
if child == 0:
    os._exit(3 + (decoder_choice.choose_decoder(rows.plan) is None) + rows.to_arrow().num_rows)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_fork_does_not_wait_for_threads_of_polars_that_it_lacks(tmp_path: Path) -> None:
    Table.write(tmp_path, {"x": [1, 2]})
    assert run("import warnings; warnings.simplefilter('ignore')\n" + FORK.format(path=str(tmp_path))) == "6"


JOINED = """
import polars as pl
from pyspark_delta import Table
from pyspark_delta.data import decoder_choice, polars_decoder
decoder_choice._FEWEST_BYTES = polars_decoder._FEWEST_BYTES = 0
polars_decoder._REFUSALS = {refusals}
lazy = Table.open({path!r}).to_polars()
found = []
for engine in ("in-memory", "streaming"):
    joined = lazy.select("x").join(lazy.filter(pl.col("x") > 2), on="x", how="full").join(lazy.select("x"), on="x")
    both = [joined, *(lazy.filter(pl.col("x") >= i) for i in range(4)), pl.concat([lazy] * 5)]
    found.append([frame.height for frame in pl.collect_all(both, engine=engine)])
print(found[0] == found[1], found[0])
"""


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("refusals", [0, 2])
def test_queries_of_polars_on_many_frames_do_not_wait_for_each_other(
    tmp_path: Path, threads: str, refusals: int
) -> None:
    """A query of Polars waits for rows that Polars decodes, on as many threads as it has."""
    table = Table.create(tmp_path, "x BIGINT, s STRING")
    for i in range(4):
        table.append({"x": [i], "s": [f"text {i}"]})
    said = run(JOINED.format(path=str(tmp_path), refusals=refusals), POLARS_MAX_THREADS=threads)
    assert said == "True [4, 4, 3, 2, 1, 20]"


def test_a_scan_reads_by_polars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `Table` hands over is what Polars decoded: for Arrow with the types of the table, for Polars as views."""
    from pyspark_delta.data.polars_decoder import PolarsDecoder

    data = pa.table({"x": [1, None], "s": ["a", "b"]})
    table = Table.write(tmp_path, data)
    calls = []
    decode = PolarsDecoder.decode_files
    monkeypatch.setattr(
        PolarsDecoder, "decode_files", lambda self, files: calls.append(self.has_views) or decode(self, files)
    )
    assert table.scan(["x"]).to_arrow().equals(data.select(["x"]))
    assert table.to_polars().collect().to_dict(as_series=False) == data.to_pydict()
    assert table.to_arrow().equals(data)
    assert calls == [False, True]
