"""An S3 store that answers as late as one far away: `python -m benchmarks.slow_store FOLDER` serves its files.

Both implementations read from it with their own S3 clients, so both wait equally for each of their requests.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import formatdate
from http import HTTPStatus
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

GET_SECONDS, LIST_SECONDS = 0.010, 0.030
PAGE = 1000  # files in an answer to LIST, as S3 has it
BUCKET = "slow"
_ROOT = Path(__file__).parents[1]


def reach(location: str, slow: bool) -> tuple[str, dict[str, str]]:
    """The location and storage options of a local table: its own and none, or those of a slow store that serves it.

    The store runs until this process ends.
    """
    if not slow:
        return location, {}
    table = Path(location)
    store = subprocess.Popen(
        [sys.executable, "-m", __name__, str(table.parent)],
        cwd=_ROOT,
        stdin=subprocess.PIPE,  # which this process holds open
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(store.__exit__, None, None, None)  # closes its input, at which it ends, and waits
    assert store.stdout is not None
    options = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{int(store.stdout.readline())}",
        "AWS_ACCESS_KEY_ID": "any",
        "AWS_SECRET_ACCESS_KEY": "any",
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
    }
    return f"s3://{BUCKET}/{table.name}", options


@dataclass(frozen=True)
class Answer:
    """Status, headers and body of an answer, and how long it takes."""

    status: HTTPStatus
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = GET_SECONDS


@dataclass
class SlowStore:
    """The files below `folder`, by their paths. They must not change: listings are kept."""

    folder: Path
    listings: dict[str, list[str]] = field(default_factory=dict)

    def answer(self, method: str, target: str, headers: Mapping[str, str]) -> Answer:
        """The answer to a request for `/BUCKET/KEY` or to list `/BUCKET`."""
        url = urlsplit(target)
        _, _, key = unquote(url.path).removeprefix("/").partition("/")
        if method not in ("GET", "HEAD"):
            return Answer(HTTPStatus.METHOD_NOT_ALLOWED)
        if not key:
            return self._list({name: values[0] for name, values in parse_qs(url.query).items()})
        path = self.folder / key
        if not path.is_file():
            missing = b"<Error><Code>NoSuchKey</Code><Message>The key does not exist.</Message></Error>"
            return Answer(HTTPStatus.NOT_FOUND, missing)
        return _content(path, headers.get("range"))

    def _list(self, query: Mapping[str, str]) -> Answer:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        after = query.get("continuation-token") or query.get("start-after") or ""
        size = min(int(query.get("max-keys", PAGE)), PAGE)
        entries: list[str] = []
        for key in self._keys(prefix):
            below, found, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
            entry = f"{prefix}{below}{delimiter}" if found else key
            if entry > after and entry not in entries[-1:]:
                entries.append(entry)
                if len(entries) > size:
                    break
        page = entries[:size]
        cut_off = len(entries) > size
        token = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if cut_off else ""
        body = (
            f'<?xml version="1.0"?><ListBucketResult><KeyCount>{len(page)}</KeyCount>'
            f"<IsTruncated>{str(cut_off).lower()}</IsTruncated>{token}"
            f"{''.join(map(self._entry, page))}</ListBucketResult>"
        )
        return Answer(HTTPStatus.OK, body.encode(), {"Content-Type": "application/xml"}, LIST_SECONDS)

    def _entry(self, key: str) -> str:
        if key.endswith("/"):
            return f"<CommonPrefixes><Prefix>{escape(key)}</Prefix></CommonPrefixes>"
        status = (self.folder / key).stat()
        changed = datetime.fromtimestamp(status.st_mtime, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        return (
            f"<Contents><Key>{escape(key)}</Key><LastModified>{changed}</LastModified>"
            f"<ETag>{_tag(status)}</ETag><Size>{status.st_size}</Size></Contents>"
        )

    def _keys(self, prefix: str) -> list[str]:
        """The keys that begin with a prefix, sorted."""
        if prefix not in self.listings:
            below = self.folder / prefix.rpartition("/")[0]
            keys = (
                Path(folder, name).relative_to(self.folder).as_posix()
                for folder, _, names in os.walk(below)
                for name in names
            )
            self.listings[prefix] = sorted(key for key in keys if key.startswith(prefix))
        return self.listings[prefix]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *lines = head.decode("latin-1").rstrip().split("\r\n")
                method, target, _ = first.split(" ")
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
                answer = self.answer(method, target, headers)
                await asyncio.sleep(answer.seconds)
                writer.write(_bytes_of(answer, without_body=method == "HEAD"))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client is done
        finally:
            writer.close()


def _content(path: Path, wanted: str | None) -> Answer:
    """A file, or the range `bytes=FIRST-LAST` of it, either end of which may be left out."""
    status = path.stat()
    headers = {
        "ETag": _tag(status),
        "Last-Modified": formatdate(status.st_mtime, usegmt=True),
        "Accept-Ranges": "bytes",
    }
    if wanted is None:
        return Answer(HTTPStatus.OK, path.read_bytes(), headers)
    first, _, last = wanted.removeprefix("bytes=").partition("-")
    start = int(first) if first else max(status.st_size - int(last), 0)
    end = min(int(last) + 1, status.st_size) if first and last else status.st_size
    if start >= status.st_size:
        return Answer(
            HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, headers={"Content-Range": f"bytes */{status.st_size}"}
        )
    with path.open("rb") as file:
        file.seek(start)
        body = file.read(end - start)
    headers["Content-Range"] = f"bytes {start}-{end - 1}/{status.st_size}"
    return Answer(HTTPStatus.PARTIAL_CONTENT, body, headers)


def _tag(status: os.stat_result) -> str:
    return f'"{status.st_size:x}-{status.st_mtime_ns:x}"'


def _bytes_of(answer: Answer, *, without_body: bool) -> bytes:
    lines = [f"HTTP/1.1 {answer.status.value} {answer.status.phrase}"]
    lines += [f"{name}: {value}" for name, value in answer.headers.items()]
    lines.append(f"Content-Length: {len(answer.body)}")
    head = "\r\n".join(lines).encode() + b"\r\n\r\n"
    return head if without_body else head + answer.body


def _end_with_the_caller() -> None:
    sys.stdin.read()
    os._exit(0)


async def _main(folder: Path) -> None:
    server = await asyncio.start_server(SlowStore(folder).serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    threading.Thread(target=_end_with_the_caller, daemon=True).start()
    asyncio.run(_main(Path(sys.argv[1])))
