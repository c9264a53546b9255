"""The plan of dropping a feature: which way, what is rewritten, what readers need afterwards, and from when on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

from pyspark_delta.actions.model import Protocol
from pyspark_delta.display import counted, html_facts, listed
from pyspark_delta.features.support import check_writable
from pyspark_delta.maintenance.drop_feature.droppable import Drop, find_drop
from pyspark_delta.maintenance.drop_feature.history import BARRIERS, History, look_back
from pyspark_delta.maintenance.drop_feature.rewriting import Placer, in_this_process, rewrite_files
from pyspark_delta.maintenance.drop_feature.run import DropFeatureResult, run_drop
from pyspark_delta.maintenance.drop_feature.steps import Rewriter
from pyspark_delta.maintenance.drop_feature.traces import Traces, find_traces
from pyspark_delta.protocol.removal import FileTraces
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.transaction.protocol_upgrade import features_of

__all__ = ["DropFeaturePlan", "DropFeatureResult", "plan_drop_feature"]


@dataclass(frozen=True, repr=False)
class DropFeaturePlan:
    """What dropping a feature from a version would do.

    `traces` are removed first. `history` is None unless the history is truncated. `protocol` is the one afterwards.
    """

    snapshot: Snapshot
    drop: Drop
    traces: Traces
    history: History | None
    protocol: Protocol
    engine_info: str = ""
    _rewrite: Rewriter = field(default=rewrite_files, repr=False)

    @property
    def finish_after(self) -> datetime | None:
        """When the drop can be finished, in UTC; None if it can be now."""
        if self.history is None or (self.history.traced is None and not self.traces):
            return None
        expires = self.history.expires(self.snapshot)
        return datetime.fromtimestamp(expires / 1000, UTC) if self.traces or time.time() * 1000 < expires else None

    @property
    def steps(self) -> tuple[str, ...]:
        """What is done, in order, as texts."""
        return tuple(self._steps())

    def _steps(self) -> Iterator[str]:
        traces, removal = self.traces, self.drop.removal
        for name, value in traces.properties.items():
            yield f"unset {name}" if value is None else f"set {name} to {value}"
        if traces.files:
            what = "add {} again without {}" if removal.files is FileTraces.ROW_IDS else "rewrite {} with {}"
            kind = "" if removal.files is None else removal.files.value
            yield f"{what.format(counted(traces.files, 'file'), kind)} ({counted(traces.size, 'byte')})"
        if removal.files is FileTraces.VECTORS:
            yield "keep the files of deletion vectors that earlier versions need, by tombstones"
        if traces.fields:
            yield f"remove {', '.join(removal.field_keys)} from columns"
        if traces.domains:
            yield f"remove the metadata domains {listed(traces.domains)}"
        if self.drop.is_protected:
            yield f"write {BARRIERS} checkpoints of empty commits"
        if self.finish_after is not None:
            yield f"wait until {self.finish_after:%Y-%m-%d %H:%M} UTC, then run again"
        if self.history is not None and (self.history.traced is not None or self.traces):
            yield "delete the log of the versions with traces, which can then no longer be read"
        yield f"drop {self.drop.feature.name} from the protocol"
        if self.drop.is_protected:
            yield "protect the checkpoints before that"

    def facts(self) -> dict[str, object]:
        """Return the plan as names and values."""
        before = self.snapshot.protocol
        return {
            "operation": "DROP FEATURE",
            "version": self.snapshot.version,
            "feature": self.drop.feature.name,
            "truncate_history": self.drop.truncate,
            "finish_after": self.finish_after,
            "steps": list(self.steps),
            "files_rewritten": 0 if self.drop.removal.files is FileTraces.ROW_IDS else self.traces.files,
            "bytes_rewritten": 0 if self.drop.removal.files is FileTraces.ROW_IDS else self.traces.size,
            "left_in_place": self.drop.removal.leaves,
            "readers_need_before": _needs(before.min_reader_version, before.reader_features),
            "readers_need_after": _needs(self.protocol.min_reader_version, self.protocol.reader_features),
            "writers_need_after": _needs(self.protocol.min_writer_version, features_of(self.protocol)),
        }

    def execute(self) -> DropFeatureResult:
        """Drop the feature from the newest version. An interrupted run is continued by another one.

        Raises InvalidOperationError if the feature cannot be dropped yet, after everything that can be done before; the
        error says when it can.
        """
        return run_drop(self.snapshot, self.drop.feature.name, self.drop.truncate, self._rewrite, self.engine_info)

    def _repr_html_(self) -> str:
        facts = {name: "; ".join(value) if isinstance(value, list) else value for name, value in self.facts().items()}
        return html_facts("DropFeaturePlan", facts)

    def __repr__(self) -> str:
        return f"DropFeaturePlan({self.snapshot.location!r}, {self.drop.feature.name!r})"

    def __str__(self) -> str:
        facts = self.facts()
        lines = [
            f"Drop {self.drop.feature.name} from '{self.snapshot.location}', now at version {self.snapshot.version}:",
            *(f"  {number}. {step}" for number, step in enumerate(self.steps, 1)),
            f"  readers then need {facts['readers_need_after']}, now {facts['readers_need_before']}",
            f"  writers then need {facts['writers_need_after']}",
        ]
        if self.drop.removal.leaves:
            lines.append(f"  what stays: {self.drop.removal.leaves}")
        return "\n".join(lines)


def plan_drop_feature(
    snapshot: Snapshot,
    name: str,
    *,
    truncate_history: bool = False,
    engine_info: str = "",
    place: Placer = in_this_process,
) -> DropFeaturePlan:
    """Return what dropping a feature would do, without writing anything.

    By default the history stays, and its checkpoints are protected. With `truncate_history`, the versions that use the
    feature are deleted first, once they are old enough. `place` chooses where files are rewritten. Raises
    InvalidOperationError if the feature cannot be dropped, and the errors of `check_writable`.
    """
    check_writable(snapshot.configuration, snapshot.location)
    drop = find_drop(snapshot.configuration, name, truncate_history)
    return DropFeaturePlan(
        snapshot,
        drop,
        find_traces(snapshot, drop),
        look_back(snapshot, drop) if drop.truncate else None,
        drop.protocol_after(snapshot.protocol),
        engine_info,
        partial(rewrite_files, place=place),
    )


def _needs(version: int, features: frozenset[str] | None) -> str:
    return f"version {version}" + (f" with {', '.join(sorted(features))}" if features else "")
