"""What can be wrong with a table: each damage makes one from a sound table, and says what the error must tell."""

from __future__ import annotations

import json
import re
import shutil
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyroaring import BitMap64
from tests.hand_made import PLAIN, HandMade, add, features, field, lines, metadata, remove, struct_of

from pyspark_delta.deletion_vectors.bitmap import serialize
from pyspark_delta.deletion_vectors.z85 import encode

COLUMNS = (field("id"), field("name", "string"), field("p", "string"))
ROWS = [(1, "a", "x"), (2, "b", "x"), (3, "c", "y"), (4, "d", None)]


@dataclass(frozen=True)
class Damage:
    """`apply` damages the sound table; the error must match all of `tells`.

    With `rows` the table stays readable, with a warning that matches `warns`, if any.
    """

    name: str
    apply: Callable[[HandMade], None]
    tells: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] | None = None
    warns: str | None = None


DAMAGES: list[Damage] = []


def damage(
    *tells: str, rows: list[tuple[Any, ...]] | None = None, warns: str | None = None
) -> Callable[..., Callable[[HandMade], None]]:
    """Register a damage under its function's name; `tells` are patterns that the error must match."""

    def register(apply: Callable[[HandMade], None]) -> Callable[[HandMade], None]:
        DAMAGES.append(Damage(apply.__name__, apply, tells, None if rows is None else tuple(rows), warns))
        return apply

    return register


def sound(path: Path) -> HandMade:
    """Four rows in three files and two commits, one row of them deleted by a vector in a file."""
    table = HandMade(path)
    first = table.data("p=x/first.parquet", {"id": [1, 2, 9], "name": ["a", "b", "z"]}, {"p": "x"})
    second = table.data("p=y/second.parquet", {"id": [3], "name": ["c"]}, {"p": "y"})
    third = table.data("third.parquet", {"id": [4], "name": ["d"]}, {"p": None})
    bitmap = serialize(BitMap64([2]))
    identifier, spans = table.vectors(bitmap)
    first["add"]["deletionVector"] = {
        "storageType": "u",
        "pathOrInlineDv": encode(bytes.fromhex(identifier.replace("-", ""))),
        "offset": spans[0][0],
        "sizeInBytes": spans[0][1],
        "cardinality": 1,
    }
    table.commit(0, features("deletionVectors"), metadata(*COLUMNS, partition=["p"]), first)
    table.commit(1, second, third)
    return table


# ------------------------------------------------------------------------------------------- places, not tables
@damage("_delta_log", "no Delta table")
def log_is_empty(t: HandMade) -> None:
    shutil.rmtree(t.log)
    t.log.mkdir()


@damage("no Delta table")
def log_is_missing(t: HandMade) -> None:
    shutil.rmtree(t.log)


@damage("no Delta table")
def log_is_a_file(t: HandMade) -> None:
    shutil.rmtree(t.log)
    t.log.write_text("{}")


@damage("no Delta table")
def location_is_a_file(t: HandMade) -> None:
    shutil.rmtree(t.path)
    t.path.write_text("{}")


@damage("no Delta table")
def location_is_missing(t: HandMade) -> None:
    shutil.rmtree(t.path)


@damage("no Delta table")
def log_holds_only_other_files(t: HandMade) -> None:
    for commit in t.log.iterdir():
        commit.rename(commit.with_suffix(".txt"))


# ----------------------------------------------------------------------------------------------------- versions
@damage("0{20}.json|version 0|begins at version 1")
def first_commit_is_missing(t: HandMade) -> None:
    t.commit_file(0).unlink()


@damage("version 2", "not contiguous|missing")
def commit_in_the_middle_is_missing(t: HandMade) -> None:
    t.commit(3, remove("third.parquet"))


@damage("0{19}1.json|not contiguous|version 1")
def commit_is_a_directory(t: HandMade) -> None:
    t.commit_file(1).unlink()
    t.commit_file(1).mkdir()
    t.commit(2, remove("third.parquet"))


# ------------------------------------------------------------------------------------------------------ content
def _replace(t: HandMade, version: int, data: bytes) -> None:
    t.commit_file(version).write_bytes(data)


