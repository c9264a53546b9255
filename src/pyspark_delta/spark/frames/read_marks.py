"""Marks on DataFrames: the table and version that a frame reads. Derived frames keep the marks.

In a classic session, the mark is a tag on the leaves of the frame's plan in the JVM. On Spark Connect, it is an
attribute of the plan in this process. The plan of a derived frame contains these nodes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.frames.catalyst.directories import uri_texts
from pyspark_delta.spark.frames.catalyst.nodes import elements
from pyspark_delta.storage.paths import to_hadoop

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MARK = "_pyspark_delta_table_read"
_CONNECT = "pyspark.sql.connect."
_UNKNOWN_NODES = ("Read", "SQL", "CachedRelation")  # of Spark Connect: only the server knows which tables they read
_SLASHES = re.compile("^file:/+")


@dataclass(frozen=True, slots=True)
class TableRead:
    """A version of a table that a DataFrame reads, and the condition for its rows; None for all rows."""

    location: str
    version: int
    where: str | None = None


def mark_read(frame: DataFrame, snapshot: Snapshot, where: str | None) -> DataFrame:
    """Mark a DataFrame that shows the latest version, so that `reads_in` finds it, and return it."""
    read, plan = TableRead(snapshot.location, snapshot.version, where), frame_plan(frame)
    if plan is None:
        setattr(frame._plan, _MARK, read)
        return frame
    tag, text = _tag(frame), json.dumps(asdict(read))
    for leaf in elements(plan.collectLeaves()):
        leaf.setTagValue(tag, text)
    return frame


def reads_in(frame: DataFrame, snapshot: Snapshot) -> list[TableRead]:
    """Return what a frame reads of the table of a snapshot.

    On Spark Connect, a frame with parts that only the server knows, and with files of the table, counts as a read of
    the whole table at the version of the snapshot.
    """
    plan = frame_plan(frame)
    found = _in_process(frame, snapshot) if plan is None else _in_jvm(frame, plan)
    return [read for read in found if read.location == snapshot.location]


def marks_in(frame: DataFrame) -> list[TableRead]:
    """Return what a frame of a classic session reads of any table at its latest version."""
    return _in_jvm(frame, frame_plan(frame))


def frame_plan(frame: DataFrame) -> Any:
    """Return the analyzed plan of a frame of a classic session; None on Spark Connect."""
    java: Any = getattr(frame, "_jdf", None)
    return None if java is None else java.queryExecution().analyzed()


def _tag(frame: DataFrame) -> Any:
    return _tag_of(frame.sparkSession.sparkContext._gateway)


@lru_cache(maxsize=2)  # a lookup takes a message to the JVM for each package of the name; every load needs the tag
def _tag_of(gateway: Any) -> Any:
    return gateway.jvm.org.apache.spark.sql.catalyst.trees.TreeNodeTag(_MARK)


def _in_jvm(frame: DataFrame, plan: Any) -> list[TableRead]:
    tag, found = _tag(frame), []
    for part in (plan, *elements(plan.subqueriesAll())):
        for leaf in elements(part.collectLeaves()):
            mark = leaf.getTagValue(tag)
            if mark.isDefined():
                found.append(TableRead(**json.loads(mark.get())))
    return found


def _in_process(frame: DataFrame, snapshot: Snapshot) -> list[TableRead]:
    found, unknown = [], False
    for node in _nodes(frame._plan):
        mark = vars(node).get(_MARK)  # not `getattr`: a Column returns a field for any name
        found += [] if mark is None else [mark]
        unknown = unknown or type(node).__name__ in _UNKNOWN_NODES
    if unknown and not found and _has_files_of(frame.inputFiles(), snapshot.location):
        found.append(TableRead(snapshot.location, snapshot.version))
    return found


def _nodes(plan: object) -> Iterator[object]:
    """Yield the nodes of a plan of Spark Connect, including those of its expressions."""
    seen: set[int] = set()
    waiting: list[object] = [plan]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list | tuple | set):
            waiting.extend(node)
        elif isinstance(node, dict):
            waiting.extend(node.values())
        elif _is_of_plan(node) and id(node) not in seen:
            seen.add(id(node))
            yield node
            waiting.extend(vars(node).values())


def _is_of_plan(node: object) -> bool:
    kind = type(node)
    return kind.__module__.startswith(_CONNECT) and hasattr(node, "__dict__") and not kind.__name__.endswith("Session")


def _has_files_of(files: Iterable[str], location: str) -> bool:
    """Return True if some of the files, given as URIs, are in the directory of the table."""
    directory = _SLASHES.sub("file:/", uri_texts(pa.array([to_hadoop(location)]))[0].as_py()).rstrip("/") + "/"
    return any(_SLASHES.sub("file:/", file).startswith(directory) for file in files)
