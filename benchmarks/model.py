"""What a benchmark is: a workload, its variants, and who runs it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

OURS = "pyspark-delta"


@dataclass(frozen=True)
class Peer:
    """One implementation of a workload.

    `function` is `module:name`; called with the variant's arguments it prepares everything that is not timed (imports,
    a session) and returns the callable that is. `environment` names the virtual environment that runs it. `inner` is
    how often the callable runs in one process after one warm-up call: 0 means once, cold.
    """

    name: str
    function: str
    environment: str = "main"
    inner: int = 0


@dataclass(frozen=True)
class Goal:
    """The peer's time over ours must be at least `ratio` (ours must be `ratio` times as fast; 0.9 allows 1.11x)."""

    peer: str
    ratio: float


@dataclass(frozen=True)
class Variant:
    """One size or shape of a workload: the dataset it needs, the arguments of its functions, and its goals."""

    name: str
    dataset: str
    arguments: dict[str, Any] = field(default_factory=dict)
    goals: tuple[Goal, ...] = ()
    repetitions: int = 5


@dataclass(frozen=True)
class Workload:
    """An operation that is compared, by the ids of the benchmark plan."""

    id: str
    title: str
    peers: tuple[Peer, ...]
    variants: tuple[Variant, ...]


@dataclass(frozen=True)
class Measurement:
    """One run: wall and CPU seconds, and MiB of memory that the timed part added to the peak."""

    seconds: float
    cpu_seconds: float
    added_mib: float
    answer: Any = None
