"""Type checkers see every public name and member, and no others."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.architecture.test_public_surface import RETURNED, surface

import pyspark_delta

ROOT = Path(__file__).parents[2]
_UNKNOWN = "no_such_name"


def test_checkers_know_public_names_and_no_others(tmp_path: Path) -> None:
    """Every class is used with each of its members, which is right, and with an unknown one, which is not."""
    names = sorted(set(pyspark_delta.__all__) - {"errors"})
    program = [f"from pyspark_delta import {', '.join(names)}", "from pyspark_delta import errors"]
    program += [f"from {cls.__module__} import {cls.__name__}" for cls in RETURNED]
    program.append("import pyspark_delta")
    members = dict.fromkeys(line.split("(")[0] for line in surface() if re.match(r"[A-Z]\w*\.[a-zA-Z]", line))
    classes = dict.fromkeys(member.split(".")[0] for member in members)
    generic = {"ChangePlan": "ChangePlan[int]", "DeltaTableBuilder": "DeltaTableBuilder[DeltaTable]"}
    wrong = {len(program) + 1}
    program.append(f"pyspark_delta.{_UNKNOWN}")
    for cls in classes:
        program.append(f"def use_{cls}(x: {generic.get(cls, cls)}) -> None:")
        program += [f"    x.{member.split('.')[1]}" for member in members if member.startswith(f"{cls}.")]
        program.append(f"    x.{_UNKNOWN}")
        wrong.add(len(program))
    source = tmp_path / "program.py"
    source.write_text("\n".join(program) + "\n")
    config = str(ROOT / "pyproject.toml")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", config, "--no-error-summary", str(source)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = re.findall(r"program\.py:(\d+): error: (.*)", done.stdout)
    assert {int(line) for line, _ in found} == wrong, done.stdout + done.stderr
    assert all(_UNKNOWN in text for _, text in found)
    assert len(classes) > 15
