"""The files of a scan in balanced partitions that travel to workers."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from pyspark_delta.actions.columns import FILE_FIELDS
from pyspark_delta.actions.model import DeletionVectorDescriptor
from pyspark_delta.engines.tasks import FileGroup, group_files, in_shares, single_files, thread_groups
from pyspark_delta.scan.plan import ReadContext

MB = 1024 * 1024
CONTEXT = ReadContext("/t", (), ())


def files(sizes: list[int]) -> pa.Table:
    """Files of those sizes."""
    rows = [
        {
            "path": f"f{number}.parquet",
            "partition_values": [("p", None if number % 2 else str(number))],
            "size": size,
            "modification_time": 0,
            "stats": "x" * 1000,
            "deletion_vector": {
                "storage_type": "u",
                "path_or_inline_dv": "ab",
                "offset": 1,
                "size_in_bytes": 36,
                "cardinality": 2,
            }
            if number == 1
            else None,
            "base_row_id": number * 10,
            "default_row_commit_version": 3,
        }
        for number, size in enumerate(sizes)
    ]
    schema = pa.schema([field for field in FILE_FIELDS if field.name not in ("tags", "clustering_provider")])
    return pa.Table.from_pylist(rows, schema=schema)


def paths(groups: list[FileGroup]) -> list[list[str]]:
    """The files of each partition."""
    return [[task.path for task in group.tasks()] for group in groups]


def test_every_file_is_in_one_partition_in_order() -> None:
    groups = list(group_files(CONTEXT, files([5 * MB] * 100), cores=4))
    assert [path for group in paths(groups) for path in group] == [f"f{n}.parquet" for n in range(100)]


def test_no_file_no_partition() -> None:
    assert list(group_files(CONTEXT, files([]), cores=4)) == []


@pytest.mark.parametrize(
    ("sizes", "cores", "least", "most"),
    [
        ([1000] * 200, 4, 4, 8),  # many tiny files: as many partitions as cores
        ([300 * MB] * 4, 2, 4, 4),  # large files: one each
        ([10 * MB] * 100, 2, 10, 12),  # limited by the size of a partition
        ([1000], 16, 1, 1),
        ([0] * 3, 2, 1, 3),
    ],
)
def test_partitions_are_balanced(sizes: list[int], cores: int, least: int, most: int) -> None:
    groups = list(group_files(CONTEXT, files(sizes), cores=cores))
    assert least <= len(groups) <= most
    assert all(group.number_of_files for group in groups)


def test_tasks_hold_what_the_log_says() -> None:
    (group,) = group_files(CONTEXT, files([1, 2]), cores=1)
    first, second = group.tasks()
    assert (first.path, first.size, first.partition_values) == ("f0.parquet", 1, {"p": "0"})
    assert (first.deletion_vector, first.base_row_id, first.default_row_commit_version) == (None, 0, 3)
    assert second.partition_values == {"p": None}
    assert second.deletion_vector == DeletionVectorDescriptor(
        storage_type="u", path_or_inline_dv="ab", offset=1, size_in_bytes=36, cardinality=2
    )


def test_a_partition_travels_alone() -> None:
    asked = files([64 * MB] * 200)
    for groups in (list(group_files(CONTEXT, asked, cores=1)), list(single_files(CONTEXT, asked))):
        message = pickle.dumps(groups[0])
        assert len(message) < 5000
        copy = pickle.loads(message)
        assert copy.tasks() == groups[0].tasks()
        assert copy.context == groups[0].context
    assert paths(groups) == [[f"f{number}.parquet"] for number in range(200)]


def test_large_files_are_shared_by_tasks() -> None:
    shares = in_shares(files([300 * MB, 5 * MB, 128 * MB, 0]))
    assert shares["size"].to_pylist() == [100 * MB, 100 * MB, 100 * MB, 5 * MB, 128 * MB, 0]
    tasks = [task for group in group_files(CONTEXT, shares, cores=2) for task in group.tasks()]
    assert [(task.path, task.share) for task in tasks] == [
        ("f0.parquet", (0, 3)),
        ("f0.parquet", (1, 3)),
        ("f0.parquet", (2, 3)),
        ("f1.parquet", (0, 1)),
        ("f2.parquet", (0, 1)),
        ("f3.parquet", (0, 1)),
    ]


@pytest.mark.parametrize(
    ("sizes", "threads", "expected"),
    [
        ([1000] * 3, 2, [[0, 1, 2]]),
        ([4 * MB] * 4, 2, [[0, 1], [2, 3]]),
        ([4 * MB] * 4, 1, [[0, 1, 2, 3]]),
        ([64 * MB] * 4, 1, [[0, 1], [2, 3]]),
        ([4 * MB - 1, 4 * MB + 1], 2, [[0], [1]]),
        ([300 * MB, MB], 1, [[0], [0, 0], [1]]),
    ],
)
def test_threads_get_groups_that_are_worth_a_thread(sizes: list[int], threads: int, expected: list[list[int]]) -> None:
    """Numbers are the positions of files; a file larger than a task is in several groups."""
    groups = list(thread_groups(CONTEXT, files(sizes), threads))
    assert [numbers for numbers, _ in groups] == expected
    assert [len(group.tasks()) for _, group in groups] == [len(numbers) for numbers in expected]
