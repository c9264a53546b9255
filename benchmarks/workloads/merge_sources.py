"""The rows that merges bring, in files that are made once."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.data_tables import rows_between
from benchmarks.tpch import SOURCE


def source_file(statement: Mapping[str, Any]) -> str:
    """The Parquet file with the rows of a merge's source; those that the table has come with another amount.

    A statement names the folder of a dataset that holds such rows (`source`), or a `sample` (see `_sampled`), or takes
    every `step`-th row from `start` to `stop` and `new` rows behind the end of the table.
    """
    if "source" in statement:
        return str(Path(statement["source"], SOURCE))
    if "sample" in statement:
        return _once({"rows": statement["rows"], **statement["sample"]}, _sampled)
    return _once({name: statement[name] for name in ("start", "stop", "step", "rows", "new")}, _stepped)


def _once(made_of: Mapping[str, Any], make: Callable[..., Any]) -> str:
    import pyarrow.parquet as pq

    path = Path(tempfile.gettempdir(), f"merge-source-{'-'.join(f'{k}_{v}' for k, v in made_of.items())}.parquet")
    if not path.exists():
        unfinished = path.with_suffix(f".{os.getpid()}")
        pq.write_table(make(**made_of), unfinished)
        unfinished.rename(path)
    return str(path)


def _stepped(start: int, stop: int, step: int, rows: int, new: int) -> Any:
    import pyarrow as pa

    return _source(rows_between(start, stop).take(pa.array(range(0, stop - start, step))), rows, new)


def _sampled(rows: int, files: int, touched: float, matched: float, unmatched: float) -> Any:
    """Draw a share of the `files` of a table, a share of their rows, and add a share of as many rows with new keys."""
    import numpy as np
    import pyarrow as pa

    random, each = np.random.default_rng(7), rows // files
    chosen = random.choice(files, size=max(round(files * touched), 1), replace=False).tolist()
    there = pa.concat_tables([rows_between(number * each, (number + 1) * each) for number in sorted(chosen)])
    some = np.sort(random.choice(there.num_rows, size=round(there.num_rows * matched), replace=False))
    return _source(there.take(pa.array(some)), rows, round(there.num_rows * unmatched))


def _source(known: Any, rows: int, new: int) -> Any:
    import pyarrow as pa

    known = known.set_column(1, "amount", pa.array([-1] * known.num_rows, pa.int64()))
    return pa.concat_tables([known, rows_between(rows, rows + new)])
