"""U01: the tags that name the cube of a clustered file, and its columns (C352)."""

from __future__ import annotations

from collections.abc import Collection
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
        self._names = table.configuration.schema.names
        self._found: dict[str, tuple[int, str]] = {}  # the files of each problem, and one of them

    def take(self, batch: LiveBatch) -> None:
        for problem, files in wrong_cubes(batch.column("tags"), batch.column("clustering_provider"), self._names):
            self._count(batch, files, problem)

    def _count(self, batch: LiveBatch, files: pa.Array, problem: str) -> None:
        if files.true_count:
            count, example = self._found.get(problem, (0, ""))
            self._found[problem] = count + files.true_count, example or batch.column("path").filter(files)[0].as_py()

    def finish(self) -> None:
        for problem, (count, example) in self._found.items():
            self._findings.add(
                "U01", f"The tags of {count:,} live files, such as '{example}', {problem}.", version=self._table.version
            )


def wrong_cubes(tags: pa.Array, providers: pa.Array, names: Collection[str]) -> list[tuple[str, pa.Array]]:
    """Return what may be wrong with the tags of files, each with a mask of the files of which it is true.

    `names` are the columns of the table.
    """
    ids, columns = (pc.map_lookup(tags, pa.scalar(name), "last") for name in (CUBE_ID, CUBE_COLUMNS))
    has_id, has_columns = pc.is_valid(ids), pc.is_valid(columns)
    provider = pc.fill_null(pc.equal(providers, PROVIDER), False)
    folded = {name.casefold() for name in names}
    texts = columns.cast(pa.string()).dictionary_encode().dictionary.to_pylist()
    unknown = pa.array([text for text in texts if not _exist(text, folded)], columns.type)
    return [
        ("name a cube without its columns", pc.and_(has_id, pc.invert(has_columns))),
        ("name columns of a cube without its id", pc.and_(has_columns, pc.invert(has_id))),
        (f"name a cube without the provider '{PROVIDER}'", pc.and_(has_id, pc.invert(provider))),
        ("name columns of a cube that the table lacks", pc.and_(has_columns, pc.is_in(columns, value_set=unknown))),
    ]


def _exist(text: str | None, names: Collection[str]) -> bool:
    try:
        found: Any = orjson.loads(text or "")
        return all(parse_column_path(name)[0].casefold() in names for name in found)
    except (DeltaError, ValueError, TypeError):
        return False