def _edit(t: HandMade, version: int, kind: str, edit: Callable[[dict[str, Any]], Any]) -> None:
    """Change the actions of one kind in a commit; the result replaces the action unless it is None."""
    actions = [json.loads(line) for line in t.commit_file(version).read_text().splitlines()]
    for action in actions:
        if kind in action:
            replaced = edit(action[kind])
            if replaced is not None:
                action[kind] = replaced
    t.commit(version, *actions)


@damage("0{19}1.json", "line 2", "JSON")
def commit_is_cut_off(t: HandMade) -> None:
    _replace(t, 1, t.commit_file(1).read_bytes()[:-40])


@damage("0{19}1.json", "JSON|object")
def commit_is_text(t: HandMade) -> None:
    _replace(t, 1, b"this is not a commit\n")


@damage("0{19}1.json", "object")
def commit_is_an_array(t: HandMade) -> None:
    _replace(t, 1, b'[{"add": 1}]\n')


@damage("0{19}1.json", "line 2", "JSON|object")
def line_in_the_middle_is_text(t: HandMade) -> None:
    first, second = t.commit_file(1).read_bytes().splitlines()
    _replace(t, 1, b"\n".join([first, b"garbage", second]))


@damage("0{19}1.json", "line 1")
def bytes_are_not_utf8(t: HandMade) -> None:
    _replace(t, 1, t.commit_file(1).read_bytes().replace(b"second", b"sec\xff\xfend"))


@damage("0{19}1.json", "line 1")
def bytes_are_nul(t: HandMade) -> None:
    _replace(t, 1, b"\0" * 1000)


@damage("0{19}1.json", "line 1")
def nul_inside_a_line(t: HandMade) -> None:
    _replace(t, 1, t.commit_file(1).read_bytes().replace(b"second", b"sec\0nd"))


@damage("0{19}1.json", "line")
def one_line_of_many_megabytes(t: HandMade) -> None:
    _replace(t, 1, b'{"add":{"path":"' + b"x" * 50_000_000)


