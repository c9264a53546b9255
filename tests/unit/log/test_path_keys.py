"""Keys of paths, by the column and by whole commits, are those of single paths."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pyspark_delta.errors import CorruptLogError
from pyspark_delta.log.commits import CommitText
from pyspark_delta.log.file_lines import FileLines, path_key
from pyspark_delta.log.reconciliation import file_keys

LOCATION = "/t/é x"
PARTS = [
    "a",
    "p=1",
    "%20",
    "%2F",
    "é",
    "/",
    "//",
    ".",
    "..",
    "./",
    ":",
    "s3://b/",
    "file:",
    LOCATION,
    "/t",
    "%",
    "%4",
    "\\",
]
PATHS = st.lists(st.sampled_from(PARTS), min_size=1, max_size=5).map("".join)


def key_of(path: str) -> bytes | None:
    """None for a path that names no file."""
    try:
        return path_key(LOCATION, path)
    except CorruptLogError:
        return None


@given(st.lists(PATHS, max_size=6))
@example([f"{LOCATION}/a", f"file:{LOCATION}/a", "a", "/t/a", "x%2Fy"])
def test_c144_c215_a_column_of_paths_has_the_keys_of_its_paths(paths: list[str]) -> None:
    expected = [key_of(path) for path in paths]
    array = pa.array(["cut off", *paths], pa.string()).slice(1)
    if None in expected:
        with pytest.raises(CorruptLogError):
            file_keys(array, None, LOCATION)
    else:
        assert [key.encode() for key in file_keys(array, None, LOCATION).to_pylist()] == expected


@given(st.lists(st.lists(st.tuples(st.booleans(), PATHS), max_size=4), max_size=4))
@example([[(True, "a")], [(False, "./a"), (True, "b")]])
@example([[(True, "p/a")], [(False, "p//a")]])
@example([[(True, "a"), (False, "a")]])
def test_c211_c219_commits_together_give_what_each_alone_gives(commits: list[list[tuple[bool, str]]]) -> None:
    commits = [[(adds, path) for adds, path in commit if key_of(path) is not None] for commit in commits]
    state: dict[bytes, bytes] = {}
    texts = []
    for version, commit in enumerate(commits):
        lines = [
            json.dumps({"add" if adds else "remove": {"path": path, "n": n}}, separators=(",", ":")).encode()
            for n, (adds, path) in enumerate(commit)
        ]
        texts.append(CommitText(version, "x", b"\n".join([b'{"commitInfo":{}}', *lines, b""])))
        for wanted in (False, True):
            for (adds, path), line in zip(commit, lines, strict=True):
                if adds is wanted:
                    state[path_key(LOCATION, path)] = line
    assert FileLines().apply(texts, LOCATION).by_key == state
