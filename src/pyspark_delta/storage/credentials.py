"""Short-lived credentials for stores: asked for when a store is used first, and again before they end.

Storage options name where credentials come from (`CREDENTIALS_KEY`), and hold none: so two uses of a table are the same
use, whatever its credentials are by then. Only this process can ask; what other processes get is in `CarriedOptions`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark_delta.errors import CatalogUnavailableError

CREDENTIALS_KEY = "pyspark_delta.credentials"
"""The storage option that names the source of the credentials of a table."""

_LATEST = 253_402_300_799_000  # the end of the year 9999, in milliseconds
EARLY = 5 * 60_000
"""Milliseconds before their end at which credentials are renewed; those that live shorter, when half of it is over."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """Storage options, credentials among them, and when those end: ms since the epoch, None for never."""

    options: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)
    expires_at: int | None = None


@dataclass(frozen=True, slots=True)
class _Held:
    credentials: Credentials
    renew_at: int | None


class CredentialSource:
    """Credentials from `ask`, which are kept until they are about to end. Safe to be used by many threads."""

    def __init__(self, ask: Callable[[], Credentials]) -> None:
        self._ask = ask
        self._lock = threading.Lock()
        self._held: _Held | None = None

    def current(self) -> Credentials:
        """Valid credentials. Raises what asking raises; where nobody answers, only once the last ones have ended."""
        with self._lock:
            now, held = _now(), self._held
            if held is not None and (held.renew_at is None or now < held.renew_at):
                return held.credentials
            try:
                found = self._ask()
            except CatalogUnavailableError:
                if held is None or now >= (held.credentials.expires_at or 0):
                    raise
                return held.credentials
            self._held = _Held(found, _renew_at(found, now))
            return found

    def reset(self) -> None:
        """Forget the credentials that are held."""
        with self._lock:
            self._held = None


def _renew_at(credentials: Credentials, now: int) -> int | None:
    expires_at = credentials.expires_at
    return None if expires_at is None else expires_at - min(EARLY, max(expires_at - now, 0) // 2)


def _now() -> int:
    return int(time.time() * 1000)


# ------------------------------------------------------------------------------------------------------ sources
_lock = threading.Lock()
_sources: dict[str, CredentialSource] = {}


def register_source(name: str, make: Callable[[], CredentialSource]) -> None:
    """Make a source that storage options can name; one of that name stays as it is."""
    with _lock:
        if name not in _sources:
            _sources[name] = make()


def reset_sources(prefix: str) -> None:
    """Let the sources whose names begin so ask again when they are used next: whoever is asked has changed."""
    with _lock:
        found = [source for name, source in _sources.items() if name.startswith(prefix)]
    for source in found:
        source.reset()


def source_of(options: Mapping[str, str] | None) -> CredentialSource | None:
    """The source that storage options name; None without one, and in another process than the one that made it."""
    name = (options or {}).get(CREDENTIALS_KEY)
    if name is None:
        return None
    with _lock:
        return _sources.get(name)


def given_credentials(options: Mapping[str, str] | None) -> dict[str, str]:
    """What the source gives now that storage options name; empty without one."""
    source = source_of(options)
    return {} if source is None else dict(source.current().options)


class CarriedOptions(dict[str, str]):
    """Storage options that other processes get with the credentials of the moment at which they are pickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        lasting = {key: value for key, value in self.items() if key != CREDENTIALS_KEY}
        return dict, ({**lasting, **given_credentials(self)},)


class ClientCredentials:
    """What obstore's clients call for credentials: `fields` turns options into those that the client knows."""

    refresh_threshold = timedelta(milliseconds=EARLY)

    def __init__(self, source: CredentialSource, fields: Callable[[Mapping[str, str]], dict[str, Any]]) -> None:
        self._source, self._fields = source, fields

    def __call__(self) -> dict[str, Any]:
        credentials = self._source.current()
        end = credentials.expires_at
        expires_at = None if end is None else datetime.fromtimestamp(min(max(end, 0), _LATEST) / 1000, UTC)
        return {**self._fields(credentials.options), "expires_at": expires_at}
