"""Threads for the work of requests: no caller can hold all of them, and no request waits forever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from pyspark_delta.server.failures import Failure, FailureKind

T = TypeVar("T")


@dataclass
class _Queue:
    """The requests of one caller: those that run hold the semaphore."""

    turns: asyncio.Semaphore
    requests: int = 0


@dataclass
class Workers:
    """`threads` threads; a caller has at most `per_caller` running requests, and `waiting` requests that wait.

    A request that does not start within `patience` seconds is refused: nothing was done, and the client may retry it.
    """

    threads: int
    per_caller: int
    waiting: int
    patience: float
    _queues: dict[str, _Queue] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="pyspark-delta-server")
        self._free = asyncio.Semaphore(self.threads)

    @asynccontextmanager
    async def turn(self, caller: str) -> AsyncIterator[None]:
        """Wait for a turn of the caller. Raises Failure (429)."""
        queue = self._queues.setdefault(caller, _Queue(asyncio.Semaphore(self.per_caller)))
        if queue.requests >= self.per_caller + self.waiting:
            raise _busy()
        queue.requests += 1
        try:
            async with _acquired(queue.turns, self.patience):
                yield
        finally:
            queue.requests -= 1
            if not queue.requests:
                self._queues.pop(caller, None)

    async def run(self, work: Callable[..., T], *arguments: object) -> T:
        """Run work in a thread. Raises Failure (429) if none becomes free."""
        async with _acquired(self._free, self.patience):
            return await asyncio.get_running_loop().run_in_executor(self._pool, work, *arguments)


@asynccontextmanager
async def _acquired(semaphore: asyncio.Semaphore, seconds: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            await semaphore.acquire()
    except TimeoutError:
        raise _busy() from None
    try:
        yield
    finally:
        semaphore.release()


def _busy() -> Failure:
    return Failure(FailureKind.BUSY, "The server has too many requests. Nothing was done; send it again later.")
