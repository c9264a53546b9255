"""The storage contract as a test suite: a class for pytest that every store's tests inherit.

class TestMyStore(StoreContract):
    @pytest.fixture
    def store(self): ...
    @pytest.fixture
    def root(self): return "myscheme://bucket/some/new/directory"
"""

from __future__ import annotations

import contextlib
import pickle
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq

from pyspark_delta.errors import DeltaError, FileAlreadyExistsError, FileNotFoundInStoreError
from pyspark_delta.storage.contract import ObjectStore
from pyspark_delta.storage.paths import file_name, join

ODD_NAMES = ("a b", "a%20b", "p=a%2Fb", "50%", "ü-中-\U0001f600", "a+b&c;d,e@f'g!(h)", "a#b?c", "[x]{y}^`|~<>", "~a")


class StoreContract:
    """One test method for each sentence of `storage.contract`. `root` is a location where nothing exists."""

    # ------------------------------------------------------------------------------------- reading and writing
    def test_written_content_is_read_back(self, store: ObjectStore, root: str) -> None:
        path = join(root, "t", "_delta_log", "a.json")
        store.write(path, b"content")
        assert store.read(path) == b"content"

    def test_write_replaces(self, store: ObjectStore, root: str) -> None:
        path = join(root, "a")
        store.write(path, b"a long first content")
        store.write(path, b"second")
        assert store.read(path) == b"second"

    def test_empty_content(self, store: ObjectStore, root: str) -> None:
        path = join(root, "empty")
        store.write(path, b"")
        assert store.read(path) == b""
        assert store.status(path).size == 0
        assert store.read(path, (0, 10)) == b""
        with store.open_input(path) as file:
            assert file.read() == b""

    def test_ranges(self, store: ObjectStore, root: str) -> None:
        path = join(root, "range")
        store.write(path, bytes(range(100)))
        for start, end in ((0, 100), (0, 1), (10, 20), (99, 100), (90, 1000), (100, 110), (500, 600), (5, 5)):
            assert store.read(path, (start, end)) == bytes(range(100))[start:end], (start, end)

    def test_status_has_size_and_time_in_milliseconds(self, store: ObjectStore, root: str) -> None:
        path = join(root, "status")
        store.write(path, b"12345")
        status = store.status(path)
        assert (status.path, status.size) == (path, 5)
        assert abs(status.modification_time - time.time() * 1000) < 120_000

    def test_files_of_any_size_are_read_whole(self, store: ObjectStore, root: str) -> None:
        for size in (0, 1, (1 << 14) - 1, 1 << 14, (1 << 14) + 1, 1 << 20):
            store.write(join(root, "some.file"), content := bytes(range(256)) * (size // 256) + b"x" * (size % 256))
            assert store.read(join(root, "some.file")) == content, size

    def test_missing_files_are_named(self, store: ObjectStore, root: str) -> None:
        path = join(root, "no", "such.file")
        for operation in (store.read, store.status, store.open_input, lambda path: store.read(path, (0, 4))):
            with _raises(FileNotFoundInStoreError) as caught:
                operation(path)
            assert path in str(caught[0])

    def test_a_directory_is_not_a_file(self, store: ObjectStore, root: str) -> None:
        store.write(join(root, "dir", "file"), b"1")
        for operation in (store.read, store.status, store.open_input):
            with _raises(FileNotFoundInStoreError):
                operation(join(root, "dir"))

    def test_names_are_taken_literally(self, store: ObjectStore, root: str) -> None:
        for name in ODD_NAMES:
            store.write(join(root, name, name), name.encode())
        for name in ODD_NAMES:
            assert store.read(join(root, name, name)) == name.encode()
            assert [status.path for status in store.list_from(join(root, name, ""))] == [join(root, name, name)]

    # ---------------------------------------------------------------------------------------------- put-if-absent
    def test_write_if_absent_creates(self, store: ObjectStore, root: str) -> None:
        path = join(root, "log", "0.json")
        store.write_if_absent(path, b"first")
        assert store.read(path) == b"first"

    def test_write_if_absent_changes_nothing_when_the_name_is_taken(self, store: ObjectStore, root: str) -> None:
        path = join(root, "0.json")
        store.write_if_absent(path, b"first")
        with _raises(FileAlreadyExistsError) as caught:
            store.write_if_absent(path, b"second")
        assert path in str(caught[0])
        assert store.read(path) == b"first"
        assert _names(store, join(root, "")) == ["0.json"]

    def test_one_of_many_threads_wins(self, store: ObjectStore, root: str) -> None:
        path = join(root, "race.json")
        contents = [bytes([number]) * 50_000 for number in range(8)]

        def attempt(content: bytes) -> bool:
            try:
                store.write_if_absent(path, content)
            except FileAlreadyExistsError:
                return False
            return True

        with ThreadPoolExecutor(len(contents)) as pool:
            won = list(pool.map(attempt, contents))
        assert won.count(True) == 1
        assert store.read(path) == contents[won.index(True)]

    # ---------------------------------------------------------------------------------------------------- listing
    def test_a_missing_directory_lists_nothing(self, store: ObjectStore, root: str) -> None:
        assert list(store.list_from(join(root, "no", "such", ""))) == []

    def test_lists_in_utf8_order_from_the_start_on(self, store: ObjectStore, root: str) -> None:
        names = ["00", "01.json", "02.json", "02.json.x", "1", "A", "_x", "a", "é", "\uffee", "\U0001f600"]
        for name in reversed(names):
            store.write(join(root, name), b"x")
        assert sorted(names, key=str.encode) == names
        assert _names(store, join(root, "")) == names
        for start in ("01.json", "02", "02.json", "a", "b", "é", "\uffee", "\U0001f600", "0", " "):
            assert _names(store, join(root, start)) == [name for name in names if name >= start], start

    def test_lists_one_directory_only(self, store: ObjectStore, root: str) -> None:
        for name in ("a", "c/x", "c/y/z", "c-1", "d", "e/1", "f"):
            store.write(join(root, "t", *name.split("/")), b"x")
        store.write(join(root, "t2"), b"x")
        assert _names(store, join(root, "t", "")) == ["a", "c-1", "d", "f"]
        assert _names(store, join(root, "t", "c")) == ["c-1", "d", "f"]
        assert _names(store, join(root, "t", "c", "")) == ["x"]

    def test_listing_is_an_iterator_with_full_status(self, store: ObjectStore, root: str) -> None:
        store.write(join(root, "a"), b"123")
        (status,) = store.list_from(join(root, ""))
        assert status == store.status(join(root, "a"))

    def test_lists_the_tree_below_a_directory(self, store: ObjectStore, root: str) -> None:
        names = ["a", "c-1", "c/x", "c/_hidden/z", "c/y/z", "_log/0", "_log/deep/1", "d e/f%20g", "é/ü", "z"]
        for name in names:
            store.write(join(root, "t", *name.split("/")), b"123")
        store.write(join(root, "t2"), b"x")
        shown = sorted(name for name in names if "_" not in name)
        for boundaries in ((), ("c-1",), ("_log/0", "c/x", "d", "é/ü")):
            found = list(store.list_tree(join(root, "t"), lambda name: name.startswith("_"), boundaries))
            assert sorted(path for batch in found for path in batch["path"].to_pylist()) == shown, boundaries
            for batch in found:
                assert set(batch["size"].to_pylist()) <= {3, None}
                for file in batch.to_pylist():
                    written = store.status(join(root, "t", file["path"])).modification_time
                    assert file["modification_time"] in (None, written)
        assert list(store.list_tree(join(root, "missing"), lambda name: False)) == []

    # --------------------------------------------------------------------------------------------------- copying
    def test_copy(self, store: ObjectStore, root: str) -> None:
        content = bytes(range(256)) * 20_000
        for name in ("plain", *ODD_NAMES):
            source, target = join(root, "from", name), join(root, "to", "deep er", name)
            store.write(source, name.encode() + content)
            store.write(target, b"replaced")
            store.copy(source, target)
            assert store.read(target) == store.read(source) == name.encode() + content
        store.copy(join(root, "from", "plain"), join(root, "new", "p=a%20b", "c"))
        assert _names(store, join(root, "new", "p=a%20b", "")) == ["c"]
        store.write(join(root, "empty"), b"")
        store.copy(join(root, "empty"), join(root, "empty too"))
        assert store.read(join(root, "empty too")) == b""

    def test_copy_of_a_missing_file(self, store: ObjectStore, root: str) -> None:
        store.write(join(root, "dir", "file"), b"1")
        for source in (join(root, "missing"), join(root, "dir")):
            with _raises(FileNotFoundInStoreError) as caught:
                store.copy(source, join(root, "target"))
            assert source in str(caught[0])
        assert _names(store, join(root, "")) == []

    # --------------------------------------------------------------------------------------------------- deleting
    def test_delete(self, store: ObjectStore, root: str) -> None:
        paths = [join(root, "d", str(number)) for number in range(12)]
        for path in paths:
            store.write(path, b"x")
        store.delete(path for path in [*paths[:10], join(root, "d", "missing"), join(root, "no", "such")])
        assert _names(store, join(root, "d", "")) == ["10", "11"]
        store.delete([])
        store.delete(paths)
        assert _names(store, join(root, "d", "")) == []

    # -------------------------------------------------------------------------------------------------------- files
    def test_delete_directory(self, store: ObjectStore, root: str) -> None:
        kept = join(root, "gone too long", "kept")
        for path in (join(root, "gone", "a"), join(root, "gone", "deep", "er", "b"), kept):
            store.write(path, b"x")
        store.delete_directory(join(root, "gone"))
        store.delete_directory(join(root, "gone"))
        assert list(store.list_from(join(root, "gone", "a"))) == []
        assert list(store.list_from(join(root, "gone", "deep", "er", "b"))) == []
        assert store.read(kept) == b"x"

    def test_parquet_through_the_file_objects(self, store: ObjectStore, root: str) -> None:
        path = join(root, "t", "p=a%20b", "part.parquet")
        table = pa.table({"n": pa.array(range(50_000)), "s": pa.array([f"text {i}" for i in range(50_000)])})
        with store.open_output(path) as sink, pq.ParquetWriter(sink, table.schema) as writer:
            for start in range(0, 50_000, 10_000):
                writer.write_table(table.slice(start, 10_000))
        with store.open_input(path) as file:
            parquet = pq.ParquetFile(file)
            assert parquet.metadata.num_row_groups == 5
            assert parquet.read() == table
        with store.open_input(path) as file:
            group = pq.ParquetFile(file, pre_buffer=True).read_row_group(3, ["s"])
        assert group == table.select(["s"]).slice(30_000, 10_000)

    def test_input_seeks(self, store: ObjectStore, root: str) -> None:
        path = join(root, "seek")
        content = bytes(range(256)) * 2000
        store.write(path, content)
        with store.open_input(path) as file:
            assert file.size() == len(content) if callable(getattr(file, "size", None)) else True
            for offset, size in ((0, 10), (300_000, 100), (300_050, 1000), (511_990, 100), (5, 0), (0, 512_000)):
                assert file.seek(offset) == offset
                assert file.read(size) == content[offset : offset + size]
            assert file.seek(-6, 2) == len(content) - 6
            assert (file.tell(), file.read()) == (len(content) - 6, content[-6:])
        assert file.closed

    def test_output_is_not_visible_before_it_is_closed(self, store: ObjectStore, root: str) -> None:
        path = join(root, "new", "out")
        sink = store.open_output(path)
        sink.write(b"x" * 3_000_000)
        sink.flush()
        assert _names(store, join(root, "new", "")) == []
        sink.close()
        assert sink.closed
        assert store.status(path).size == 3_000_000

    def test_output_vanishes_when_its_block_fails(self, store: ObjectStore, root: str) -> None:
        path = join(root, "out")
        with contextlib.suppress(ZeroDivisionError), store.open_output(path) as sink:
            sink.write(b"half")
            raise ZeroDivisionError
        assert _names(store, join(root, "")) == []
        with _raises(FileNotFoundInStoreError):
            store.read(path)

    # ------------------------------------------------------------------------------------------------------ pickling
    def test_pickles(self, store: ObjectStore, root: str) -> None:
        store.write(join(root, "a"), b"here")
        assert pickle.loads(pickle.dumps(store)).read(join(root, "a")) == b"here"

    def test_errors_pickle(self, store: ObjectStore, root: str) -> None:
        with _raises(FileNotFoundInStoreError) as caught:
            store.read(join(root, "missing"))
        copy = pickle.loads(pickle.dumps(caught[0]))
        assert (type(copy), copy.path, str(copy)) == (type(caught[0]), join(root, "missing"), str(caught[0]))


@contextlib.contextmanager
def _raises(kind: type[DeltaError]) -> Iterator[list[DeltaError]]:
    caught: list[DeltaError] = []
    try:
        yield caught
    except kind as error:
        caught.append(error)
    else:
        raise AssertionError(f"{kind.__name__} was not raised")


def _names(store: ObjectStore, start: str) -> list[str]:
    return [file_name(status.path) for status in store.list_from(start)]
