"""`python -m benchmarks.large_append GIB [PARTITIONS]`: append so many GiB of record batches; show the peak memory.

The batches are made as they are read, so that the memory is that of the write. It must not grow with their number.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Iterator

import pyarrow as pa

from benchmarks.data_tables import rows_between

_BATCH_ROWS = 65_536


def batches(gib: float, partitions: int) -> Iterator[pa.RecordBatch]:
    """Yield batches of at least `gib` GiB in memory together, with a column `part` if there are partitions."""
    start = made = 0
    while made < gib * (1 << 30):
        rows = rows_between(start, start + _BATCH_ROWS)
        if partitions:
            numbers = rows["amount"].to_numpy() % partitions
            rows = rows.append_column("part", pa.array(numbers).cast(pa.int32()))
        (batch,) = rows.combine_chunks().to_batches()
        yield batch
        start, made = start + _BATCH_ROWS, made + batch.nbytes


def peak_mib() -> float:
    """Return the largest resident memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    from pyspark_delta import Table

    gib, partitions = float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    schema = next(batches(gib, partitions)).schema
    with tempfile.TemporaryDirectory(prefix="large-append-") as folder:
        table = Table.create(f"{folder}/table", schema, partition_by=["part"] if partitions else [])
        before, start = peak_mib(), time.perf_counter()
        table.append(pa.RecordBatchReader.from_batches(schema, batches(gib, partitions)))
        seconds, files = time.perf_counter() - start, table.files()
        rows, size = table.count(), sum(files["size"].to_pylist()) / (1 << 30)
    print(
        f"{gib:g} GiB in memory, {rows} rows, {files.num_rows} files of {size:.2f} GiB: {seconds:.0f} s, "
        f"peak {peak_mib():.0f} MiB ({before:.0f} MiB before)"
    )


if __name__ == "__main__":
    main()
