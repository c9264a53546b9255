"""Without tokens, everybody on this machine may do everything; the pages in their browsers may not.

A page of any site can have a browser send requests to this machine, and read the answers if its own name is made to
point here. Such requests name another host, or come with the origin of the page.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from pyspark_delta.catalog.loopback import is_loopback
from pyspark_delta.server.failures import Failure, FailureKind, failed_response


class LocalOnly:
    """ASGI middleware that refuses requests for another host, and from pages of other origins."""

    def __init__(self, application: ASGIApp) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        obstacle = _obstacle(Headers(scope=scope)) if scope["type"] == "http" else None
        if obstacle is None:
            await self._application(scope, receive, send)
            return
        failure = Failure(FailureKind.NOT_ALLOWED, obstacle)
        await failed_response(failure, scope)(scope, receive, send)


def _obstacle(headers: Headers) -> str | None:
    """Why a request is not one of this machine's own; None if it is."""
    hosts, origins = headers.getlist("Host"), headers.getlist("Origin")
    if len(hosts) != 1 or not is_loopback(_name(f"http://{hosts[0]}")):
        return "Without tokens the server answers requests for this machine only: use http://127.0.0.1 and its port."
    if any(origin.partition("://")[2] != hosts[0] for origin in origins):
        return "Without tokens the server answers no pages of other origins."
    return None


def _name(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
