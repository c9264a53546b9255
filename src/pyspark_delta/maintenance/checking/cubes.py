"""U01: the tags that name the cube of a clustered file, and its columns (C352)."""

from __future__ import annotations

from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.errors import DeltaError
from pyspark_delta.maintenance.checking.findings import Findings
from pyspark_delta.maintenance.checking.live import LiveBatch, LiveTable
from pyspark_delta.maintenance.layout.cubes import CUBE_COLUMNS, CUBE_ID, PROVIDER
from pyspark_delta.schema.column_paths import parse_column_path


class CubeTags:
    """Files with the id of a cube name its columns, which the table has, and the provider of its clustering."""

    def __init__(self, table: LiveTable, findings: Findings) -> None:
        self._table, self._findings = table, findings
        self._names = {name.casefold() for name in table.configuration.schema.names}
        self._found: dict[str, tuple[int, str]] = {}  # the files of each problem, and one of them

    def take(self, batch: LiveBatch) -> None:
        tags = batch.column("tags")
        ids, columns = (pc.map_lookup(tags, pa.scalar(name), "last") for name in (CUBE_ID, CUBE_COLUMNS))
        has_id = pc.is_valid(ids)
        if not has_id.true_count and columns.null_count == len(columns):
            return
        provider = pc.fill_null(pc.equal(batch.column("clustering_provider"), PROVIDER), False)
        self._count(batch, pc.and_(has_id, pc.is_null(columns)), "name a cube without its columns")
        self._count(batch, pc.and_(pc.is_valid(columns), pc.invert(has_id)), "name columns of a cube without its id")
        self._count(batch, pc.and_(has_id, pc.invert(provider)), f"name a cube without the provider '{PROVIDER}'")
        encoded = columns.cast(pa.string()).dictionary_encode()
        unknown = [text for text in encoded.dictionary.to_pylist() if not self._exist(text)]
        wrong = pc.and_(pc.is_valid(columns), pc.is_in(columns, value_set=pa.array(unknown, columns.type)))
        self._count(batch, wrong, "name columns of a cube that the table lacks")

    def _count(self, batch: LiveBatch, files: pa.Array, problem: str) -> None:
        if files.true_count:
            count, example = self._found.get(problem, (0, ""))
            self._found[problem] = count + files.true_count, example or batch.column("path").filter(files)[0].as_py()

    def _exist(self, text: str | None) -> bool:
        try:
            names: Any = orjson.loads(text or "")
            return all(parse_column_path(name)[0].casefold() in self._names for name in names)
        except (DeltaError, ValueError, TypeError):
            return False

    def finish(self) -> None:
        for problem, (count, example) in self._found.items():
            self._findings.add(
                "U01", f"The tags of {count:,} live files, such as '{example}', {problem}.", version=self._table.version
            )