@damage("0{19}1.json", "line 1")
def nesting_without_end(t: HandMade) -> None:
    _replace(t, 1, b'{"add":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}\n")


@damage("0{19}1.json", "path")
def add_without_a_path(t: HandMade) -> None:
    _edit(t, 1, "add", lambda a: a.pop("path") and None)


@damage("0{19}1.json", "path", "string")
def path_is_a_number(t: HandMade) -> None:
    _edit(t, 1, "add", lambda a: a.update(path=7))


@damage("0{19}1.json", "size")
def add_without_a_size(t: HandMade) -> None:
    _edit(t, 1, "add", lambda a: a.pop("size") and None)


@damage("0{19}1.json", "size", "whole number")
def size_is_text(t: HandMade) -> None:
    _edit(t, 1, "add", lambda a: a.update(size="many"))


@damage("0{19}1.json", "size", "64 bits|whole number|JSON")
def size_is_beyond_64_bits(t: HandMade) -> None:
    _edit(t, 1, "add", lambda a: a.update(size=2**63))


@damage("0{19}1.json", "partitionValues")
def partition_values_are_a_list(t: HandMade) -> None:
    _edit(t, 1, "add", lambda a: a.update(partitionValues=["y"]))


@damage("0{19}1.json", "partitionValues")
def partition_value_is_a_list(t: HandMade) -> None:
    _edit(t, 1, "add", lambda a: a.update(partitionValues={"p": [5]}))


@damage("0{19}1.json", "add", "object")
def add_is_a_text(t: HandMade) -> None:
    _edit(t, 1, "add", lambda a: "add me")


@damage("_delta_log", "protocol")
def protocol_is_missing(t: HandMade) -> None:
    _edit(t, 0, "protocol", lambda a: {})
    t.commit_file(0).write_text("\n".join(t.commit_file(0).read_text().splitlines()[1:]))


@damage("0{20}.json", "minReaderVersion")
def protocol_without_a_reader_version(t: HandMade) -> None:
    _edit(t, 0, "protocol", lambda a: a.pop("minReaderVersion") and None)


@damage("readerFeatures", "array|strings")
def reader_features_are_a_text(t: HandMade) -> None:
    _edit(t, 0, "protocol", lambda a: a.update(readerFeatures="deletionVectors"))


@damage("reader version 9|9")
def reader_version_of_the_future(t: HandMade) -> None:
    _edit(t, 0, "protocol", lambda a: {"minReaderVersion": 9, "minWriterVersion": 9})


@damage("timeMachine")
def reader_feature_of_the_future(t: HandMade) -> None:
    _edit(t, 0, "protocol", lambda a: {**a, "readerFeatures": ["timeMachine"], "writerFeatures": ["timeMachine"]})


@damage("_delta_log", "metaData")
def metadata_is_missing(t: HandMade) -> None:
    kept = [line for line in t.commit_file(0).read_text().splitlines() if "metaData" not in line]
    t.commit_file(0).write_text("\n".join(kept))


@damage("0{20}.json", "metaData", "2|allowed")
def metadata_twice_in_a_commit(t: HandMade) -> None:
    t.commit_file(0).write_text(t.commit_file(0).read_text() + lines([metadata(field("other"))]))


@damage("schemaString")
def schema_string_is_missing(t: HandMade) -> None:
    _edit(t, 0, "metaData", lambda a: a.pop("schemaString") and None)


@damage("schemaString", "JSON", "damaged")
def schema_string_is_not_json(t: HandMade) -> None:
    _edit(t, 0, "metaData", lambda a: a.update(schemaString="struct<id: long>"))


@damage("schemaString|struct", "damaged")
def schema_is_a_long(t: HandMade) -> None:
    _edit(t, 0, "metaData", lambda a: a.update(schemaString='"long"'))


def _schema(t: HandMade, schema: Any) -> None:
    _edit(t, 0, "metaData", lambda a: a.update(schemaString=json.dumps(schema)))


@damage("hologram", "damaged")
def schema_names_an_unknown_type(t: HandMade) -> None:
    _schema(t, struct_of(field("id", "hologram"), *COLUMNS[1:]))


@damage("fields", "damaged")
def struct_without_fields(t: HandMade) -> None:
    _schema(t, {"type": "struct"})


@damage("decimal", "damaged")
def decimal_of_400_digits(t: HandMade) -> None:
    _schema(t, struct_of(field("id", "decimal(400,2)"), *COLUMNS[1:]))


@damage("(?i)name", "(?i)case|twice|duplicate", "damaged")
def columns_differ_only_in_case(t: HandMade) -> None:
    _schema(t, struct_of(*COLUMNS, field("NAME", "string")))


@damage("nested|depth|levels|recursion", "damaged")
def schema_without_end(t: HandMade) -> None:
    schema: Any = "long"
    for _ in range(5_000):
        schema = {"type": "array", "elementType": schema, "containsNull": True}
    text = '{"type":"array","containsNull":true,"elementType":' * 5_000 + '"long"' + "}" * 5_000
    whole = '{"type":"struct","fields":[{"name":"id","nullable":true,"metadata":{},"type":' + text + "}]}"
    _edit(t, 0, "metaData", lambda a: a.update(schemaString=whole))


@damage("nowhere", "damaged")
def partition_column_outside_the_schema(t: HandMade) -> None:
    _edit(t, 0, "metaData", lambda a: a.update(partitionColumns=["nowhere"]))


@damage("/damaged", "partition value", "'p'")
def partition_value_of_another_type(t: HandMade) -> None:
    _schema(t, struct_of(COLUMNS[0], COLUMNS[1], field("p", "date")))


@damage("configuration", "object|string")
def properties_are_objects(t: HandMade) -> None:
    _edit(t, 0, "metaData", lambda a: a.update(configuration={"delta.appendOnly": {"value": True}}))


@damage("columnMapping.mode|mapping", "sideways")
def mapping_mode_is_unknown(t: HandMade) -> None:
    _edit(t, 0, "protocol", lambda a: features("deletionVectors", "columnMapping")["protocol"])
    _edit(t, 0, "metaData", lambda a: a.update(configuration={"delta.columnMapping.mode": "sideways"}))


@damage("physicalName|columnMapping", "id|name")
def mapped_columns_without_physical_names(t: HandMade) -> None:
    _edit(t, 0, "protocol", lambda a: features("deletionVectors", "columnMapping")["protocol"])
    _edit(t, 0, "metaData", lambda a: a.update(configuration={"delta.columnMapping.mode": "name"}))


# -------------------------------------------------------------------------------------------------- checkpoints
def _all_actions(t: HandMade) -> list[dict[str, Any]]:
    return [json.loads(line) for v in (0, 1) for line in t.commit_file(v).read_text().splitlines()]


def _checkpointed(t: HandMade) -> Path:
    """A checkpoint of version 1, and no more commits up to it."""
    path = t.checkpoint(1, *_all_actions(t))
    t.commit(2, {"commitInfo": {}})
    t.commit_file(0).unlink()
    t.commit_file(1).unlink()
    return path


@damage("checkpoint.parquet", "not readable|damaged|cut off")
def checkpoint_is_cut_off(t: HandMade) -> None:
    path = _checkpointed(t)
    path.write_bytes(path.read_bytes()[:-100])


@damage("checkpoint.parquet", "not readable|damaged|cut off")
def checkpoint_footer_is_scrambled(t: HandMade) -> None:
    path = _checkpointed(t)
    data = bytearray(path.read_bytes())
    data[-400:-300] = bytes(range(100))
    path.write_bytes(data)


@damage("checkpoint.parquet", "not readable|damaged|cut off")
def checkpoint_is_text(t: HandMade) -> None:
    _checkpointed(t).write_text("PAR0 not a checkpoint")


@damage("checkpoint.parquet|_delta_log", "protocol|metaData")
def checkpoint_has_other_columns(t: HandMade) -> None:
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"x": [1]}), _checkpointed(t))


