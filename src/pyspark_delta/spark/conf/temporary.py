"""A setting of the user's session that is another one while something runs, and afterwards what it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

from pyspark_delta.spark.session.enable import session_key

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(slots=True)
class _Lent:
    before: str | None
    blocks: int = 0


_lock = Lock()
_lent: dict[tuple[str, str], _Lent] = {}  # by session and setting


@contextmanager
def lent_setting(session: SparkSession, name: str, value: str) -> Iterator[None]:
    """Change a setting while the block runs. All blocks that change it give it the same value.

    Threads of one session may run such blocks at once: the first to begin changes the setting, the last to end restores
    it. Each one by itself would take what another one has set for the user's.
    """
    key = session_key(session), name
    with _lock:
        lent = _lent.get(key) or _Lent(session.conf.get(name, None))
        if not lent.blocks:
            session.conf.set(name, value)
        lent.blocks += 1
        _lent[key] = lent
    try:
        yield
    finally:
        with _lock:
            lent.blocks -= 1
            if not lent.blocks:
                del _lent[key]
                _restore(session, name, lent.before)


def _restore(session: SparkSession, name: str, before: str | None) -> None:
    session.conf.unset(name)
    if before is not None and session.conf.get(name, None) != before:
        session.conf.set(name, before)
