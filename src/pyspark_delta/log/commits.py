"""Commit files: newline-delimited JSON, one action per line (C010-C012). Only requested lines are parsed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import orjson

from pyspark_delta.actions.decode import Fields, decode_action, shortened
from pyspark_delta.actions.model import Action
from pyspark_delta.errors import CorruptLogError, FileNotFoundInStoreError
from pyspark_delta.log.names import LOG_DIRECTORY
from pyspark_delta.log.segment import CommitFile, Compaction
from pyspark_delta.parallel import map_requests
from pyspark_delta.storage import FileStatus, ObjectStore
from pyspark_delta.storage.paths import split

_PARALLEL_READS = 32
_FILE_LINES = tuple(b'{"%b":' % name for name in (b"add", b"remove", b"cdc", b"commitInfo"))
_KNOWN_LINES = (
    *_FILE_LINES,
    *(b'{"%b":' % name for name in (b"metaData", b"protocol", b"txn", b"domainMetadata")),
)
_NULL_LINES = tuple(line + null for line in _KNOWN_LINES for null in (b"null", b" null"))
_LONGEST_NULL = max(map(len, _NULL_LINES))


class CommitText(NamedTuple):
    """The content of one commit (or compaction, or JSON checkpoint): `version` is the newest that it covers.

    A tuple for speed, like `FileStatus`.
    """

    version: int
    path: str
    data: bytes
    compacted: bool = False

    def lines(self) -> list[bytes]:
        """The unparsed lines; the last may be empty."""
        return self.data.split(b"\n")

    def is_about_files(self) -> bool:
        """True if all lines are file actions or commitInfo in the usual form: other kinds need no search."""
        data, position = self.data, 0
        while data.startswith(_FILE_LINES, position):
            position = data.find(b"\n", position) + 1
            if position == 0:
                return True
        return position == len(data)

    def lines_of(self, action: str) -> list[bytes]:
        """Return the lines of one kind of action, each in the usual form: an object whose first key is the action."""
        return [line for _, line in self.numbered_lines_of(action)]

    def numbered_lines_of(self, action: str) -> list[tuple[int, bytes]]:
        """Return the same with the number of each line, from 1 on."""
        start = b'{"%b":' % action.encode()
        found = []
        for number, line in enumerate(self.lines(), 1):
            if line.startswith(start):
                found.append((number, line))
            elif line and not line.startswith(_KNOWN_LINES) and not line.isspace():
                content = Fields(self.parse(line, number), f"line {number}", self.path).get(action)
                if content is not None:
                    found.append((number, orjson.dumps({action: content})))
        return found

    def actions(self) -> Iterator[Action]:
        """Yield every action, in the order of the file. Raises CorruptLogError."""
        for number, line in enumerate(self.lines(), 1):
            if line and not line.isspace():
                action = decode_action(self.parse(line, number), path=self.path, line=number)
                if action is not None:
                    yield action

    def find(self, name: str) -> list[tuple[int, Any]]:
        """Return the undecoded actions of one kind: line number and content. Parses only lines that may hold one."""
        needle = f'"{name}"'.encode()
        position = self.data.find(needle)
        if position < 0:
            return []
        found = []
        while position >= 0:
            start = self.data.rfind(b"\n", 0, position) + 1
            end = self.data.find(b"\n", position)
            end = len(self.data) if end < 0 else end
            # An unknown member may precede the action (C186); after a file action its name is a key inside the action.
            if self.data[start:position].strip() == b"{" or not self.data.startswith(_FILE_LINES, start):
                number = self.data.count(b"\n", 0, start) + 1
                value = self.parse(self.data[start:end], number)
                content = value.get(name) if isinstance(value, dict) else None
                if content is not None:
                    found.append((number, content))
            position = self.data.find(needle, end)
        return found

    def fields(self, name: str) -> list[Fields]:
        """Like `find`, ready for the decoders of `actions.decode`."""
        found = self.find(name)
        return [Fields(content, f"line {number}, {name}", self.path) for number, content in found] if found else []

    def parse(self, line: bytes, number: int) -> Any:
        """Parse one line as JSON. Raises CorruptLogError."""
        try:
            return orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise malformed(self.path, f"line {number} is not valid JSON ({error}): {_excerpt(line)}") from None


def malformed(path: str, problem: str) -> CorruptLogError:
    """Return the error for a log file with wrong content."""
    return CorruptLogError(
        f"'{path}' is not a valid file of a Delta log: {problem}. "
        "It was damaged, truncated, or written by a faulty writer; restore it from a copy.",
        path=path,
    )


def read_commit(store: ObjectStore, file: FileStatus, version: int, *, compacted: bool = False) -> CommitText:
    """Read one file. Its first and last line must be complete JSON objects. Raises CorruptLogError."""
    try:
        data = store.read(file.path)
    except FileNotFoundInStoreError as error:
        raise CorruptLogError(
            f"The file '{file.path}' of the log was listed, but no longer exists. If log clean-up is running, open the "
            "table again.",
            path=file.path,
        ) from error
    return commit_text(version, file.path, data, compacted=compacted)


def commit_text(version: int, path: str, data: bytes, *, compacted: bool = False) -> CommitText:
    """Return the commit from content that was read already. Raises CorruptLogError as `read_commit` does."""
    return CommitText(version, path, _without_null_actions(_checked(path, data)), compacted)


def read_commits(store: ObjectStore, files: Sequence[CommitFile | Compaction]) -> Iterator[CommitText]:
    """Read files in the given order: one by one locally, several at a time from object stores."""
    if not files:
        return
    is_near = split(files[0].file.path)[0] in ("file", "memory")
    yield from map_requests(
        lambda entry: read_entry(store, entry), files, 1 if is_near else min(_PARALLEL_READS, len(files))
    )


def read_entry(store: ObjectStore, entry: CommitFile | Compaction) -> CommitText:
    """Read one file of a segment. Raises CorruptLogError."""
    if isinstance(entry, Compaction):
        return read_commit(store, entry.file, entry.end, compacted=True)
    return read_commit(store, entry.file, entry.version)


def read_actions(store: ObjectStore, commit: CommitFile) -> list[Action]:
    """Return all actions of one commit. Raises CorruptLogError."""
    return list(read_commit(store, commit.file, commit.version).actions())


def single(fields: Iterable[Fields], path: str, name: str) -> Fields | None:
    """Return the action of a kind that a commit may hold only once (C128, C189, C221)."""
    found = list(fields)
    if len(found) > 1:
        raise malformed(path, f"it holds {len(found)} {name} actions where one is allowed")
    return found[0] if found else None


def _checked(path: str, data: bytes) -> bytes:
    """Return the data as newline-delimited JSON; objects that span lines are reformatted."""
    head = data.find(b"\n") + 1 or len(data)  # where the first line ends
    tail = data.rfind(b"\n", 0, -1) + 1  # where the last line begins
    if _is_object(data[:head]) and (tail < head or _is_object(data[tail:])):
        return data
    first, last = _first_line(data), _last_line(data)
    if not first:
        return b""
    if _is_object(first) and _is_object(last):
        return data  # with blank lines around them
    try:
        return b"\n".join(orjson.dumps(value) for value in _stream(data.decode().strip()))
    except (ValueError, RecursionError, TypeError):
        number, line = (1, first) if not _is_object(first) else (data.rstrip().count(b"\n") + 1, last)
        raise malformed(
            path, f"line {number} is not a complete JSON object, found {_excerpt(line)} (file in '{LOG_DIRECTORY}')"
        ) from None


def _without_null_actions(data: bytes) -> bytes:
    """Return the data without null members at the beginning of lines.

    Null means absent, and without it the line begins with its action. Writers with a column for each action write such
    lines, possibly including the first one.
    """
    first = data[: data.find(b"\n")]
    if b":null" not in first and b": null" not in first:
        return data
    lines = data.split(b"\n")
    if not any(head.startswith(_NULL_LINES) for head in {line[:_LONGEST_NULL] for line in lines}):
        return data
    return b"\n".join(_without_nulls(line) if line.startswith(_NULL_LINES) else line for line in lines)


def _without_nulls(line: bytes) -> bytes:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return line  # the caller reports the error
    return orjson.dumps({name: member for name, member in value.items() if member is not None})


def _first_line(data: bytes) -> bytes:
    """Return the first line that is not blank; b"" if all lines are blank."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        if line := data[start:end].strip():
            return line
        start = end + 1
    return b""


def _last_line(data: bytes) -> bytes:
    end = len(data)
    while end > 0:
        start = data.rfind(b"\n", 0, end) + 1
        if line := data[start:end].strip():
            return line
        end = start - 1
    return b""


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(orjson.loads(line), dict)
    except orjson.JSONDecodeError:
        return False


def _stream(text: str) -> Iterator[dict[str, Any]]:
    decoder, position = json.JSONDecoder(), 0
    while position < len(text):
        value, position = decoder.raw_decode(text, position)
        if not isinstance(value, dict):
            raise ValueError("not an object")
        yield value
        while position < len(text) and text[position].isspace():
            position += 1


def _excerpt(line: bytes) -> str:
    return shortened(line.decode("utf-8", "replace"))
