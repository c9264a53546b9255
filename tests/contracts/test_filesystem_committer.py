"""The filesystem committer keeps the committer contract, locally and in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyspark_delta.commit import CommitRequest, Committed, FilesystemCommitter, Unknown
from pyspark_delta.errors import FileNotFoundInStoreError, PermissionDeniedError, StorageError
from pyspark_delta.log.provenance import transaction_id
from pyspark_delta.storage import ObjectStore, store_for
from pyspark_delta.testing.committer_contract import CommitterContract, CommitterSetup
from pyspark_delta.testing.faults import Fault, FaultyStore


class TestFilesystemCommitter(CommitterContract):
    @pytest.fixture(params=["local", "memory"])
    def setup(self, request: pytest.FixtureRequest, tmp_path: Path) -> CommitterSetup:
        location = str(tmp_path / "table") if request.param == "local" else f"memory://{tmp_path.name}/table"
        store = store_for(location)

        def read(version: int) -> bytes | None:
            try:
                return store.read(f"{location}/_delta_log/{version:020d}.json")
            except FileNotFoundInStoreError:
                return None

        def failing(fault: Fault) -> FilesystemCommitter:
            return FilesystemCommitter(FaultyStore(store, fault))

        return CommitterSetup(
            location=location,
            make=lambda: FilesystemCommitter(store_for(location)),
            read=read,
            lost_answer=lambda: failing(Fault(kind="write_if_absent", when="after")),
            lost_request=lambda: failing(Fault(kind="write_if_absent", when="before")),
            refused=lambda: failing(Fault(kind="write_if_absent", raises=_refused)),
        )


def _refused(path: str) -> BaseException:
    return PermissionDeniedError(f"No permission to write '{path}'.", path=path)


class _BlindStore:
    """Writes land, but neither their answer nor a later read arrives."""

    def __init__(self, inner: ObjectStore) -> None:
        self.inner = inner

    def write_if_absent(self, path: str, data: bytes) -> None:
        self.inner.write_if_absent(path, data)
        raise StorageError("timed out", path=path)

    def read(self, path: str, byte_range: tuple[int, int] | None = None) -> bytes:
        raise StorageError("timed out", path=path)


def test_c013_what_cannot_be_found_out_is_unknown(tmp_path: Path) -> None:
    store = store_for(str(tmp_path))
    content = b'{"commitInfo":{"txnId":"mine"}}\n'
    request = CommitRequest(table_location=str(tmp_path), version=0, content=content, transaction_id="mine")
    outcome = FilesystemCommitter(_BlindStore(store)).commit(request)  # type: ignore[arg-type]
    assert isinstance(outcome, Unknown)
    assert FilesystemCommitter(store).commit(request) == Committed(0)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b'{"add":{}}\n{"commitInfo":{"txnId":"a"}}\n', "a"),
        (b'{"add":{"path":"\\"commitInfo\\""}}\n{"commitInfo":{"txnId":"b"}}', "b"),
        (b'{"commitInfo":{"operation":"WRITE"}}\n', None),
        (b'{"commitInfo":{"txnId":7}}\n', None),
        (b'{"commitInfo":broken\n', None),
        (b"", None),
    ],
)
def test_c194_transaction_id_of_a_commit(content: bytes, expected: str | None) -> None:
    assert transaction_id(content) == expected
