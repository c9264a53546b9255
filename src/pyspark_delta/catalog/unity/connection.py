"""Requests to a server with Unity Catalog's API: tokens, time limits and retries.

A request that changes something is sent once. It is sent again only if nothing was done: after status 401, once, with a
new token; after status 429 (too many requests); and if no connection was made.
"""

from __future__ import annotations

import os
import ssl
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import orjson

from pyspark_delta._version import __version__
from pyspark_delta.catalog.loopback import is_loopback
from pyspark_delta.catalog.unity.errors import Reason, Refusal, refusal_of
from pyspark_delta.errors import CatalogError, CatalogUnavailableError, DeltaWarning
from pyspark_delta.logs import logger

API_PATH = "/api/2.1/unity-catalog"
TIMEOUT = httpx.Timeout(60.0, connect=10.0)  # seconds
_log = logger(__name__)

_KEEP_ALIVE = 3.0  # seconds; shorter than on servers, which could close a connection during a request
_READS = frozenset({"GET", "HEAD"})
_READ_ATTEMPTS = 3
_BUSY_ATTEMPTS = 3
_LONGEST_WAIT = 10.0  # seconds

Token = str | Callable[[], str] | None


@dataclass(frozen=True, slots=True)
class Answer:
    """A successful response: its JSON, None if it has none, and its headers."""

    value: Any
    headers: Mapping[str, str] = field(repr=False)


class Connection:
    """A connection to one server. It is thread-safe and can be used after a fork.

    `token` is a bearer token, or a function that returns a valid one. `timeout` limits each wait, in seconds.
    """

    def __init__(self, url: str, token: Token = None, timeout: float | httpx.Timeout = TIMEOUT) -> None:
        self.url = _api_url(url)
        if token is not None:
            _warn_of_clear_text(self.url)
        self._token = token
        self._timeout = timeout
        self._lock = threading.Lock()
        self._known_token: str | None = token if isinstance(token, str) else None
        self._clients: dict[int, httpx.Client] = {}  # by process
        weakref.finalize(self, _close, self._clients).atexit = False

    def call(self, method: str, path: str, body: Any = None, query: Mapping[str, str | int] | None = None) -> Answer:
        """Send a request and return the response. `path` is below the API's URL, each segment quoted (`segment`).

        Raises Refusal if the response is not a success, CatalogUnavailableError if there is none.
        """
        refreshed = False
        for attempt in range(1, _BUSY_ATTEMPTS + 1):
            token = self._bearer()
            response = self._send(method, path, body, query, token)
            if response.status_code == 401 and callable(self._token) and not refreshed:
                refreshed = True
                self._refresh(token)
                response = self._send(method, path, body, query, self._bearer())
            if response.is_success:
                return Answer(_json(response), response.headers)
            refusal = _refusal(response, is_read=method in _READS)
            if refusal.reason is not Reason.BUSY or attempt == _BUSY_ATTEMPTS:
                raise refusal
            wait = _wait(response, attempt)
            _log.debug("The catalog is busy: %s is sent again in %.1f s", method, wait)
            time.sleep(wait)
        raise AssertionError("unreachable")

    def close(self) -> None:
        """Close the connections of this process."""
        with self._lock:
            _close(self._clients)

    # -------------------------------------------------------------------------------------------------- sending
    def _send(
        self, method: str, path: str, body: Any, query: Mapping[str, str | int] | None, token: str | None
    ) -> httpx.Response:
        headers = {"Accept": "application/json"}
        if token:
            _check_token(token)
            headers["Authorization"] = f"Bearer {token}"
        content = None
        if body is not None:
            content = orjson.dumps(body)
            headers["Content-Type"] = "application/json"
        attempts = _READ_ATTEMPTS if method in _READS else 1
        for attempt in range(1, attempts + 1):
            try:
                return self._client().request(method, self.url + path, content=content, params=query, headers=headers)
            except httpx.TimeoutException as error:
                raise self._silent(method, error, "did not answer in time") from None
            except httpx.TransportError as error:
                if attempt == attempts:
                    raise self._silent(method, error, "cannot be reached, or closed the connection") from None
            except (httpx.InvalidURL, httpx.DecodingError, UnicodeError) as error:
                raise self._silent(method, error, "cannot be understood") from None
        raise AssertionError("unreachable")

    def _silent(self, method: str, error: Exception, what: str) -> CatalogUnavailableError:
        outcome = "" if method in _READS else " It is not known whether the request was done."
        return CatalogUnavailableError(
            f"The catalog at {self.url} {what} ({type(error).__name__}: {error}).{outcome}", url=self.url
        )

    def _client(self) -> httpx.Client:
        process = os.getpid()
        with self._lock:
            if process not in self._clients:
                self._clients[process] = httpx.Client(
                    # Retries only if no connection was made: then no request was sent.
                    transport=httpx.HTTPTransport(
                        verify=_verification(self.url),
                        retries=1,
                        limits=httpx.Limits(max_connections=32, keepalive_expiry=_KEEP_ALIVE),
                    ),
                    timeout=self._timeout,
                    headers={"User-Agent": f"pyspark-delta/{__version__}"},
                )
            return self._clients[process]

    # --------------------------------------------------------------------------------------------------- tokens
    def _bearer(self) -> str | None:
        with self._lock:
            if self._known_token is None and callable(self._token):
                self._known_token = self._token()
            return self._known_token

    def _refresh(self, refused: str | None) -> None:
        with self._lock:
            if self._known_token == refused:  # no other thread has a new one
                self._known_token = None


