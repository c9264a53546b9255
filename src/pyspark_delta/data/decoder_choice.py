"""Which decoder reads a plan: Polars where it is faster and exact, else PyArrow.

Importing Polars takes half a second, so a read does not import it unless it is large. A process that has imported
Polars, such as one that calls `to_polars`, uses it for smaller reads too.
"""

from __future__ import annotations

import os
import sys

import pyarrow.compute as pc

from pyspark_delta.data.decoders import Decoder
from pyspark_delta.data.opened import is_local
from pyspark_delta.data.reader import output_schema
from pyspark_delta.logs import logger
from pyspark_delta.scan.plan import ScanPlan

VARIABLE = "PYSPARK_DELTA_DECODER"
"""The environment variable that leaves all decoding to PyArrow if it is `pyarrow`."""

_OLDEST = (2, 1)  # of Polars; 1.32 reads files with two columns of one name
_IMPORT_BYTES = 4 << 30  # of files; reading fewer takes less time than importing Polars
_IMPORT_FILES = 4096
_FEWEST_BYTES = (
    1 << 20
)  # of files that are read into Arrow; the rows of few and smaller ones are read as fast by PyArrow
_FEWEST_FILES = 16

_log = logger(__name__)
_lost_threads = False  # this process is a fork: the threads of Polars, which its parent had imported, do not exist here


def choose_decoder(plan: ScanPlan, *, views: bool = False) -> Decoder | None:
    """Return the decoder for a plan; None for PyArrow. With `views`, for batches whose texts and binaries are views."""
    reason = _reason_for_pyarrow(plan, views=views)
    if reason is None:
        from pyspark_delta.data.polars_columns import decodes
        from pyspark_delta.data.polars_decoder import PolarsDecoder

        if decodes(plan.context, views=views):
            return PolarsDecoder(plan.context, output_schema(plan.context), views=views)
        reason = "columns have types that Polars does not decode exactly, or no faster"
    _log.debug("PyArrow decodes %s: %s", plan.context.table_location, reason)
    return None


def _reason_for_pyarrow(plan: ScanPlan, *, views: bool) -> str | None:
    """Return why PyArrow decodes a plan, as far as it is known without Polars."""
    if os.environ.get(VARIABLE) == "pyarrow":
        return f"{VARIABLE} says so"
    if _lost_threads:
        return "Polars does not work in a fork of a process that has used it"
    if not is_local(plan.context.table_location, plan.context.storage_options):
        return "the files are not local"
    size, count = pc.sum(plan.files["size"]).as_py() or 0, plan.files.num_rows
    if not views and size < _FEWEST_BYTES and count < _FEWEST_FILES:
        return "the files are few and small"
    if "polars" not in sys.modules and size < _IMPORT_BYTES and count < _IMPORT_FILES:
        return "the files are not worth the time to import Polars"
    try:
        import polars
    except ImportError as error:
        return f"Polars cannot be imported: {error}"
    if tuple(int(part) for part in polars.__version__.split(".")[:2]) < _OLDEST:
        return f"Polars {polars.__version__} is too old"
    return None


def _note_fork() -> None:
    global _lost_threads
    _lost_threads = "polars" in sys.modules


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)
