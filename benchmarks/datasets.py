"""The datasets of the benchmarks: made once each, in a process of its own, and kept under .cache/bench."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.model import Dataset

FOLDER = "datasets-3"  # a new number makes all datasets anew


def build_log(location: Path, **arguments: Any) -> None:
    """A checkpoint and JSON commits, without data files."""
    from benchmarks.synthetic_log import SyntheticLog, write_log

    write_log(location, SyntheticLog(**arguments))


def build_json_log(location: Path, **arguments: Any) -> None:
    """JSON commits alone, without data files."""
    from benchmarks.json_logs import JsonLog, write_json_log

    write_json_log(location, JsonLog(**arguments))


def build_data(location: Path, **arguments: Any) -> None:
    """A table with rows."""
    from benchmarks.data_tables import DataTable, write_data_table

    write_data_table(location, DataTable(**arguments))


def build_file_tree(location: Path, **arguments: Any) -> None:
    """A table whose data files are empty."""
    from benchmarks.file_trees import FileTree, write_file_tree

    write_file_tree(location, FileTree(**arguments))


def build_changes(location: Path, **arguments: Any) -> None:
    """A table with a change data feed."""
    from benchmarks.change_tables import ChangeTable, write_change_table

    write_change_table(location, ChangeTable(**arguments))


def build_lineitem(location: Path, **arguments: Any) -> None:
    """TPC-H's lineitem."""
    from benchmarks.tpch import Lineitem, write_lineitem

    write_lineitem(location, Lineitem(**arguments))


def build_lineitem_source(location: Path, *, every: int, new: int, **arguments: Any) -> None:
    """Rows to merge into TPC-H's lineitem."""
    from benchmarks.tpch import Lineitem, write_lineitem_source

    write_lineitem_source(location, Lineitem(**arguments), every, new)


def build_tpch(location: Path, *, scale: float, files: int) -> None:
    """All tables of TPC-H."""
    from benchmarks.tpch import write_tables

    write_tables(location, scale, files)


BUILDERS: dict[str, Callable[..., None]] = {
    "log": build_log,
    "json_log": build_json_log,
    "data": build_data,
    "file_tree": build_file_tree,
    "changes": build_changes,
    "lineitem": build_lineitem,
    "lineitem_source": build_lineitem_source,
    "tpch": build_tpch,
}


class Datasets:
    """Gives the location of a dataset, making it when it is not there yet."""

    def __init__(self, cache: Path, report: Callable[[str], None]) -> None:
        self._folder = cache / FOLDER
        self._report = report

    def __call__(self, dataset: Dataset) -> str:
        location = self._folder / dataset.name
        if not location.exists():
            self._report(f"  making {dataset.name}")
            unfinished = location.with_name(location.name + ".unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            self._folder.mkdir(parents=True, exist_ok=True)
            arguments = json.dumps(dict(dataset.arguments))
            command = [sys.executable, "-m", "benchmarks.datasets", dataset.builder, str(unfinished), arguments]
            root = Path(__file__).parents[1]
            subprocess.run(command, check=True, cwd=root, env=_environment(root))
            unfinished.rename(location)
        return str(location)


def _environment(root: Path) -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])}


def main() -> None:
    """`python -m benchmarks.datasets BUILDER LOCATION ARGUMENTS`."""
    builder, location, arguments = sys.argv[1:]
    BUILDERS[builder](Path(location), **json.loads(arguments))


if __name__ == "__main__":
    main()