def _close(clients: dict[int, httpx.Client]) -> None:
    if (client := clients.pop(os.getpid(), None)) is not None:
        client.close()


def _verification(url: str) -> ssl.SSLContext | bool:
    """Return how httpx verifies the server: without TLS by a context that trusts nobody.

    It spares the 100 ms that loading the certificate authorities takes. Redirects are not followed, so that no request
    goes to another scheme.
    """
    return True if url.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def segment(text: str) -> str:
    """Return a name as one segment of a path."""
    return quote(text, safe="")


def _check_token(token: str) -> None:
    """Raise CatalogError for a token that cannot be sent; the errors of httpx would contain it."""
    if not (token.isascii() and token.isprintable()) or token != token.strip():
        raise CatalogError(
            "The token for the catalog begins or ends with a space, or contains a line end or another character that "
            "no token has. If it was read from a file, strip it."
        )


def _api_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise CatalogError(
            f"A URL that begins with '{parts.scheme}:' is not the URL of a server. Use "
            "https://host/api/2.1/unity-catalog.",
        )
    if parts.username is not None or parts.query or parts.fragment:
        raise CatalogError("The URL of a catalog cannot contain a user, query or fragment. Pass the token as `token`.")
    path = parts.path.rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path or API_PATH}"


def _warn_of_clear_text(url: str) -> None:
    """Warn if a token would cross a network unencrypted."""
    parts = urlsplit(url)
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        warnings.warn(
            DeltaWarning(
                f"The token for the catalog at {url} is sent in clear text: everyone on the network path can read "
                "and use it. Connect with https."
            ),
            stacklevel=4,
        )


def _json(response: httpx.Response) -> Any:
    """Return the JSON of a successful response; None if its body is empty or Unity Catalog's text `200 OK`.

    Raises CatalogUnavailableError for any other text, such as the login page of a proxy.
    """
    content = response.content.strip()
    kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if not content or (kind == "text/plain" and content == b"%d OK" % response.status_code):
        return None
    try:
        return orjson.loads(response.content)
    except orjson.JSONDecodeError:
        raise CatalogUnavailableError(
            f"The response of {response.url.host} is not JSON. Check if a proxy or another server answered.",
            url=str(response.url),
        ) from None


def _refusal(response: httpx.Response, *, is_read: bool) -> Refusal:
    try:
        value = orjson.loads(response.content) if response.content else None
    except orjson.JSONDecodeError:
        value = None
    return refusal_of(response.status_code, value, is_read=is_read)


def _wait(response: httpx.Response, attempt: int) -> float:
    """Return how long to wait before a request to a busy server is sent again, in seconds."""
    try:
        asked = float(response.headers.get("Retry-After", ""))
    except ValueError:
        asked = 0.5 * attempt
    return min(max(asked, 0.0), _LONGEST_WAIT)
