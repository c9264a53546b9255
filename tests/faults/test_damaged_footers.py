"""Checkpoints and data files with damaged footers: an error or an answer, and never the end of the process.

Arrow ends the process on statistics that it cannot decode, so this runs in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.lengths import length

_FUZZ = """
import contextlib, random, sys, warnings
from pathlib import Path
from tests.properties.test_hostile_logs import build, use
from pyspark_delta.errors import DeltaError
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.snapshot import Snapshot

warnings.simplefilter("ignore")
table, first, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
paths = [path for path in build(table) if path.suffix == ".parquet"]
contents = [path.read_bytes() for path in paths]
answers = 0
for seed in range(first, first + count):
    print(seed, flush=True)
    rng = random.Random(seed)
    chosen = rng.randrange(len(paths))
    data = bytearray(contents[chosen])
    begin = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    for _ in range(rng.choice((1, 1, 2))):
        data[rng.randrange(begin, len(data) - 8)] = rng.randrange(256)
    paths[chosen].write_bytes(data)
    with contextlib.suppress(DeltaError):
        use(str(table))
        answers += 1
    paths[chosen].write_bytes(contents[chosen])
print("answers", answers)
"""

_DATA_FUZZ = """
import contextlib, datetime, decimal, random, sys, warnings
from pathlib import Path
import pyarrow as pa, pyarrow.parquet as pq
from pyspark_delta.data.reader import read_plan
from pyspark_delta.errors import DeltaError
from pyspark_delta.maintenance.checking import CheckRequest, check_table
from pyspark_delta.maintenance.convert.plan import ConvertRequest, plan_convert
from pyspark_delta.maintenance.statistics import plan_statistics
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.table import Table

warnings.simplefilter("ignore")
root, first, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
day = datetime.date(2024, 1, 1)
rows = {
    "n": [1, 2, None, 4], "text": ["a", "b", None, "d"], "real": [0.5, None, 1.5, 2.5], "day": [day, day, None, day],
    "money": pa.array([decimal.Decimal(n) for n in range(4)], pa.decimal128(25, 2)), "flag": [True, False, None, True],
    "inner": [{"x": 1, "y": [1, 2]}, None, {"x": 2, "y": []}, {"x": 3, "y": None}],
}
pq.write_table(pa.table(rows), root / "f.parquet", row_group_size=2)
table = Table.convert(root)
snapshot, files = table.snapshot, root / "alone"
files.mkdir()
content = (root / "f.parquet").read_bytes()
begin = len(content) - 8 - int.from_bytes(content[-8:-4], "little")

def footers():
    plan_convert(ConvertRequest(location=str(files)))

def statistics():
    try:
        plan_statistics(Table.open(root).snapshot, only_missing=False).execute()
    finally:
        for entry in (root / "_delta_log").glob("*.json"):
            if int(entry.stem) > 0:
                entry.unlink()

uses = {
    "convert": footers,
    "check": lambda: check_table(str(root), CheckRequest("data")),
    "statistics": statistics,
    "skip": lambda: list(read_plan(plan_scan(snapshot, where="n > 1 AND inner.x > 1 AND text < 'c'"))),
    "read": lambda: list(read_plan(plan_scan(snapshot))),
    "choose": lambda: Table.open(root).to_arrow(),
    "groups": lambda: Table.open(root).inspect("row_groups").to_arrow(),
}
answers = 0
for seed in range(first, first + count):
    rng = random.Random(seed)
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2))):
        data[rng.randrange(begin, len(data) - 8)] = rng.randrange(256)
    for path in (root / "f.parquet", files / "f.parquet"):
        path.write_bytes(data)
    for name, use in uses.items():
        print(seed, name, flush=True)
        with contextlib.suppress(DeltaError):
            use()
            answers += 1
print("answers", answers // len(uses))
"""


def test_damaged_statistics_do_not_end_the_process(tmp_path: Path) -> None:
    _run(_FUZZ, tmp_path, length(400, 40_000))


def test_damaged_footers_of_data_files_do_not_end_the_process(tmp_path: Path) -> None:
    _run(_DATA_FUZZ, tmp_path, length(60, 10_000))


def _run(fuzz: str, tmp_path: Path, count: int) -> None:
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", fuzz, str(tmp_path), "0", str(count)],
        capture_output=True,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([f"{root}/src", root])},
        timeout=600,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"seed {lines[-1] if lines else None}: {done.stderr[-2000:]}"
    assert 0 < int(lines[-1].split()[1]) < count
