"""Rows of area CAT that hold without a catalog: its tables are refused by path, and staged commits are no log."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.hand_made import PLAIN, HandMade, add, features, field, metadata

from pyspark_delta.errors import UnsupportedFeatureError
from pyspark_delta.log.names import CommitName, parse_name
from pyspark_delta.log.segment import load_segment
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.storage import FileStatus, store_for
from pyspark_delta.storage.paths import file_name
from pyspark_delta.table import Table

RATIFIED = "7d17ac10-5cc3-401b-bd1a-9c82dd2ea032"
REJECTED = "b91807ba-fe18-488c-a15e-c4807dbd2174"
PUBLISHED = "016ae953-37a9-438e-8683-9a9a4a79a395"
INLINE = "00000000-0000-4000-8000-000000000009"


@pytest.fixture
def table(tmp_path: Path) -> HandMade:
    """An empty folder for a table."""
    return HandMade(tmp_path / "table")


@pytest.mark.parametrize("name", ["catalogManaged", "catalogOwned-preview"])
def test_c449_c451_c484_opening_by_path_is_refused(table: HandMade, name: str) -> None:
    table.commit(0, features(name, "inCommitTimestamp", reader=[name]), metadata(field("id")), add("a"))
    with pytest.raises(UnsupportedFeatureError) as caught:
        Table.open(table.path)
    assert "catalog" in caught.value.message
    assert str(table.path) in caught.value.message


def test_c449_no_property_decides(table: HandMade) -> None:
    table.commit(0, PLAIN, metadata(field("id"), configuration={"delta.feature.catalogManaged": "supported"}), add("a"))
    assert Table.open(table.path).version == 0


@pytest.mark.parametrize(
    ("version", "uuid"),
    [
        (0, "3a0d65cd-4056-49b8-937b-95f9e3ee90e5"),
        (1, RATIFIED),
        (1, PUBLISHED),
        (2, "3ae45b72-24e1-865a-a211-34987ae02f2a"),
    ],
)
def test_c445_c446_the_version_in_a_staged_name_counts(version: int, uuid: str) -> None:
    assert parse_name(f"{version:020}.{uuid}.json") == CommitName(version, uuid)


def test_c444_c447_c453_c457_staged_commits_are_not_found_by_listing(table: HandMade) -> None:
    table.commit(0, PLAIN, metadata(field("id")), add("a"))
    staged = table.log / "_staged_commits"
    staged.mkdir()
    (staged / f"{1:020}.{RATIFIED}.json").write_text('{"add": cut off')
    (table.log / f"{1:020}.{RATIFIED}.json").write_text('{"add": cut off')
    assert Snapshot.load(str(table.path)).version == 0


def test_c463_c464_c465_the_answer_of_the_catalog_comes_before_the_listing(table: HandMade) -> None:
    """The snapshot example of the specification; the inline commit 9 is a file elsewhere."""
    for version in range(8):
        table.commit(version, *([PLAIN, metadata(field("id"))] if version == 0 else []), add(f"{version}"))
    table.checkpoint(2, PLAIN, metadata(field("id")), add("0"), add("1"), add("2"))
    table.checkpoint(11, PLAIN, metadata(field("other")))
    (table.log / f"{3:020}.{5:020}.compacted.json").write_text(
        "".join(table.commit_file(v).read_text() for v in (3, 4, 5))
    )
    staged = table.log / "_staged_commits"
    staged.mkdir()
    answer = []
    for version, uuid in ((7, PUBLISHED), (8, RATIFIED), (8, REJECTED), (9, INLINE), (10, RATIFIED), (10, REJECTED)):
        path = staged / f"{version:020}.{uuid}.json"
        path.write_text(table.commit_file(7).read_text().replace('"7"', f'"{version} {uuid}"'))
        if uuid != REJECTED and version < 10:
            answer.append(FileStatus(str(path), path.stat().st_size, 1))
    table.commit(10, add("not ratified"))
    store = store_for(str(table.path))
    segment = load_segment(store, str(table.path), log_tail=answer, max_version=9)
    assert segment.end_version == 9
    assert segment.checkpoint_version == 2
    names = [file_name(entry.file.path) for entry in segment.replay_files()]
    assert names == [
        f"{3:020}.{5:020}.compacted.json",
        f"{6:020}.json",
        f"{7:020}.{PUBLISHED}.json",
        f"{8:020}.{RATIFIED}.json",
        f"{9:020}.{INLINE}.json",
    ]
