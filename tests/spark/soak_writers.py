"""Two writers and maintenance in a process of their own, for the soak of streams.

    python -m tests.spark.soak_writers LOCATION SECONDS_PER_COMMIT SECONDS_PER_ROUND

They work until standard input is closed. Then one line of JSON says what was done: see `Done`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from threading import Event, Thread

from pyspark_delta import Table

ROWS = 10  # of each commit
KEYS = 7


@dataclass(frozen=True)
class Done:
    """Commits of each writer, and rounds of maintenance."""

    commits: list[int]
    rounds: int


def rows_of(commit: int) -> range:
    """The values of column `row` that a commit adds."""
    return range(commit * ROWS, (commit + 1) * ROWS)


class Repeated(Thread):
    """Does one thing again and again until it is told to stop, with a pause before each time."""

    def __init__(self, work: Callable[[int], object], pause: float, stop: Event) -> None:
        super().__init__(daemon=True)
        self.work, self.pause, self.stop = work, pause, stop
        self.times = 0
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            while not self.stop.wait(self.pause):
                self.work(self.times)
                self.times += 1
        except Exception as error:
            self.error = error
            self.stop.set()


def append(location: str, writer: int, commit: int) -> None:
    """Append the rows of one commit of a writer."""
    rows = rows_of(commit)
    Table.open(location).append({"writer": [writer] * ROWS, "row": rows, "key": [row % KEYS for row in rows]})


def maintain(location: str) -> None:
    """Compact the table, and delete what no version needs."""
    Table.open(location).optimize()
    Table.open(location).vacuum()


def main(location: str, commit_pause: float, round_pause: float) -> Done:
    """Work until standard input is closed. Raises what a writer or the maintenance has raised."""
    stop = Event()
    writers = [Repeated(lambda n, w=writer: append(location, w, n), commit_pause, stop) for writer in (1, 2)]
    maintenance = Repeated(lambda _: maintain(location), round_pause, stop)
    threads = [*writers, maintenance]
    Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in (thread.error for thread in threads if thread.error is not None):
        raise error
    return Done([writer.times for writer in writers], maintenance.times)


if __name__ == "__main__":
    _, place, *pauses = sys.argv
    sys.stdout.write(json.dumps(asdict(main(place, *map(float, pauses)))))