@damage("_delta_log", "protocol|struct")
def checkpoint_columns_are_texts(t: HandMade) -> None:
    import pyarrow.parquet as pq

    names = ("protocol", "metaData", "add", "remove", "txn")
    pq.write_table(pa.table({name: ["x"] for name in names}), _checkpointed(t))


@damage("checkpoint", "part|incomplete")
def checkpoint_part_is_missing(t: HandMade) -> None:
    _checkpointed(t).unlink()
    t.commit_file(2).unlink()
    t.checkpoint(1, *[PLAIN], name=f"{1:020}.checkpoint.{1:010}.{2:010}.parquet")


@damage("_sidecars/gone.parquet", "missing")
def sidecar_is_missing(t: HandMade) -> None:
    actions = _all_actions(t)
    actions[0] = features("deletionVectors", "v2Checkpoint")
    _checkpointed(t).unlink()
    kept = [a for a in actions if "add" not in a]
    sidecar = {"sidecar": {"path": "gone.parquet", "sizeInBytes": 1, "modificationTime": 1}}
    t.checkpoint(1, *kept, {"checkpointMetadata": {"version": 1}}, sidecar)


@damage("_sidecars/half.parquet", "not readable|damaged")
def sidecar_is_cut_off(t: HandMade) -> None:
    sidecar_is_missing(t)
    actions = [a for a in (_checkpoint_adds(t)) if "add" in a]
    path = t.checkpoint(1, *actions, name="half.parquet", folder=t.log / "_sidecars")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    kept = [features("deletionVectors", "v2Checkpoint"), metadata(*COLUMNS, partition=["p"])]
    sidecar = {"sidecar": {"path": "half.parquet", "sizeInBytes": 1, "modificationTime": 1}}
    t.checkpoint(1, *kept, {"checkpointMetadata": {"version": 1}}, sidecar)


def _checkpoint_adds(t: HandMade) -> list[dict[str, Any]]:
    return [add(f.relative_to(t.path).as_posix()) for f in sorted(t.path.rglob("*.parquet")) if f.parent != t.log]


@damage(rows=ROWS)
def last_checkpoint_points_nowhere(t: HandMade) -> None:
    (t.log / "_last_checkpoint").write_text('{"version": 7, "size": 1}')


