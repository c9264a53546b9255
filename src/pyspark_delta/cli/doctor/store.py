"""Check that a place for tables can be written safely: conditional writes, listing, removal, and its clock.

The checks write below a folder of their own, which they remove.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark_delta.cli.doctor.check import Check
from pyspark_delta.errors import DeltaError, FileAlreadyExistsError, FileNotFoundInStoreError

if TYPE_CHECKING:
    from pyspark_delta.storage import ObjectStore

_SKEW_SECONDS = 60  # beyond this, time travel by timestamp and the retention of VACUUM mislead
_PERMISSIONS = "give the credentials the right to read, write, list and remove files there"


def check_store(url: str, storage_options: Mapping[str, str]) -> Iterator[Check]:
    """Write, list, read and remove a file below a URL. The first failure ends the checks, since the others need it."""
    from pyspark_delta.storage import normalize_location, store_for

    probe = f"_pyspark_delta_doctor_{uuid.uuid4().hex}"
    try:
        root = normalize_location(url)
        store = store_for(root, storage_options)
    except DeltaError as error:
        yield Check("store", "failed", error.message, "correct the URL and its options (-o KEY=VALUE)")
        return
    file = f"{root}/{probe}/00000000000000000000.json"
    try:
        yield from _check_steps(store, root, file)
    finally:
        with contextlib.suppress(DeltaError):  # a failure to remove files has been reported
            store.delete_directory(f"{root}/{probe}")


def _check_steps(store: ObjectStore, root: str, file: str) -> Iterator[Check]:
    """Run the steps on one file. An error of the store ends them."""
    step = "write"
    try:
        before = time.time()
        store.write_if_absent(file, b"first")
        after = time.time()
        yield Check("store: write", "ok", root)
        step = "conditional write"
        yield _check_conditional_write(store, file)
        step = "list and read"
        yield _check_listing(store, file)
        yield _check_clock(store.status(file).modification_time / 1000, before, after)
        step = "remove"
        store.delete([file])
        yield _check_removed(store, file)
    except DeltaError as error:
        yield Check(f"store: {step}", "failed", error.message, _PERMISSIONS)


def _check_conditional_write(store: ObjectStore, file: str) -> Check:
    """Check that a second write of the same file is refused, on which commits depend."""
    name = "store: conditional write"
    try:
        store.write_if_absent(file, b"second")
    except FileAlreadyExistsError:
        return Check(name, "ok", "an existing file is not replaced")
    return Check(
        name,
        "failed",
        "an existing file was replaced: concurrent writers would lose commits",
        "use a store that supports conditional writes (If-None-Match), or a catalog that decides about commits",
    )


def _check_listing(store: ObjectStore, file: str) -> Check:
    listed = [status.path for status in store.list_from(file)]
    if listed == [file] and store.read(file):
        return Check("store: list and read", "ok", "a new file is shown at once")
    remedy = "use a store with consistent listings"
    return Check("store: list and read", "failed", "a new file is not shown", remedy)


def _check_clock(written: float, before: float, after: float) -> Check:
    """Compare the time that the store gave to a file, in seconds, with the clock of this machine."""
    skew = before - written if written < before else max(written - after, 0)
    if skew <= _SKEW_SECONDS:
        return Check("store: clock", "ok", f"{skew:.0f} s from the clock of this machine")
    return Check(
        "store: clock",
        "failed",
        f"{skew:.0f} s from the clock of this machine; time travel and VACUUM depend on both",
        "synchronize the clock of this machine (NTP)",
    )


def _check_removed(store: ObjectStore, file: str) -> Check:
    try:
        store.status(file)
    except FileNotFoundInStoreError:
        return Check("store: remove", "ok", "a removed file is gone")
    return Check("store: remove", "failed", "a removed file is still there", _PERMISSIONS)
