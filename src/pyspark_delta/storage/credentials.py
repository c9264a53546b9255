"""Short-lived credentials for stores: requested on first use of a store, and renewed before they expire.

Storage options name the source of credentials (`CREDENTIALS_KEY`) and contain none, so two uses of a table compare
equal even after credentials change. Only this process can request credentials; other processes get `CarriedOptions`.
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
"""How long before their expiry credentials are renewed, in ms; short-lived ones, after half their lifetime."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """Storage options with credentials, and their expiry in ms since the epoch; None if they do not expire."""

    options: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)
    expires_at: int | None = None


@dataclass(frozen=True, slots=True)
class _Held:
    credentials: Credentials
    renew_at: int | None


class CredentialSource:
    """Credentials that the function `ask` returns. They are kept until they are about to expire. Thread-safe."""

    def __init__(self, ask: Callable[[], Credentials]) -> None:
        self._ask = ask
        self._lock = threading.Lock()
        self._held: _Held | None = None

    def current(self) -> Credentials:
        """Return valid credentials. Raises the errors of `ask`.

        If the catalog is unavailable, the last credentials are returned until they expire.
        """
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
        """Forget the cached credentials."""
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
    """Create a source that storage options can name, unless one of this name exists."""
    with _lock:
        if name not in _sources:
            _sources[name] = make()


def reset_sources(prefix: str) -> None:
    """Forget the credentials of all sources with a name prefix, because their issuer has changed."""
    with _lock:
        found = [source for name, source in _sources.items() if name.startswith(prefix)]
    for source in found:
        source.reset()


def source_of(options: Mapping[str, str] | None) -> CredentialSource | None:
    """Return the source that storage options name; None if they name none, or a source of another process."""
    name = (options or {}).get(CREDENTIALS_KEY)
    if name is None:
        return None
    with _lock:
        return _sources.get(name)


def given_credentials(options: Mapping[str, str] | None) -> dict[str, str]:
    """Return the current options of the source that storage options name; empty if they name none."""
    source = source_of(options)
    return {} if source is None else dict(source.current().options)


class CarriedOptions(dict[str, str]):
    """Storage options for other processes. Pickling replaces the name of the source by its current credentials."""

    def __reduce__(self) -> tuple[Any, ...]:
        lasting = {key: value for key, value in self.items() if key != CREDENTIALS_KEY}
        return dict, ({**lasting, **given_credentials(self)},)


class ClientCredentials:
    """The credential callback for obstore's clients. `fields` converts storage options to the client's credentials."""

    refresh_threshold = timedelta(milliseconds=EARLY)

    def __init__(self, source: CredentialSource, fields: Callable[[Mapping[str, str]], dict[str, Any]]) -> None:
        self._source, self._fields = source, fields

    def __call__(self) -> dict[str, Any]:
        credentials = self._source.current()
        end = credentials.expires_at
        expires_at = None if end is None else datetime.fromtimestamp(min(max(end, 0), _LATEST) / 1000, UTC)
        return {**self._fields(credentials.options), "expires_at": expires_at}
