"""HTTP connections with limits, so that a client without a token cannot exhaust the server."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Iterable
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from pyspark_delta.server.served import ServerSettings

LONGEST_HEADERS = 16 << 10  # bytes of the request line and all headers
_OTHER_FILES = 128  # descriptors reserved for tables and the database


def limited_protocol(settings: ServerSettings) -> type[H11Protocol]:
    """Return the protocol that uvicorn uses for each connection, with the limits of the settings.

    A client has `header_seconds` to send the headers of its next request, and then `request_seconds` until the response
    is complete. If there are more than `max_connections`, the server closes one: the connection that has waited longest
    among those that never sent a request, otherwise the one that has waited longest since its last request.
    """
    limit = min(settings.max_connections, _descriptors() - _OTHER_FILES)

    class LimitedProtocol(H11Protocol):
        _timer: asyncio.TimerHandle | None = None
        waits_since: float | None = None
        has_asked = False

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._await_request()
            # A closed connection stays in the list until the event loop has processed it.
            alive = [one for one in self.connections if not one.transport.is_closing()]
            if len(alive) > max(limit, 1):
                _longest_waiting(alive).transport.abort()

        def data_received(self, data: bytes) -> None:
            before = self.cycle
            super().data_received(data)
            if self.cycle is not before:
                self._begin_request()

        def on_response_complete(self) -> None:
            before = self.cycle
            super().on_response_complete()
            if self.cycle is not before:  # the next request has already arrived
                self._begin_request()
            else:
                self._await_request()

        def connection_lost(self, exc: Exception | None) -> None:
            self._set_timer(None)
            super().connection_lost(exc)

        def _await_request(self) -> None:
            self.waits_since = self.loop.time()
            self._set_timer(settings.header_seconds)

        def _begin_request(self) -> None:
            self.waits_since, self.has_asked = None, True
            self._set_timer(settings.request_seconds)

        def _set_timer(self, seconds: float | None) -> None:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = None if seconds is None else self.loop.call_later(seconds, self.transport.abort)

    return LimitedProtocol


def _longest_waiting(connections: Iterable[Any]) -> Any:
    """Return the connection to close: one that waits for a request, as at least the newest does."""

    def order(connection: Any) -> tuple[bool, bool, float]:
        since = connection.waits_since
        return since is None, connection.has_asked, since or 0.0

    return min(connections, key=order)


def _descriptors() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 20 if soft == resource.RLIM_INFINITY else soft
