"""Checkpoints with damaged footers: an error or an answer, and never the end of the process.

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


def test_damaged_statistics_do_not_end_the_process(tmp_path: Path) -> None:
    count = length(1500, 40_000)
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", _FUZZ, str(tmp_path), "0", str(count)],
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
