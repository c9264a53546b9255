"""When maintenance is worth it, and what is said of each kind of maintenance."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark_delta.display import html_rows
from pyspark_delta.errors import InvalidOptionError

_OPTIONAL = ("vacuum_days", "checkpoint_commits")  # limits that may be None


@dataclass(frozen=True, kw_only=True)
class MaintenancePolicy:
    """When maintenance is worth it.

    A compaction has to save `saved_files` files. A clustered table is clustered if files that never were have a share
    `unclustered_share` of its bytes. Deletion vectors are purged if a share `vector_share` of the files has some. With
    `statistics`, files that lack statistics get them. A vacuum follows the last one after `vacuum_days` days; None
    never vacuums. A checkpoint is written after `checkpoint_commits` commits, by default as many as
    delta.checkpointInterval says. The features of `drop_features` are dropped, together with the history that uses
    them as soon as the table allows that.
    """

    saved_files: int = 10
    unclustered_share: float = 0.1
    vector_share: float = 0.25
    statistics: bool = True
    vacuum_days: float | None = 7
    checkpoint_commits: int | None = None
    drop_features: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.drop_features, tuple):
            raise InvalidOptionError(
                f"drop_features is a tuple of names of features, found {self.drop_features!r}.", option="drop_features"
            )
        limits = {
            "saved_files": 1,
            "unclustered_share": 0,
            "vector_share": 0,
            "vacuum_days": 0,
            "checkpoint_commits": 1,
        }
        for name, least in limits.items():
            value = getattr(self, name)
            if value is None and name in _OPTIONAL:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or value < least:
                raise InvalidOptionError(f"{name} is a number from {least} on, found {value!r}.", option=name)


@dataclass(frozen=True, slots=True)
class MaintenanceTask:
    """One kind of maintenance: if it is due, and why or why not. `result` says what it did; empty before."""

    name: str
    due: bool
    why: str
    result: str = ""


@dataclass(frozen=True, repr=False)
class MaintenanceReport:
    """The maintenance of a table: every task, with the reason why it was done or left, and the newest version."""

    location: str
    version: int
    tasks: tuple[MaintenanceTask, ...]

    def facts(self) -> list[dict[str, object]]:
        """Return a row of names and values for each task."""
        return [{name: getattr(task, name) for name in ("name", "due", "why", "result")} for task in self.tasks]

    def _repr_html_(self) -> str:
        rows = [(task.name, "yes" if task.due else "no", task.why, task.result) for task in self.tasks]
        return html_rows(f"Maintenance of {self.location}", ("task", "due", "why", "result"), rows)

    def __repr__(self) -> str:
        due = ", ".join(task.name for task in self.tasks if task.due)
        return f"MaintenanceReport({self.location!r}, version={self.version}, due: {due or 'nothing'})"

    def __str__(self) -> str:
        lines = [f"Maintenance of '{self.location}' at version {self.version}:"]
        for task in self.tasks:
            done = f"; {task.result}" if task.result else ""
            lines.append(f"  {task.name}: {'due' if task.due else 'not due'}, {task.why}{done}")
        return "\n".join(lines)
