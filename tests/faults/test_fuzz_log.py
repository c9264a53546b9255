"""Logs damaged at random: thousands of mutants of real logs are opened; each is read or refused with a DeltaError."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import cache

import pytest
from tests.golden.catalogue import GOLDEN, golden_tables
from tests.lengths import length

from pyspark_delta.errors import DeltaError
from pyspark_delta.log.history import commit_history
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage.memory import MemoryStore

LARGEST = 200_000  # bytes of a log
MUTANTS_AT_ONCE = 500
VALUE = re.compile(rb':("[^"]*"|-?\d+|true|false|null)')
VALUES = (
    b"null",
    b"true",
    b"-1",
    b"1e400",
    b"[]",
    b"{}",
    b'"x"',
    b"9223372036854775808",
    b'"\\u0000"',
    b"1.5",
    b'"../x"',
)

Mutation = Callable[[random.Random, bytes], bytes]


def flip_bit(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def cut_off(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data))]


def drop_bytes(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + data[at + rng.randrange(1, 40) :]


def repeat_bytes(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + data[at : at + rng.randrange(1, 40)] + data[at:]


def scramble_bytes(rng: random.Random, data: bytes) -> bytes:
    at, count = rng.randrange(len(data)), rng.randrange(1, 40)
    return data[:at] + rng.randbytes(count) + data[at + count :]


def shuffle_lines(rng: random.Random, data: bytes) -> bytes:
    lines = data.split(b"\n")
    rng.shuffle(lines)
    return b"\n".join(lines)


def repeat_line(rng: random.Random, data: bytes) -> bytes:
    lines = data.split(b"\n")
    return b"\n".join([*lines, rng.choice(lines)])


def replace_value(rng: random.Random, data: bytes) -> bytes:
    found = [*VALUE.finditer(data)]
    if not found:
        return data
    chosen = rng.choice(found)
    return data[: chosen.start(1)] + rng.choice(VALUES) + data[chosen.end(1) :]


def empty(_: random.Random, __: bytes) -> bytes:
    return b""


MUTATIONS: tuple[Mutation, ...] = (
    flip_bit,
    cut_off,
    drop_bytes,
    repeat_bytes,
    scramble_bytes,
    shuffle_lines,
    repeat_line,
    replace_value,
    replace_value,
    empty,
)


@cache
def logs() -> tuple[tuple[str, dict[str, bytes]], ...]:
    """The small golden logs: id, and content by name below `_delta_log`."""
    found = []
    for table in golden_tables():
        log = table.path / "_delta_log"
        files = {f.relative_to(log).as_posix(): f.read_bytes() for f in sorted(log.rglob("*")) if f.is_file()}
        if files and sum(map(len, files.values())) < LARGEST:
            found.append((table.id, files))
    return tuple(found)


def mutant(rng: random.Random) -> tuple[str, dict[str, bytes]]:
    """A log in which some files are changed or gone."""
    name, original = rng.choice(logs())
    files = dict(original)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        chosen = rng.choice(sorted(files))
        if rng.random() < 0.06 and len(files) > 1:
            del files[chosen]
        elif files[chosen]:
            files[chosen] = rng.choice(MUTATIONS)(rng, files[chosen])
    return name, files


def read_everything(location: str) -> None:
    """All that can be known of a table without its data files, down to Python values."""
    snapshot = Snapshot.load(location)
    snapshot.files(("path", "stats", "tags", "base_row_id")).to_pylist()
    snapshot.tombstones().to_pylist()
    snapshot.transactions()
    snapshot.domains()
    snapshot.clustering_columns()
    snapshot.commit_info()
    commit_history(snapshot, None)
    assert isinstance(snapshot.timestamp, int)
    plan_scan(snapshot).files.to_pylist()
    for field in [f for f in snapshot.schema if "`" not in f.name][:2]:
        plan_scan(snapshot, where=f"`{field.name}` is not null").files.to_pylist()


@pytest.mark.skipif(not GOLDEN.is_dir(), reason=f"golden tables not found at {GOLDEN}; set PYSPARK_DELTA_GOLDEN")
@pytest.mark.filterwarnings("ignore::pyspark_delta.errors.DeltaWarning")  # falling back is a right answer
@pytest.mark.parametrize("block", range(length(2, 20)))
def test_mutants_are_read_or_refused(block: int) -> None:
    refused, silent, authority, written = 0, 0, f"fuzz-{block}", []
    store = MemoryStore.named(authority)
    for seed in range(block * MUTANTS_AT_ONCE, (block + 1) * MUTANTS_AT_ONCE):
        name, files = mutant(random.Random(seed))
        location = f"memory://{authority}/{name}"
        store.delete(written)
        written = [f"{location}/_delta_log/{file}" for file in files]
        for path, data in zip(written, files.values(), strict=True):
            store.write(path, data)
        try:
            read_everything(location)
        except DeltaError as error:
            refused += 1
            silent += not error.message
        except Exception as error:
            raise AssertionError(f"seed {seed}, log {name}: {type(error).__name__} escaped") from error
    assert silent == 0
    assert 0 < refused < MUTANTS_AT_ONCE  # else the mutations are too tame, or nothing can be read
