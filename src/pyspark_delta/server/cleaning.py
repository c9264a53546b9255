"""Periodic work of a server, if it is configured: removes abandoned staging tables."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from typing import Any

from pyspark_delta.catalog.cleaning import remove_left_behind
from pyspark_delta.catalog.contract import Catalog
from pyspark_delta.errors import DeltaError

EVERY = timedelta(hours=1)
_PATIENCE = 10  # seconds; a purge removes what an interrupted pass leaves

_log = logging.getLogger("pyspark_delta.server")


def cleaning(catalog: Catalog, older_than: timedelta) -> Callable[[Any], AbstractAsyncContextManager[None]]:
    """Return the lifespan of an application that cleans when it starts, and every hour until it stops."""

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        stop = threading.Event()
        worker = threading.Thread(target=_clean_until, args=(stop, catalog, older_than), name="cleaning", daemon=True)
        worker.start()
        try:
            yield
        finally:
            stop.set()
            worker.join(_PATIENCE)

    return lifespan


def _clean_until(stop: threading.Event, catalog: Catalog, older_than: timedelta) -> None:
    while True:
        clean_once(catalog, older_than)
        if stop.wait(EVERY.total_seconds()):
            return


def clean_once(catalog: Catalog, older_than: timedelta) -> None:
    """Remove the staging tables that were requested before that time. A failure is logged and retried later."""
    try:
        removed = remove_left_behind(catalog, int(time.time() * 1000) - older_than // timedelta(milliseconds=1))
    except DeltaError as error:
        _log.error("cleaning failed, and is tried again: %s", error)
        return
    for table in removed:
        _log.info("removed the unfinished table %s at %s", table.name, table.location)