@damage(rows=ROWS)
def last_checkpoint_is_garbage(t: HandMade) -> None:
    (t.log / "_last_checkpoint").write_bytes(b"\xff\0{")


@damage(rows=ROWS)
def last_checkpoint_is_a_directory(t: HandMade) -> None:
    (t.log / "_last_checkpoint").mkdir()


@damage(rows=ROWS, warns="checkpoint.parquet")
def damaged_checkpoint_over_kept_commits(t: HandMade) -> None:
    t.checkpoint(1, *_all_actions(t)).write_text("PAR1 not a checkpoint PAR1")


@damage("checkpoint.parquet", "not readable|damaged|cut off")
def body_of_a_checkpoint_is_scrambled(t: HandMade) -> None:
    path = t.checkpoint(1, *_all_actions(t))
    data = bytearray(path.read_bytes())
    data[4:600] = bytes(596)
    path.write_bytes(data)


@damage(rows=ROWS)
def incomplete_checkpoint_over_kept_commits(t: HandMade) -> None:
    t.checkpoint(1, *_all_actions(t), name=f"{1:020}.checkpoint.{1:010}.{2:010}.parquet")


@damage(rows=ROWS)
def checksum_file_is_garbage(t: HandMade) -> None:
    (t.log / f"{1:020}.crc").write_text('{"tableSizeBytes": "x"')


@damage(rows=ROWS)
def foreign_files_lie_in_the_log(t: HandMade) -> None:
    for name in ("README", ".tmp", "1.json", f"{9:020}.json.tmp", f"{9:020}.checkpoint.parquet.crc", "é\n.json"):
        (t.log / name).write_text("x")
    (t.log / f"{9:020}").mkdir()


# ------------------------------------------------------------------------------------------- paths and data files
@damage(r"\.\./", "climb|escape")
def path_climbs_out(t: HandMade) -> None:
    (t.path.parent / "secret.parquet").write_bytes((t.path / "third.parquet").read_bytes())
    t.commit(2, add("../secret.parquet", partition={"p": "s"}))


@damage(r"%2e%2e|\.\.", "climb|escape")
def path_climbs_out_encoded(t: HandMade) -> None:
    t.commit(2, add("x/%2e%2e/%2E%2E/secret.parquet", partition={"p": "s"}))


@damage("(?i)NUL|null character|%00")
def path_holds_nul(t: HandMade) -> None:
    t.commit(2, add("a%00b.parquet", partition={"p": "s"}))


@damage("path|file", "empty|names no file")
def path_is_empty(t: HandMade) -> None:
    t.commit(2, add("", partition={"p": "s"}))


@damage("gopher", "scheme|support")
def path_of_an_unknown_scheme(t: HandMade) -> None:
    t.commit(2, add("gopher://host/file.parquet", partition={"p": "s"}))


@damage("second.parquet", "does not exist")
def data_file_is_missing(t: HandMade) -> None:
    (t.path / "p=y/second.parquet").unlink()


@damage("second.parquet", "directory|does not exist|cannot be read")
def data_file_is_a_directory(t: HandMade) -> None:
    (t.path / "p=y/second.parquet").unlink()
    (t.path / "p=y/second.parquet").mkdir()


@damage("second.parquet", "Parquet")
def data_file_is_cut_off(t: HandMade) -> None:
    path = t.path / "p=y/second.parquet"
    path.write_bytes(path.read_bytes()[:-30])


@damage("second.parquet", "Parquet")
def data_file_is_empty(t: HandMade) -> None:
    (t.path / "p=y/second.parquet").write_bytes(b"")


@damage("second.parquet", "Parquet")
def data_file_is_text(t: HandMade) -> None:
    (t.path / "p=y/second.parquet").write_text("id,name\n3,c\n")


@damage("second.parquet")
def data_pages_are_scrambled(t: HandMade) -> None:
    path = t.path / "p=y/second.parquet"
    data = bytearray(path.read_bytes())
    data[4:60] = b"\xff" * 56
    path.write_bytes(data)


