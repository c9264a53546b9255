"""Mutated and cut-off logs: a DeltaError or an answer, never another exception, and never a hang."""

from __future__ import annotations

import contextlib
import json
import random
import warnings
from pathlib import Path

import pytest
from tests.lengths import length

from pyspark_delta.errors import DeltaError, DeltaWarning
from pyspark_delta.scan.planner import plan_scan
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.testing.table_builder import TableBuilder, add, deletion_vector, metadata, protocol, remove

FRAGMENTS = [
    b'"',
    b"{",
    b"}",
    b"[",
    b"]",
    b"\\",
    b"\x00",
    b"\xff",
    b"null",
    b"-1",
    b"1e999",
    b"9" * 30,
    b"\n",
    b":",
    b"%",
]
STATS = json.dumps({"numRecords": 1, "minValues": {"id": 1}, "maxValues": {"id": 9}, "nullCount": {"id": 0}})


def build(directory: Path) -> list[Path]:
    """A small table with every kind of log file; the files, to be damaged one at a time."""
    table = TableBuilder(directory)
    head = [protocol(3, 7, ["deletionVectors", "v2Checkpoint"]), metadata({"id": "long", "p": "string"}, ["p"])]
    files = [add(f"p={n}/f%20{n}", {"p": str(n)}, stats=STATS) for n in range(4)]
    vector = deletion_vector("abc")
    paths = [table.commit(0, [{"commitInfo": {"operation": "WRITE"}}, *head, *files[:2]])]
    paths.append(table.commit(1, [*files[2:], {"txn": {"appId": "a", "version": 1}}]))
    paths.append(table.v2_checkpoint(1, [*head, {"txn": {"appId": "a", "version": 1}}, *files], sidecars=1))
    paths.append(next((table.log / "_sidecars").iterdir()))
    paths.append(table.commit(2, [remove("p=0/f%200"), add("p=0/f%200", {"p": "0"}, deletionVector=vector)]))
    paths.append(table.commit(3, [{"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}}]))
    counts = {"tableSizeBytes": 400, "numFiles": 4, "numMetadata": 1, "numProtocol": 1}
    whole = {**counts, "metadata": head[1]["metaData"], "protocol": head[0]["protocol"]}
    paths.append(table.checksum(3, whole))
    paths.append(table.hint({"version": 1, "size": 8, "tags": {"x": "y"}}))
    return paths


def damaged(content: bytes, generator: random.Random) -> bytes:
    """The content with a few bytes changed, cut out, repeated or replaced."""
    data = bytearray(content)
    for _ in range(generator.randint(1, 3)):
        if not data:
            break
        at = generator.randrange(len(data))
        match generator.randrange(6):
            case 0:
                data[at] = generator.randrange(256)
            case 1:
                del data[at:]
            case 2:
                del data[at : at + generator.randint(1, 40)]
            case 3:
                data[at:at] = data[at : at + generator.randint(1, 200)]
            case 4:
                data[at:at] = generator.choice(FRAGMENTS)
            case _:
                data[at : at + generator.randint(1, 8)] = generator.choice(FRAGMENTS)
    return bytes(data)


def use(location: str) -> None:
    """Everything that a reader asks of a log."""
    snapshot = Snapshot.load(location)
    snapshot.transactions()
    snapshot.domains()
    snapshot.commit_info()
    _ = snapshot.timestamp
    snapshot.files(("path", "partition_values", "size", "modification_time", "stats", "deletion_vector", "tags"))
    snapshot.tombstones()
    for _ in range(3):
        plan_scan(snapshot, where="p = '1' AND id > 5")
    snapshot.checksum_differences()


CASES = length(160, 8000)
SEEDS = 8


@pytest.mark.parametrize("seed", range(SEEDS))
def test_damaged_logs_give_errors_of_ours_or_answers(tmp_path: Path, seed: int) -> None:
    generator = random.Random(seed)
    paths = build(tmp_path)
    contents = [path.read_bytes() for path in paths]
    answers = 0
    for _ in range(CASES // SEEDS):
        chosen = generator.randrange(len(paths))
        paths[chosen].write_bytes(damaged(contents[chosen], generator))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeltaWarning)
            with contextlib.suppress(DeltaError):
                use(str(tmp_path))
                answers += 1
        paths[chosen].write_bytes(contents[chosen])
    assert 0 < answers < CASES // SEEDS


@pytest.mark.parametrize("depth", [100, 5_000, 200_000])
def test_deep_json_is_refused(tmp_path: Path, depth: int) -> None:
    table = TableBuilder(tmp_path)
    deep = "[" * depth + "]" * depth
    lines = [json.dumps(protocol()), json.dumps(metadata()), f'{{"add":{{"path":"a","partitionValues":{deep}}}}}']
    (table.log / f"{0:020d}.json").write_text("\n".join(lines))
    with pytest.raises(DeltaError):
        Snapshot.load(table.location).files(("path", "size", "partition_values"))
