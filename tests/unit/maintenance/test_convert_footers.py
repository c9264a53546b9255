"""Footers that are read together give what Arrow gives for each of them, and damaged ones harm no other."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pyspark_delta.errors import DeltaError
from pyspark_delta.maintenance.convert.footers import Footer, FooterReader
from pyspark_delta.parquet.alike import AlikeFooters, Likeness, Slices
from pyspark_delta.parquet.footer import TRAILER, FooterError, parse_footer
from pyspark_delta.schema.types import StructType
from pyspark_delta.storage import intercepted
from pyspark_delta.storage.counting import CountingStore, Counts

FILES = 30
NOW = datetime(2024, 1, 31, 12, 0, 0, 123456, UTC)
LOCAL = datetime(2000, 1, 1)
TYPES: dict[str, tuple[pa.DataType, Callable[[random.Random], Any]]] = {
    "byte": (pa.int8(), lambda chance: chance.randrange(-128, 128)),
    "long": (pa.int64(), lambda chance: chance.choice([-(1 << 63), (1 << 63) - 1, 0, chance.randrange(10**6)])),
    "float": (pa.float32(), lambda chance: chance.choice([float("nan"), -0.0, 0.0, 1.1, float("inf")])),
    "double": (pa.float64(), lambda chance: chance.choice([-0.0, 0.0, 1e300, chance.random()])),
    "flag": (pa.bool_(), lambda chance: chance.random() < 0.5),
    "text": (pa.string(), lambda chance: chance.choice("aü\U0010ffff") * chance.randrange(60)),
    "bytes": (pa.binary(), lambda chance: chance.randbytes(chance.randrange(9))),
    "day": (pa.date32(), lambda chance: date(1, 1, 1) + timedelta(days=chance.randrange(3_000_000))),
    "at": (pa.timestamp("us", "UTC"), lambda chance: NOW + timedelta(microseconds=chance.randrange(-(10**15), 10**15))),
    "local": (
        pa.timestamp("ms"),
        lambda chance: NOW.replace(tzinfo=None) - timedelta(milliseconds=chance.randrange(10**12)),
    ),
    "small": (pa.decimal128(9, 2), lambda chance: Decimal(chance.randrange(-999, 999)) / 100),
    "large": (pa.decimal128(38, 10), lambda chance: Decimal(chance.randrange(-(10**20), 10**20)) / 100),
    "inner": (
        pa.struct([("x", pa.int32()), ("y", pa.string())]),
        lambda chance: {"x": chance.randrange(300), "y": None if chance.random() < 0.5 else "y"},
    ),
    "items": (pa.list_(pa.int64()), lambda chance: list(range(chance.randrange(4)))),
}
SCHEMA = pa.schema([(name, kind) for name, (kind, _) in TYPES.items()])


def table(seed: int) -> pa.Table:
    """Some rows; in some files, a column has nulls only."""
    chance = random.Random(seed)
    empty = chance.choice(["", "", *TYPES])
    rows = [
        {name: None if name == empty or chance.random() < 0.2 else value(chance) for name, (_, value) in TYPES.items()}
        for _ in range(chance.choice([1, 3, 200]))
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def by_polars(rows: pa.Table, path: Path) -> None:
    pl.DataFrame(rows).write_parquet(path)


def by_duckdb(rows: pa.Table, path: Path) -> None:
    duckdb.sql("select * from rows").write_parquet(str(path))


def written(directory: Path, write: Callable[[pa.Table, Path], Any] = pq.write_table) -> list[tuple[str, int]]:
    paths = [directory / f"{number:02d}.parquet" for number in range(FILES)]
    for seed, path in enumerate(paths):
        write(table(seed), path)
    return [(str(path), path.stat().st_size) for path in paths]


def read(files: Sequence[tuple[str, int]]) -> list[Footer | DeltaError]:
    return FooterReader({}, StructType(()), statistics=True).read(files)


def one_by_one(files: Sequence[tuple[str, int]]) -> list[Footer | DeltaError]:
    """The first file of a reader is read by Arrow."""
    return [read([file])[0] for file in files]


def footers_of(files: Sequence[tuple[str, int]]) -> list[bytes]:
    return [footer_of(Path(path).read_bytes()) for path, _ in files]


def values_of(footer: bytes) -> list[Any]:
    """The number of rows of a file, and the statistics of its columns."""
    known = parse_footer(footer, 1 << 62)
    chunks = [chunk.fields.get(12) for chunk in known.row_groups[0].chunks]
    found = [{} if one is None else one.value for one in chunks]
    return [known.num_rows, *([one[number].value if number in one else None for number in (3, 6, 5)] for one in found)]


def values_together(footers: Sequence[bytes], examples: Sequence[int] = (0,)) -> dict[int, list[Any]]:
    """The same, of the footers that are read together with some examples, by their positions."""
    found: dict[int, list[Any]] = {}
    for example in examples:
        likeness = Likeness.of(footers[example])
        assert likeness is not None
        like = [number for number, footer in enumerate(footers) if number not in found and likeness.is_of(footer)]
        group = likeness.read([footers[number] for number in like])
        assert group is not None
        columns = [
            list(zip(*(listed(group, part) for part in chunk), strict=True)) if chunk.null_counts is not None else None
            for chunk in group.chunks
        ]
        for place, position in enumerate(group.positions.tolist()):
            values = [[None] * 3 if column is None else list(column[place]) for column in columns]
            found[like[position]] = [int(group.num_rows[place]), *values]
    return found


def listed(group: AlikeFooters, part: Any) -> list[Any]:
    if isinstance(part, Slices):
        return group.binaries(part)
    return [None] * len(group.positions) if part is None else part.tolist()


def footer_of(content: bytes) -> bytes:
    return content[-TRAILER - int.from_bytes(content[-TRAILER:-4], "little") : -TRAILER]


@pytest.mark.parametrize("write", [pq.write_table, by_polars, by_duckdb])
def test_c404_statistics_are_those_of_each_footer(tmp_path: Path, write: Callable[[pa.Table, Path], Any]) -> None:
    files = written(tmp_path, write)
    assert read(files) == one_by_one(files)
    footers = footers_of(files)
    found = values_together(footers, range(4))
    assert len(found) >= 5
    assert found == {number: values_of(footers[number]) for number in found}


def test_statistics_of_golden_files(golden: Path) -> None:
    folders: dict[Path, list[tuple[str, int]]] = {}
    for path in sorted(golden.rglob("*.parquet")):
        if "_delta_log" not in path.parts:
            folders.setdefault(path.parent, []).append((str(path), path.stat().st_size))
    for files in (found[:6] for found in folders.values() if len(found) > 2):
        for together, alone in zip(read(files), one_by_one(files), strict=True):
            assert together == alone or isinstance(alone, DeltaError)
            assert isinstance(together, DeltaError) == isinstance(alone, DeltaError)


def test_damaged_footers_harm_no_other_file(tmp_path: Path) -> None:
    files = written_once(tmp_path)
    expected = one_by_one(files)
    path = Path(files[2][0])
    content = path.read_bytes()
    accepted = 0
    for seed in range(300):
        path.write_bytes(damaged(random.Random(seed), content))
        found = read(files)
        assert (found[:2], found[3:]) == (expected[:2], expected[3:])
        if isinstance(found[2], Footer):  # what Arrow refuses is refused
            assert found[2] == one_by_one([files[2]])[0]
            accepted += 1
    assert accepted > 30


def test_what_is_read_of_a_damaged_footer_is_what_it_says(tmp_path: Path) -> None:
    footers = footers_of(written_once(tmp_path))
    content = Path(tmp_path, "2.parquet").read_bytes()
    changed = [footer_of(damaged(random.Random(seed), content)) for seed in range(3000)]
    found = values_together([*footers, *changed])
    assert {0, 1, 2, 3, 4} <= found.keys()
    assert len(found) > 150  # damaged values do not show
    for number, values in found.items():
        try:
            expected = values_of([*footers, *changed][number])
        except FooterError:
            continue  # what is not read here contradicts itself
        assert values == expected


def damaged(chance: random.Random, content: bytes) -> bytes:
    """A file with some other bytes in its footer."""
    changed, size = bytearray(content), len(footer_of(content))
    for _ in range(chance.choice([1, 1, 2, 20])):
        changed[len(changed) - TRAILER - 1 - chance.randrange(size)] = chance.randrange(256)
    return bytes(changed)


def written_once(directory: Path) -> list[tuple[str, int]]:
    paths = [directory / f"{number}.parquet" for number in range(5)]
    for number, path in enumerate(paths):
        pq.write_table(pa.table({"a": range(number, 20_000), "b": ["é" * number] * (20_000 - number)}), path)
    return [(str(path), path.stat().st_size) for path in paths]


def test_a_footer_is_read_once(tmp_path: Path) -> None:
    """Even if it is like no other, as those of pandas are."""
    for number in range(5):
        rows = pa.table({"a": [number]}).replace_schema_metadata({"number": str(number)})
        pq.write_table(rows, tmp_path / f"{number}.parquet")
    wide = pa.table({f"{'column' * 20}{number}": [1] for number in range(1000)})
    pq.write_table(wide, tmp_path / "wide.parquet")
    files = [(str(path), path.stat().st_size) for path in sorted(tmp_path.iterdir())]
    counts = Counts()
    with intercepted(lambda inner: CountingStore(inner, counts)):
        assert all(isinstance(one, Footer) for one in read(files))
    assert (counts.calls["read"], counts.calls["open_input"]) == (5 + 2, 0)  # the wide one is long