@damage("second.parquet", "id", "string")
def data_file_holds_another_type(t: HandMade) -> None:
    t.data("p=y/second.parquet", {"id": ["three"], "name": ["c"]})


@damage("second.parquet", "id")
def data_file_holds_a_struct_for_a_number(t: HandMade) -> None:
    t.data("p=y/second.parquet", {"id": [{"x": 3}], "name": ["c"]})


@damage("second.parquet", "id")
def data_file_holds_a_wider_type(t: HandMade) -> None:
    t.data("p=y/second.parquet", pa.table({"id": pa.array([3.5]), "name": ["c"]}))


@damage("second.parquet", "name|column")
def data_file_holds_a_column_in_two_cases(t: HandMade) -> None:
    t.data("p=y/second.parquet", pa.table([pa.array([3]), ["c"], ["C"]], names=["id", "Name", "NAME"]))


# ---------------------------------------------------------------------------------------------- deletion vectors
def _vector_file(t: HandMade) -> Path:
    return next(t.path.glob("deletion_vector_*.bin"))


@damage("deletion_vector_", "does not exist")
def vector_file_is_missing(t: HandMade) -> None:
    _vector_file(t).unlink()


@damage("deletion_vector_", "checksum|damaged")
def vector_checksum_is_wrong(t: HandMade) -> None:
    path = _vector_file(t)
    path.write_bytes(path.read_bytes()[:-1] + b"\x55")


@damage("deletion_vector_", "ends")
def vector_file_is_cut_off(t: HandMade) -> None:
    path = _vector_file(t)
    path.write_bytes(path.read_bytes()[:-10])


@damage("deletion_vector_", "format version")
def vector_file_is_of_another_version(t: HandMade) -> None:
    path = _vector_file(t)
    path.write_bytes(b"\x02" + path.read_bytes()[1:])


@damage("deletion_vector_", "bytes")
def vector_size_is_wrong(t: HandMade) -> None:
    path = _vector_file(t)
    data = path.read_bytes()
    path.write_bytes(data[:1] + struct.pack(">i", 7) + data[5:])


def _vector(t: HandMade, **changes: Any) -> None:
    _edit(t, 0, "add", lambda a: a["deletionVector"].update(changes))


@damage("deletion_vector_", "rows", "7")
def vector_cardinality_is_wrong(t: HandMade) -> None:
    _vector(t, cardinality=7)


@damage("(?i)storage type|storageType", "z")
def vector_storage_type_is_unknown(t: HandMade) -> None:
    _vector(t, storageType="z")


@damage("negative|offset")
def vector_offset_is_negative(t: HandMade) -> None:
    _vector(t, offset=-5)


@damage(r"\.\.")
def vector_path_climbs_out(t: HandMade) -> None:
    _vector(t, storageType="p", pathOrInlineDv="../../vector.bin")


@damage("sizeInBytes")
def vector_without_a_size(t: HandMade) -> None:
    _edit(t, 0, "add", lambda a: a["deletionVector"].pop("sizeInBytes") and None)


@damage("Z85|85")
def inline_vector_is_not_z85(t: HandMade) -> None:
    _vector(t, storageType="i", pathOrInlineDv='"""""')


@damage("first.parquet", "row 599999999", "3 rows")
def vector_of_few_bytes_marks_many_rows(t: HandMade) -> None:
    rows = BitMap64(range(600_000_000))
    bitmap = serialize(rows)
    text, size = encode(bitmap), len(bitmap)
    _vector(t, storageType="i", pathOrInlineDv=text, sizeInBytes=size, cardinality=len(rows), offset=None)


@damage("first.parquet", "row 50", "3 rows")
def vector_marks_rows_beyond_the_file(t: HandMade) -> None:
    bitmap = serialize(BitMap64([50]))
    _vector(t, storageType="i", pathOrInlineDv=encode(bitmap), sizeInBytes=len(bitmap), cardinality=1, offset=None)


def matches(pattern: str, text: str) -> bool:
    """Whether a pattern of `tells` is in a message."""
    return re.search(pattern, text) is not None
