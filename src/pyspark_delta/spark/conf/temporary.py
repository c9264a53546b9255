"""Changes a setting of the user's session temporarily, and restores it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

from pyspark_delta.spark.conf.sessions import session_key

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(slots=True)
class _Change:
    before: str | None
    blocks: int = 0


_lock = Lock()
_changes: dict[tuple[str, str], _Change] = {}  # by session and setting


@contextmanager
def temporary_conf(session: SparkSession, name: str, value: str) -> Iterator[None]:
    """Change a setting while the block runs.

    Several threads of one session may run blocks for the same setting at once. The first block to begin changes the
    setting for all of them, and the last to end restores it. Otherwise a thread could mistake the temporary value of
    another thread for the user's.
    """
    key = session_key(session), name
    with _lock:
        change = _changes.get(key) or _Change(session.conf.get(name, None))
        if not change.blocks:
            session.conf.set(name, value)
        change.blocks += 1
        _changes[key] = change
    try:
        yield
    finally:
        with _lock:
            change.blocks -= 1
            if not change.blocks:
                del _changes[key]
                _restore(session, name, change.before)


def users_conf(session: SparkSession, name: str) -> str | None:
    """Return the user's value of a setting, even while `temporary_conf` changes it; None if the user set none."""
    with _lock:
        change = _changes.get((session_key(session), name))
        return change.before if change is not None else session.conf.get(name, None)


def _restore(session: SparkSession, name: str, before: str | None) -> None:
    session.conf.unset(name)
    if before is not None and session.conf.get(name, None) != before:
        session.conf.set(name, before)
