"""Offsets: the text of delta-spark, their order, and what is refused."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.interop.kept_tables import OFFSETS

from pyspark_delta.errors import InvalidOffsetError
from pyspark_delta.streaming.offset import (
    AFTER_SCHEMA_CHANGE_INDEX,
    BASE_INDEX,
    SCHEMA_CHANGE_INDEX,
    Offset,
    check_table,
)
from pyspark_delta.streaming.schema_log import SchemaEntry

ID = "f8a1e9b0-3b6a-4c36-9a4e-0a6a3a1f7a11"
TEXTS = {
    # As in the checkpoints of delta-spark, whose class DeltaSourceOffset writes its members in this order.
    f'{{"sourceVersion":1,"reservoirId":"{ID}","reservoirVersion":0,"index":2,"isStartingVersion":true}}': Offset(
        ID, 0, 2, initial=True
    ),
    f'{{"sourceVersion":1,"reservoirId":"{ID}","reservoirVersion":5,"index":-1,"isStartingVersion":false}}': Offset(
        ID, 5
    ),
    f'{{"sourceVersion":1,"reservoirId":"{ID}","reservoirVersion":2,"index":0,"isStartingVersion":false}}': Offset(
        ID, 2, 0
    ),
    f'{{"sourceVersion":3,"reservoirId":"{ID}","reservoirVersion":4,"index":-20,"isStartingVersion":false}}': Offset(
        ID, 4, SCHEMA_CHANGE_INDEX
    ),
    f'{{"sourceVersion":3,"reservoirId":"{ID}","reservoirVersion":4,"index":-19,"isStartingVersion":false}}': Offset(
        ID, 4, AFTER_SCHEMA_CHANGE_INDEX
    ),
}

KEPT = json.loads(OFFSETS.read_text())["streams"]


@pytest.mark.parametrize("text", TEXTS)
def test_an_offset_has_the_text_of_delta_spark(text: str) -> None:
    assert Offset.parse(text) == TEXTS[text]
    assert TEXTS[text].to_json() == text
    assert Offset.parse(json.loads(text)) == TEXTS[text]


@pytest.mark.parametrize("stream", KEPT)
def test_the_offsets_of_delta_spark_keep_text_and_order(stream: str) -> None:
    texts = KEPT[stream]["offsets"]
    read = [Offset.parse(text) for text in texts]
    assert [offset.to_json() for offset in read] == texts
    assert len(read) > 2
    assert all(before < after for before, after in itertools.pairwise(read))


def test_the_schema_log_of_delta_spark_keeps_its_values() -> None:
    """The order of the features of a protocol has no meaning, and differs."""
    texts = KEPT["schema_log"]["schema_log"]
    assert len(texts) == 3
    for text in texts:
        assert _values(SchemaEntry.parse(f"v1\n{text}", "0").to_json()) == _values(text)


def _values(entry: str) -> dict[str, object]:
    values: dict[str, object] = json.loads(entry)
    protocol = json.loads(str(values["protocolJson"]))["protocol"]
    return {**values, "protocolJson": {k: sorted(v) if isinstance(v, list) else v for k, v in protocol.items()}}


@given(
    st.builds(
        Offset,
        st.uuids().map(str),
        st.integers(0, 2**63 - 1),
        st.one_of(st.integers(0, 2**63 - 1), st.sampled_from([BASE_INDEX, SCHEMA_CHANGE_INDEX])),
        st.booleans(),
    )
)
def test_every_offset_can_be_read_again(offset: Offset) -> None:
    assert Offset.parse(offset.to_json()) == offset


def test_offsets_are_ordered_by_version_snapshot_and_index() -> None:
    indexes = (BASE_INDEX, SCHEMA_CHANGE_INDEX, AFTER_SCHEMA_CHANGE_INDEX, 0, 1)
    ordered = [
        Offset(ID, version, index, initial)
        for version in (3, 4)
        for initial in (True, False)
        for index in indexes
        if index in (BASE_INDEX, 0, 1) or not initial
    ]
    for one, other in itertools.combinations(ordered, 2):
        assert one < other
        assert other > one
        assert not one >= other


def text_of(**changed: object) -> str:
    """An offset with other members; None leaves one out."""
    values = {"sourceVersion": 1, "reservoirId": ID, "reservoirVersion": 1, "index": 0, "isStartingVersion": False}
    return json.dumps({name: value for name, value in {**values, **changed}.items() if value is not None})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no JSON",
        "[1]",
        "null",
        '{"logOffset":1}',
        text_of(sourceVersion=None),
        text_of(sourceVersion="1"),
        text_of(sourceVersion=True),
        text_of(reservoirId=None),
        text_of(reservoirId=7),
        text_of(reservoirVersion=None),
        text_of(reservoirVersion="1"),
        text_of(reservoirVersion=-1),
        text_of(index=None),
        text_of(index=1.5),
        text_of(index=True),
        text_of(index=-2),
        text_of(index=BASE_INDEX),
        text_of(isStartingVersion=None),
        text_of(isStartingVersion="false"),
        text_of(index=SCHEMA_CHANGE_INDEX),  # barriers have format 3
    ],
)
def test_a_malformed_offset_is_refused(text: str) -> None:
    with pytest.raises(InvalidOffsetError, match="checkpoint") as caught:
        Offset.parse(text)
    assert caught.value.error_class == "DELTA_INVALID_SOURCE_OFFSET_FORMAT"


@pytest.mark.parametrize(
    ("found", "error_class"),
    [
        (0, "DELTA_INVALID_SOURCE_VERSION"),
        (2, "DELTA_INVALID_SOURCE_VERSION"),
        (4, "DELTA_INVALID_FORMAT_FROM_SOURCE_VERSION"),
    ],
)
def test_a_format_that_is_unknown_is_refused(found: int, error_class: str) -> None:
    with pytest.raises(InvalidOffsetError, match=rf"format {found}\b") as caught:
        Offset.parse(text_of(sourceVersion=found))
    assert caught.value.error_class == error_class


def test_an_offset_of_another_table_is_refused() -> None:
    offset = Offset(ID, 1)
    assert check_table(offset, ID, "/t") is offset
    with pytest.raises(InvalidOffsetError, match=f"id {ID}, but the table at '/t' has id other") as caught:
        check_table(offset, "other", "/t")
    assert caught.value.error_class == "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"
