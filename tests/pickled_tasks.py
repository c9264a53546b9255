"""Tasks outside of a process, without Spark: what they get and return is pickled."""

from __future__ import annotations

import pickle
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.engines.tasks import ArrowTask, Exchange, ItemTask, raise_failure


class PickledTasks:
    """A `TaskRunner`; `jobs` has the number of items of each job. With many cores, each small file is an item."""

    def __init__(self, cores: int = 1) -> None:
        self.jobs: list[int] = []
        self._cores = cores

    def cores(self) -> int:
        return self._cores

    def run_each(self, items: Iterable[object], task: ItemTask, result: pa.Schema) -> pa.Table:
        given, task = pickle.loads(pickle.dumps((list(items), task)))
        self.jobs.append(len(given))
        rows = [batch for number, item in enumerate(given) for batch in task(number, item)]
        found = pa.Table.from_batches(rows, result)
        raise_failure(found)
        return found

    def run_exchange(
        self, items: Iterable[object], divide: ItemTask, exchange: Exchange, write: ArrowTask, result: pa.Schema
    ) -> pa.Table:
        given, divide, write = pickle.loads(pickle.dumps((list(items), divide, write)))
        self.jobs.append(len(given))
        sent = [batch for number, item in enumerate(given) for batch in divide(number, item)]
        rows = pa.Table.from_batches(sent, exchange.schema)
        assert set(rows[exchange.task].to_pylist()) <= set(range(exchange.tasks))
        written: list[pa.RecordBatch] = []
        for task in range(exchange.tasks):
            got = rows.filter(pc.equal(rows[exchange.task], task))
            got = got.sort_by([(name, "ascending") for name in exchange.order])
            written += write(got.to_batches(max_chunksize=3))
        return pa.Table.from_batches(written, result)
