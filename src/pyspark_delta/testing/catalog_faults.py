"""A catalog that fails on purpose at its n-th call, before or after the effect; see `testing.faults`."""

from __future__ import annotations

import threading
from typing import Any

from pyspark_delta.catalog.contract import Catalog
from pyspark_delta.errors import CatalogUnavailableError
from pyspark_delta.testing.faults import Fault

CALLS = frozenset(
    (
        "create_staging_table",
        "create_table",
        "load_table",
        "ratify",
        "log_tail",
        "report_published",
    )
)
"""The calls that are counted: those that open, create and commit."""


def no_answer(call: str) -> BaseException:
    """Return the failure of a catalog that cannot be reached; for `Fault(raises=no_answer)`."""
    return CatalogUnavailableError(f"The catalog did not answer the call {call}.", call=call)


class FaultyCatalog:
    """Passes calls on to `inner` until `fault` is due; it fails once. `calls` counts the calls that matched.

    If the fault has a `path_part`, it is part of the name of the call.
    """

    def __init__(self, inner: Catalog, fault: Fault) -> None:
        self.inner, self.fault, self.calls = inner, fault, 0
        self._lock = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        if name not in CALLS or self.fault.path_part not in name:
            return found

        def call(*arguments: Any, **named: Any) -> Any:
            with self._lock:
                self.calls += 1
                due = self.calls == self.fault.nth
            if due and self.fault.when == "before":
                raise self.fault.raises(name)
            result = found(*arguments, **named)
            if due:
                raise self.fault.raises(name)
            return result

        return call
