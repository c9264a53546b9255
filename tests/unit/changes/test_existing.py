"""What the store says of the files of a change feed, whatever the log says of them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from pyspark_delta.changes.existing import with_statuses
from pyspark_delta.errors import DataFileError
from pyspark_delta.storage import store_for


@pytest.fixture(params=["local", "s3"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, dict[str, str]]:
    """The location of a table and the options of its store; it has a file of five bytes, and another one."""
    if request.param == "local":
        location, options = str(tmp_path), {}
    else:
        location, options = "s3://contract/existing", request.getfixturevalue("s3_options")
    store = store_for(location, options)
    store.write(f"{location}/a.parquet", b"12345")
    store.write(f"{location}/b c.parquet", b"1")
    return location, options


def listed(*paths: str) -> pa.Table:
    """Files as the log tells them, of versions from 1 on."""
    times = pa.nulls(len(paths), pa.int64())
    files = {"path": paths, "size": [0] * len(paths), "modification_time": times, "version": range(1, len(paths) + 1)}
    return pa.table(files).cast(pa.schema([(name, pa.string() if name == "path" else pa.int64()) for name in files]))


def test_sizes_and_times_are_those_in_the_store(table: tuple[str, dict[str, str]]) -> None:
    location, options = table
    files = listed("b%20c.parquet", "a.parquet", f"{location}/b%20c.parquet")
    for given in (files, pa.concat_tables([files.slice(0, 1), files.slice(1)]), files.drop_columns("size")):
        found = with_statuses(given, location, options)
        assert sorted(found.column_names) == ["modification_time", "path", "size", "version"]
        assert found.select(["path", "version"]) == files.select(["path", "version"])
        assert found["size"].to_pylist() == [1, 5, 1]
        store = store_for(location, options)
        times = [store.status(f"{location}/{name}").modification_time for name in ("b c.parquet", "a.parquet")]
        assert found["modification_time"].to_pylist() == [*times, times[0]]


def test_a_file_that_is_gone_is_named_with_its_versions_alone(table: tuple[str, dict[str, str]]) -> None:
    location, options = table
    files = listed("a.parquet", "gone.parquet", "b%20c.parquet", "gone.parquet")
    with pytest.raises(DataFileError, match=rf"versions 2, 4 .*{location}/gone\.parquet' does not exist"):
        with_statuses(files, location, options)
