"""What a benchmark is: a workload, its variants, and who runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

OURS = "pyspark-delta"
ARROW = "pyspark-delta, Arrow"  # the same without Spark, where a workload has both


@dataclass(frozen=True)
class Dataset:
    """Files that workloads read, made once by a builder of `benchmarks.datasets` from its arguments."""

    builder: str
    arguments: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        """The name of its folder."""
        return "-".join([self.builder, *(f"{key}_{value}" for key, value in self.arguments)])


def dataset(builder: str, **arguments: Any) -> Dataset:
    """A dataset with its arguments by name."""
    return Dataset(builder, tuple(sorted(arguments.items())))


@dataclass(frozen=True)
class Prepared:
    """What a peer's function returns: what is timed, and the answer that peers must agree on, worked out untimed."""

    timed: Callable[[], Any]
    answer: Callable[[Any], Any] = lambda result: result


@dataclass(frozen=True)
class Peer:
    """One implementation of a workload.

    `function` is `module:name`; called with the variant's arguments it prepares everything that is not timed (imports,
    a session) and returns a `Prepared`. `environment` names the virtual environment that runs it. `inner` is how often
    the callable runs in one process after the warm-up calls: 0 means once, cold. `processes` overrides the
    repetitions of the variant. With a `session`, which is expensive to start, one process runs all variants of the
    workload. `against` is the implementation of ours that its ratio refers to. An unchecked peer does
    something comparable that has another answer: a lower bound. `root` is the checkout whose package and benchmarks
    run; this one if it is empty.
    """

    name: str
    function: str
    environment: str = "main"
    inner: int = 0
    processes: int | None = None
    session: bool = False
    against: str = OURS
    checked: bool = True
    root: str = ""


@dataclass(frozen=True)
class Goal:
    """The peer's figure over ours must be at least `ratio` (ours `ratio` times as fast; 0.9 allows 1.11x).

    `measure` is `seconds`, `cpu_seconds` or `added_mib`. Ours may take `slack` more of it.
    """

    peer: str
    ratio: float
    measure: str = "seconds"
    slack: float = 0.0


@dataclass(frozen=True)
class Growth:
    """Our time must be at most `factor` times that of the variant `base`, and `slack` seconds for noise.

    With a `peer`, the time of that implementation, for workloads in which several are ours.
    """

    base: str
    factor: float
    slack: float = 0.002
    peer: str = ""


@dataclass(frozen=True)
class AtMost:
    """Our time must be at most so many seconds."""

    seconds: float


@dataclass(frozen=True)
class Variant:
    """One size or shape of a workload: the datasets it needs, the arguments of its functions, and its goals.

    The location of `dataset` is passed as `location`, those of `others` by their names. `peers` are the names of those
    that take part, all when it is empty.
    """

    name: str
    dataset: Dataset
    arguments: Mapping[str, Any] = field(default_factory=dict)
    goals: tuple[Goal | Growth | AtMost, ...] = ()
    repetitions: int = 5
    others: Mapping[str, Dataset] = field(default_factory=dict)
    peers: tuple[str, ...] = ()


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


@dataclass(frozen=True)
class Scale:
    """The sizes of a run."""

    name: str
    files: tuple[int, int, int]  # live files of small, middle and large logs
    commits: tuple[int, int]  # of JSON-only logs
    rows: int
    small_files: int
    many_files: int


FULL = Scale("full", (10_000, 100_000, 1_000_000), (1_000, 10_000), 4_000_000, 10_000, 20_000)
QUICK = Scale("quick", (1_000, 10_000, 50_000), (50, 500), 400_000, 300, 600)


def size(number: int) -> str:
    """A number as it is named in tables: 10k, 1M."""
    for unit, letter in ((1_000_000, "M"), (1_000, "k")):
        if number >= unit and number % unit == 0:
            return f"{number // unit}{letter}"
    return str(number)
