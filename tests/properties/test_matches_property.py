"""Which files a condition concerns: against the rows they hold, and against reading the whole log a second time."""

from __future__ import annotations

import json
import math
import re
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.lengths import length
from tests.properties.test_skipping_property import SCHEMA_JSON, naive, predicates, rows, statistics

from pyspark_delta.expressions.text import to_sql
from pyspark_delta.expressions.tree import Expression
from pyspark_delta.scan.bounds import NEVER
from pyspark_delta.scan.matches import is_not_true, match_files, possible_files
from pyspark_delta.scan.planner import file_request
from pyspark_delta.scan.skipping import Split, split
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.testing.table_builder import TableBuilder, add, metadata, protocol

PARTITIONS = ("s", "dt", "ts")
STATISTICS = [  # of a checkpoint: as text, as columns
    {"delta.checkpoint.writeStatsAsJson": json, "delta.checkpoint.writeStatsAsStruct": struct}
    for json, struct in (("true", "false"), ("true", "true"), ("false", "true"))
]
VECTOR = {"storageType": "i", "pathOrInlineDv": "0" * 20, "sizeInBytes": 1, "cardinality": 1}

File = tuple[list[dict[str, Any]], dict[str, Any]]  # the rows, and the action that adds them


def physical(name: str, *, mapped: bool) -> str:
    return f"col-{name}" if mapped else name


# -------------------------------------------------------------------------------------------------------- actions
def schema(*, mapped: bool) -> str:
    def with_physical_names(struct: dict[str, Any]) -> None:
        for field in struct["fields"]:
            ids.append(field["name"])
            name = physical(field["name"], mapped=True)
            field["metadata"] = {"delta.columnMapping.id": len(ids), "delta.columnMapping.physicalName": name}
            if isinstance(field["type"], dict):
                with_physical_names(field["type"])

    ids: list[str] = []
    parsed = json.loads(SCHEMA_JSON)
    if mapped:
        with_physical_names(parsed)
    return json.dumps(parsed)


def in_json(value: Any) -> Any:
    """A bound as writers put it; decimals, which `json` does not know, are marked."""
    match value:
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case Decimal():
            return f"@{value:f}@"
        case datetime():
            return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case date():
            return value.isoformat()
    return value


def stats_text(described: list[dict[str, Any]], style: str, *, mapped: bool, partitioned: bool) -> str:
    def nested(values: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in values.items():
            if value is None or (partitioned and name in PARTITIONS):
                continue
            *above, last = (physical(part, mapped=mapped) for part in name.split("."))
            place = found
            for part in above:
                place = place.setdefault(part, {})
            place[last] = in_json(value)
        return found

    made = statistics(described, style)
    parts = {name: value if name == "numRecords" else nested(value) for name, value in made.items()}
    if style == "wide":
        parts["tightBounds"] = False
    return re.sub('"@(.*?)@"', r"\1", json.dumps(parts, ensure_ascii=False))


def partition_text(value: Any, zone: ZoneInfo) -> str | None:
    if isinstance(value, datetime):
        return value.astimezone(zone).strftime("%Y-%m-%d %H:%M:%S.%f")
    return None if value is None else str(value)


@st.composite
def files(draw: st.DrawFn, zone: ZoneInfo, *, mapped: bool, partitioned: bool) -> list[File]:
    """Some files: rows, and statistics that tell everything, less, or nothing."""
    found: list[File] = []
    for number in range(draw(st.integers(1, 5))):
        held = draw(st.lists(rows, min_size=1, max_size=3))
        values = {name: held[0][name] or None for name in PARTITIONS} if partitioned else {}
        held = [{**row, **values} for row in held]
        style = draw(st.sampled_from(["reference", "footer", "wide", "nothing", "broken"]))
        extra: dict[str, Any] = {}
        if style == "wide":
            extra["deletionVector"] = VECTOR
        if style == "broken":
            extra["stats"] = draw(st.sampled_from(["", "{", "{}", "[]", '{"numRecords":null,"minValues":7}']))
        elif style != "nothing":
            extra["stats"] = stats_text(held, style, mapped=mapped, partitioned=partitioned)
        texts = {physical(name, mapped=mapped): partition_text(value, zone) for name, value in values.items()}
        found.append((held[: len(held) - (style == "wide")], add(f"f{number}", texts, **extra)))
    return found


# ---------------------------------------------------------------------------------------------------- the old way
def by_reading_twice(snapshot: Snapshot, predicate: Expression, zone: str) -> tuple[set[str], set[str]]:
    """The files that `match_files` tells apart, with every file of the log looked at for either question."""

    def paths(parts: Split) -> set[str]:
        if NEVER in (parts.partition, parts.stats):
            return set()
        request = file_request(snapshot.configuration, ("path",), parts.partition, parts.stats, zone)
        return {path for batch in snapshot.read_files(request) for path in batch.column("path").to_pylist()}

    first = split(predicate, snapshot.configuration)
    candidates = paths(first)
    unsure: set[str] = set()
    if first.residual is not None:
        unsure = paths(split(is_not_true(first.residual), snapshot.configuration))
    return candidates - unsure, candidates & unsure


SETTINGS = settings(max_examples=length(30, 1500), deadline=None, suppress_health_check=[HealthCheck.too_slow])


@SETTINGS
@given(st.data(), st.booleans(), st.booleans(), st.sampled_from(STATISTICS), st.integers(0, 5))
def test_files_are_told_apart_by_what_they_hold(
    data: st.DataObject, mapped: bool, partitioned: bool, kept: dict[str, str], in_checkpoint: int
) -> None:
    zone = data.draw(st.sampled_from(["UTC", "America/New_York"]))
    held = data.draw(files(ZoneInfo(zone), mapped=mapped, partitioned=partitioned))
    mapping = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "99"} if mapped else {}
    with TemporaryDirectory() as folder:
        builder = TableBuilder(Path(folder))
        declared = metadata(None, PARTITIONS if partitioned else (), {**kept, **mapping})["metaData"]
        table = {"metaData": {**declared, "schemaString": schema(mapped=mapped)}}
        features = ["deletionVectors", "timestampNtz", *(["columnMapping"] if mapped else [])]
        builder.commit(0, [protocol(3, 7, features, features), table, *(action for _, action in held[:in_checkpoint])])
        if in_checkpoint:
            Snapshot.load(builder.location).checkpoint()
        builder.commit(1, [action for _, action in held[in_checkpoint:]])
        for predicate in data.draw(st.lists(predicates(opaque=True), min_size=1, max_size=3)):
            snapshot = Snapshot.load(builder.location)
            columns = data.draw(st.sampled_from([("path",), ("path", "stats"), ("path", "partition_values", "size")]))
            found = match_files(snapshot, predicate, columns, time_zone=zone)
            assert set(found.fully_matched.column_names) == set(found.partially_matched.column_names) == set(columns)
            inside, partly = (
                set(found.fully_matched["path"].to_pylist()),
                set(found.partially_matched["path"].to_pylist()),
            )
            assert (inside, partly) == by_reading_twice(snapshot, predicate, zone), to_sql(predicate)
            together = possible_files(snapshot, predicate, columns, time_zone=zone)
            assert set(together.column_names) == set(columns)
            assert sorted(together["path"].to_pylist()) == sorted(inside | partly)
            for number, (present, _) in enumerate(held):
                outcomes = {naive(predicate, row) for row in present}
                assert f"f{number}" not in inside or outcomes <= {True}, to_sql(predicate)
                assert f"f{number}" in inside | partly or True not in outcomes, to_sql(predicate)
