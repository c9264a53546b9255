"""Logs one line for each request: the caller, the operation and the outcome. Never a token, query or body."""

from __future__ import annotations

import logging
import time
from typing import Any
from urllib.parse import quote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_log = logging.getLogger("pyspark_delta.server.access")
_LONGEST = 500


class AccessLog:
    """ASGI middleware that logs requests. Refused and failed ones are warnings with the reason."""

    def __init__(self, app: ASGIApp) -> None:  # the name by which Starlette passes it
        self._application = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        started, answered = time.perf_counter(), False

        async def note(message: Message) -> None:
            nonlocal answered
            if message["type"] == "http.response.start":
                answered = True
                _write(scope, message["status"], started)
            await send(message)

        scope.setdefault("state", {})
        try:
            await self._application(scope, receive, note)
        finally:
            if not answered:
                _write(scope, 0, started)


def _write(scope: Scope, status: int, started: float) -> None:
    """Write the line for a request; status 0 means that there was no response."""
    state, milliseconds = scope["state"], (time.perf_counter() - started) * 1000
    address = (scope.get("client") or ("-",))[0]
    who, path = _shown(str(state.get("principal", "-"))), _shown(scope["path"])
    reason = f" {_shown(state['failure'], ' ')}" if "failure" in state else ""
    level = logging.WARNING if status in (0, 401, 403) or status >= 500 else logging.INFO
    _log.log(level, "%s %s %s %s %d %.1f ms%s", address, who, scope["method"], path, status, milliseconds, reason)


def one_line(text: str) -> str:
    """Return text with every character escaped that could break a line, move a cursor or change the text direction."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


class OneLineFormatter(logging.Formatter):
    """Formats a record as one line, so that client input cannot look like another record. Tracebacks are indented."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        return one_line(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802
        return "\n".join(f"  | {one_line(line)}" for line in super().formatException(ei).splitlines())


def _shown(text: str, also: str = "") -> str:
    """Return text from a client, truncated and percent-encoded so that it cannot look like another record."""
    return quote(text[:_LONGEST], safe="/:@!$&'()*+,;=-._~{}<>\"`" + also, errors="replace")
