"""Protection of a server without tokens: every program on this machine has full access, but web pages have none.

A web page can make a browser send requests to this machine, and read the responses if the host name of the page
resolves to this machine. The Host header of such a request names another host, or its Origin header names the page.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from pyspark_delta.catalog.loopback import is_loopback
from pyspark_delta.server.failures import Failure, FailureKind, failed_response


class LocalOnly:
    """ASGI middleware that refuses requests for another host, and from pages of other origins."""

    def __init__(self, app: ASGIApp) -> None:  # the name by which Starlette passes it
        self._application = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reason = _refusal_reason(Headers(scope=scope)) if scope["type"] == "http" else None
        if reason is None:
            await self._application(scope, receive, send)
            return
        failure = Failure(FailureKind.NOT_ALLOWED, reason)
        await failed_response(failure, scope)(scope, receive, send)


def _refusal_reason(headers: Headers) -> str | None:
    """Return why a request is refused; None if it is not."""
    hosts, origins = headers.getlist("Host"), headers.getlist("Origin")
    if len(hosts) != 1 or not is_loopback(_name(f"http://{hosts[0]}")):
        return "Without tokens the server accepts requests to this machine only: use http://127.0.0.1 and its port."
    if any(origin.partition("://")[2] != hosts[0] for origin in origins):
        return "Without tokens the server refuses requests from pages of other origins."
    return None


def _name(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
