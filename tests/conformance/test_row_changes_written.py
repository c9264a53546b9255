"""What commits that change rows must say (Deletion Vectors, Add File, Append-only Tables; C145-C149, C250-C282)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyroaring import BitMap64
from tests.commits import actions, commit, create, draft, file, info, memory_location

from pyspark_delta.actions.columns import DELETION_VECTOR, FILE_FIELDS
from pyspark_delta.deletion_vectors import encode_inline
from pyspark_delta.errors import AppendOnlyTableError, DeletionVectorError, InvalidOperationError
from pyspark_delta.protocol.draft import CommitDraft, Operation
from pyspark_delta.protocol.state import TableState
from pyspark_delta.schema.types import LONG, StructField, StructType
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.table import Table
from pyspark_delta.transaction.attempts import commit_draft
from pyspark_delta.transaction.base import state_of
from pyspark_delta.transaction.deleted_rows import delete_rows
from pyspark_delta.transaction.new_table import new_table
from pyspark_delta.transaction.transaction import Transaction

ALL = tuple(f.name for f in FILE_FIELDS)
VECTOR = {"storage_type": "i", "path_or_inline_dv": "x", "offset": None, "size_in_bytes": 4, "cardinality": 1}


@pytest.fixture
def location() -> str:
    return memory_location()


@pytest.mark.parametrize("kind", ["adds", "removes"])
def test_c145_c148_no_file_is_added_or_removed_twice(location: str, kind: str) -> None:
    base = create(location, "deletionVectors", adds=["a", "b"])
    twice: dict[str, Any] = {kind: ["a", file("a", deletion_vector=VECTOR)]}
    with pytest.raises(InvalidOperationError, match=f"cannot {kind[:-1]} the file 'a' twice"):
        commit(draft(**twice), base)
    assert Snapshot.load(location).version == 0


def test_c147_a_file_may_be_removed_added_and_a_change_data_file_in_one_commit(tmp_path: Path) -> None:
    snapshot = written(tmp_path)
    [name] = snapshot.files(("path",))["path"].to_pylist()
    rows = delete_rows(snapshot.location, {}, snapshot.files(ALL), {0: BitMap64([1])})
    marked = rows.with_vectors()
    same = marked.select(["path", "partition_values", "size"])
    state = marked_in(snapshot, rows.files, marked, changes=same)
    lines = Path(tmp_path, "_delta_log", f"{state.version:020d}.json").read_text().splitlines()
    kinds = [next(iter(json.loads(line))) for line in lines]
    assert sorted(kinds) == ["add", "cdc", "commitInfo", "remove"]
    assert all(name in line for line in lines[1:])


def test_c254_c256_c278_c279_every_new_vector_is_in_a_file_of_its_own_beside_all_row_counts(tmp_path: Path) -> None:
    snapshot = written(tmp_path, stats=False)
    for step in range(1, 4):
        files = snapshot.files(ALL)
        rows = delete_rows(snapshot.location, {}, files, {0: BitMap64([step])})
        state = marked_in(snapshot, rows.files, rows.with_vectors())
        snapshot = snapshot.update()
        (add,), (remove,) = (
            [json.loads(line)[kind] for line in log(tmp_path, state.version) if kind in json.loads(line)]
            for kind in ("add", "remove")
        )
        assert json.loads(add["stats"])["numRecords"] == 10  # read from the file, which said nothing
        assert add["deletionVector"]["cardinality"] == step
        assert (remove.get("deletionVector") or {}).get("cardinality", 0) == step - 1
        assert len(list(tmp_path.glob("deletion_vector_*.bin"))) == step
    assert snapshot.configuration.properties["delta.enableDeletionVectors"] == "true"
    assert Table.open(str(tmp_path)).scan().to_arrow().column("id").to_pylist() == [0, 4, 5, 6, 7, 8, 9]


def test_c256_statistics_that_are_cut_off_keep_their_count(tmp_path: Path) -> None:
    snapshot = written(tmp_path)
    files = snapshot.files(ALL)
    whole = ['{"numRecords":1,"tightBounds":true}', '{"numRecords":10,"tightBounds":true}']
    broken = ['{"numRecords":10,"minValues":{"id"', '{"numRecords":11,"minValues":{"x":NaN}}', '{"numRecords":10}{}']
    files = pa.concat_tables([files] * 5)
    files = files.set_column(files.column_names.index("stats"), "stats", pa.array([*whole, *broken]))
    hits = {
        3: BitMap64([3]),
        4: BitMap64([4]),
        0: BitMap64([0]),
        1: BitMap64([1]),
        2: BitMap64([2]),
    }  # as workers found them
    taken = delete_rows(snapshot.location, {}, files, hits)
    assert taken.deletions == [BitMap64([row]) for row in range(5)]
    assert taken.removed["stats"].to_pylist() == whole[:1]
    texts = taken.with_vectors("ab")["stats"].to_pylist()
    assert [json.loads(text) for text in texts] == [{"numRecords": n, "tightBounds": False} for n in (10, 10, 11, 10)]
    assert len(list(tmp_path.glob("ab/deletion_vector_*.bin"))) == 1


EXACT = (
    '"minValues":{"d":1.999999999999999999,"n":100000000000000000000000000000000000001,"f":1.10,"e":1E5}',
    '"maxValues": {"d": 9999999999999999.99, "s": "\\ud83d\\"}{"}',
    '"nullCount":{"tightBounds":true,"numRecords":0}',
)
"""Members of statistics whose values a double or an integer of 64 bits does not hold, or that are spelled unusually."""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            ['"numRecords":10', *EXACT, '"tightBounds":true'],
            ['"numRecords":10', *EXACT, '"tightBounds":false'],
        ),
        (
            ['"tightBounds" : true', *EXACT, '"numRecords":null', '"tightBounds":true'],
            ['"numRecords":10', *EXACT, '"tightBounds":false'],
        ),
        (EXACT, ['"numRecords":10', *EXACT, '"tightBounds":false']),
    ],
    ids=["usual", "twice and null", "absent"],
)
def test_c256_c413_only_what_changes_of_statistics_is_written(
    tmp_path: Path, before: list[str], after: list[str]
) -> None:
    snapshot = written(tmp_path)
    files = snapshot.files(ALL)
    text = pa.array(["{" + " ,".join(before) + "} "])
    files = files.set_column(files.column_names.index("stats"), "stats", text)
    marked = delete_rows(snapshot.location, {}, files, {0: BitMap64([3])}).with_vectors()
    assert marked["stats"].to_pylist() == ["{" + ",".join(after) + "}"]


def test_c252_rows_that_were_gone_before_are_gone_still(tmp_path: Path) -> None:
    files = pa.concat_tables([written(tmp_path).files(ALL)] * 2)
    vectors = [encode_inline(BitMap64([row])) for row in (1, 2)]
    values = [{f.name: getattr(one, f.name) for f in DELETION_VECTOR.type} for one in vectors]
    at, kind = files.column_names.index("deletion_vector"), DELETION_VECTOR.type
    marked = files.set_column(at, DELETION_VECTOR, pa.array(values, kind))
    hits = {1: BitMap64([9])}
    assert delete_rows(str(tmp_path), {}, marked, hits).deletions == [BitMap64([2, 9])]
    assert hits == {1: BitMap64([9])}  # whose number is still to be counted
    values[1]["path_or_inline_dv"] = "00000"
    broken = marked.set_column(at, DELETION_VECTOR, pa.array(values, kind))
    broken = broken.set_column(broken.column_names.index("path"), "path", pa.array(["a", "b"]))
    with pytest.raises(DeletionVectorError, match="'b'"):
        delete_rows(str(tmp_path), {}, broken, {0: BitMap64([5]), **hits})


def test_c252_c279_a_file_without_rows_left_is_removed(tmp_path: Path) -> None:
    snapshot = written(tmp_path)
    rows = delete_rows(snapshot.location, {}, snapshot.files(ALL), {0: BitMap64(range(10))})
    assert (rows.removed.num_rows, rows.updated.num_rows, rows.with_vectors().num_rows) == (1, 0, 0)
    assert not list(tmp_path.glob("*.bin"))


def test_c376_c377_c378_append_only_tables_may_be_rearranged_and_the_rule_lifted(location: str) -> None:
    base = create(location, properties={"delta.appendOnly": "true"}, adds=["a"])
    with pytest.raises(AppendOnlyTableError, match=r"delta\.appendOnly"):
        commit(draft("DELETE", removes=["a"]), base)
    base = commit(draft("OPTIMIZE", adds=["b"], removes=["a"], data_change=False), base)
    assert base.configuration is not None
    metadata = base.configuration.metadata
    for lifted in ({"delta.appendOnly": "false"}, {}):
        changed = type(metadata)(**{**_fields(metadata), "configuration": lifted})
        base = commit(draft("SET TBLPROPERTIES", metadata=changed), base)
        base = commit(draft("DELETE", removes=["b"], adds=["b"] if lifted else []), base)
    assert actions(location, base.version, "remove")
    assert info(location, base.version)["operation"] == "DELETE"


def _fields(metadata: Any) -> dict[str, Any]:
    return {name: getattr(metadata, name) for name in metadata.__dataclass_fields__}


def written(path: Path, *, stats: bool = True) -> Snapshot:
    """A table of one file with the ids 0 to 9, which may be without statistics."""
    schema = StructType((StructField("id", LONG),))
    declared = new_table(schema, [], {"delta.enableDeletionVectors": "true"})
    Transaction.creating(str(path), declared).commit()
    with Transaction.on(Snapshot.load(str(path))) as transaction:
        transaction.write([pa.RecordBatch.from_pydict({"id": pa.array(range(10), pa.int64())})])
    if not stats:
        [commit_file] = path.glob("_delta_log/*1.json")
        lines = [json.loads(line) for line in commit_file.read_text().splitlines()]
        for line in lines:
            line.get("add", {}).pop("stats", None)
        commit_file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        for checksum in path.glob("_delta_log/*.crc"):
            checksum.unlink()
    return Snapshot.load(str(path))


def marked_in(snapshot: Snapshot, removes: pa.Table, adds: pa.Table, changes: pa.Table | None = None) -> TableState:
    """Commit files with other vectors."""
    more = {} if changes is None else {"changes": changes}
    staged = CommitDraft(operation=Operation("DELETE"), removes=removes, adds=adds, **more)
    assert pc.all(pc.is_valid(adds["deletion_vector"])).as_py()
    return commit_draft(staged, state_of(snapshot))


def log(path: Path, version: int) -> list[str]:
    return Path(path, "_delta_log", f"{version:020d}.json").read_text().splitlines()
