"""Threads that execute requests. No caller can occupy all of them, and no request waits forever."""

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
    """The requests of one caller, running and waiting; the running ones hold `turns`."""

    turns: asyncio.Semaphore
    requests: int = 0


@dataclass
class Workers:
    """A pool of `threads` threads. A caller has at most `per_caller` running and `waiting` waiting requests.

    A request that does not start within `patience` seconds is refused. Nothing was done, so the client may retry it.
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
        """Wait until the caller may run another request. Raises Failure (429) after `patience` seconds."""
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
        """Run a function in a thread. Raises Failure (429) if no thread becomes free within `patience` seconds."""
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
    return Failure(FailureKind.BUSY, "The server has too many requests. Nothing was done; try again later.")
