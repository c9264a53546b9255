"""Read a planned change feed into Arrow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial

import pyarrow as pa

from pyspark_delta.changes.feed_columns import COMMIT_VERSION
from pyspark_delta.changes.plan import FeedPlan
from pyspark_delta.data.reader import read_plan, tasks_of
from pyspark_delta.errors import DataFileError
from pyspark_delta.scan.plan import ScanPlan, ScanTask
from pyspark_delta.schema.arrow import schema_to_arrow
from pyspark_delta.storage.paths import resolve_file

_MISSING = "DELTA_FILE_NOT_FOUND_DETAILED"


def changes_schema(plan: FeedPlan) -> pa.Schema:
    """Return the Arrow schema of the rows: every column and field is nullable."""
    return schema_to_arrow(plan.schema, all_nullable=True)


def read_changes(
    plan: FeedPlan, read: Callable[[ScanPlan], Iterable[pa.RecordBatch]] = read_plan
) -> Iterator[pa.RecordBatch]:
    """Yield the changed rows as batches of `changes_schema(plan)`, in version order within each scan.

    `read` reads the rows of one scan.

    Raises DataFileError, naming file and version, for a data file that was vacuumed; and the errors of `read_plan`.
    """
    for scan in plan.scans:
        location = scan.plan.context.table_location
        with naming_versions(location, partial(tasks_of, scan.plan.files)):
            yield from read(scan.plan)


@contextmanager
def naming_versions(location: str, tasks: Callable[[], Iterable[ScanTask]]) -> Iterator[None]:
    """Add the versions whose changes a file held to the error for a data file that is missing.

    `tasks` is called only for an error; errors of tasks outside a change feed are not changed.
    """
    try:
        yield
    except DataFileError as error:
        if error.error_class != _MISSING:
            raise
        versions = _versions(location, tasks(), error.path)
        if not versions:
            raise
        raise missing_file(error.path, versions) from None


def missing_file(path: str, versions: Iterable[int]) -> DataFileError:
    """Return the error for a data file that held changes of some versions, and is missing."""
    numbers = sorted(set(versions))
    shown = ", ".join(map(str, numbers))
    return DataFileError(
        f"The changes of version{'s' if len(numbers) > 1 else ''} {shown} cannot be read: data file '{path}' does not "
        "exist. It was deleted by vacuum or by hand. Read the changes from a later version on, or restore the file.",
        error_class=_MISSING,
        path=path,
        versions=numbers,
    )


def _versions(location: str, tasks: Iterable[ScanTask], path: str) -> list[int]:
    of_file = (task for task in tasks if resolve_file(location, task.path) == path)
    texts = (task.partition_values.get(COMMIT_VERSION.name) for task in of_file)
    return [int(text) for text in texts if text is not None]
