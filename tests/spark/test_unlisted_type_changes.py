"""Type changes that other writers make and the protocol does not list: files that only the Arrow reader converts."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.hand_made import HandMade, features, field, metadata

from pyspark_delta import DeltaTable

TYPES = {"d": ("byte", "decimal(4,1)"), "f": ("short", "float")}


def make(path: Path) -> Path:
    """A table of a file from before the changes, and one from after."""
    made = HandMade(path / "t")
    feed = {"delta.enableChangeDataFeed": "true"}
    names = ["typeWidening", "changeDataFeed"]
    narrow = [field(name, before) for name, (before, _) in TYPES.items()]
    made.commit(0, features(*names, reader=names[:1]), metadata(field("id"), *narrow, configuration=feed))
    old = {"id": [1, 2], "d": pa.array([-128, None], pa.int8()), "f": pa.array([-(2**15), 1], pa.int16())}
    made.commit(1, made.data("old.parquet", old))
    wide = [
        field(name, after, **{"delta.typeChanges": [{"fromType": before, "toType": after}]})
        for name, (before, after) in TYPES.items()
    ]
    made.commit(2, metadata(field("id"), *wide, configuration=feed))
    new = {"id": [3], "d": pa.array([Decimal("1.5")], pa.decimal128(4, 1)), "f": pa.array([0.5], pa.float32())}
    made.commit(3, made.data("new.parquet", new))
    return made.path


class UnlistedChanges:
    def test_files_from_before_are_read_and_changed(self, session: SparkSession, tmp_path: Path) -> None:
        path = make(tmp_path)
        table = DeltaTable.forPath(session, str(path))
        rows = {1: (Decimal("-128.0"), -32768.0), 2: (None, 1.0), 3: (Decimal("1.5"), 0.5)}

        def content() -> dict[int, tuple[object, object]]:
            return {row.id: (row.d, row.f) for row in session.read.format("delta").load(str(path)).collect()}

        assert content() == rows
        assert [row.id for row in table.toDF().where("d < -127.5").collect()] == [1]
        table.update("f = -32768", {"d": "d + 200"})
        table.delete("id = 3")
        assert content() == {1: (Decimal("72.0"), -32768.0), 2: rows[2]}
        feed = session.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 1)
        inserted = feed.load(str(path)).where("_change_type = 'insert'").collect()
        assert {row.id: (row.d, row.f) for row in inserted} == rows


class TestClassic(UnlistedChanges):
    @pytest.fixture
    def session(self, delta_spark: SparkSession) -> SparkSession:
        return delta_spark


class TestConnect(UnlistedChanges):
    @pytest.fixture
    def session(self, delta_connect: SparkSession) -> SparkSession:
        return delta_connect
