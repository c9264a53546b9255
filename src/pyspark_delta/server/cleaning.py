"""Periodic removal of abandoned staging tables by a server, if it is configured."""

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
_PATIENCE = 10  # seconds; a purge removes what an interrupted removal leaves

_log = logging.getLogger("pyspark_delta.server")


def cleaning(catalog: Catalog, older_than: timedelta) -> Callable[[Any], AbstractAsyncContextManager[None]]:
    """Return the lifespan of an application that removes old staging tables at its start and then every hour."""

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
    """Remove staging tables that are older than a time span. A failure is logged, and the next pass tries again."""
    try:
        removed = remove_left_behind(catalog, int(time.time() * 1000) - older_than // timedelta(milliseconds=1))
    except DeltaError as error:
        _log.error("cleaning failed, and will be tried again: %s", error)
        return
    for table in removed:
        _log.info("removed the unfinished table %s at %s", table.name, table.location)
