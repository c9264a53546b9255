"""The scripts behind make and CI: what they read from texts, and when they fail."""

from __future__ import annotations

import importlib.util
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPTS = Path(__file__).parents[3] / "scripts"


def script(name: str) -> ModuleType:
    """A script as a module."""
    spec = importlib.util.spec_from_file_location(f"script_{name}", SCRIPTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


check_environment = script("check_environment")
check_skips = script("check_skips")
conformance = script("conformance")
findings = script("findings")
interoperability = script("interoperability")
pythons = script("test_pythons")
run_tests = script("run_tests")


# ------------------------------------------------------------------------------------------- check_environment
@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ("no java here", None),
    ],
)
def test_java_version_is_read(text: str, version: int | None) -> None:
    assert check_environment.java_version(text) == version


def test_old_java_is_one_sentence_with_the_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    problem = check_environment.java_problem()
    assert "Java 17 or newer" in problem
    assert "is Java 11" in problem
    assert "apt-get install" in problem
    assert "\n" not in problem


def test_absent_java_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "no java on the PATH" in check_environment.java_problem()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert f"JAVA_HOME ({tmp_path})" in check_environment.java_problem()


def test_this_python_will_do() -> None:
    assert check_environment.python_problem() == ""


# --------------------------------------------------------------------------------------------------- check_skips
def test_rules_match_test_and_reason() -> None:
    (rule,) = check_skips.read_rules("# why\n\ntests.a.test_b::test_c[x*] | no npm * | needs a tool\n")
    assert rule.allows("tests.a.test_b::test_c[x1]", "no npm here")
    assert not rule.allows("tests.a.test_b::test_c[y]", "no npm here")
    assert not rule.allows("tests.a.test_b::test_c[x1]", "another reason")


def test_incomplete_rules_are_refused() -> None:
    with pytest.raises(ValueError, match="Line 1"):
        check_skips.read_rules("tests.a::test_b | reason")


REPORT = """<testsuites><testsuite>
<testcase classname="tests.a" name="test_ok"/>
<testcase classname="tests.a" name="test_skipped[x]"><skipped type="pytest.skip" message="no npm"/></testcase>
<testcase classname="tests.a" name="test_expected"><skipped type="pytest.xfail" message="broken"/></testcase>
</testsuite></testsuites>"""


@pytest.mark.parametrize(
    ("allowed", "code"),
    [
        ("", 1),
        ("tests.a::test_skipped[x] | no npm | a tool\n", 1),
        ("tests.a::test_skipped[x] | no npm | a tool\ntests.a::test_expected | broken | known\n", 0),
    ],
)
def test_skips_need_leave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allowed: str, code: int) -> None:
    (tmp_path / "core.xml").write_text(REPORT)
    (tmp_path / "allowed.txt").write_text(allowed)
    monkeypatch.setattr(check_skips, "REPORTS", tmp_path)
    monkeypatch.setattr(check_skips, "ALLOWED", tmp_path / "allowed.txt")
    assert check_skips.main() == code


def test_no_report_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_skips, "REPORTS", tmp_path)
    assert check_skips.main() == 1


def test_the_list_of_allowed_skips_is_well_formed() -> None:
    check_skips.read_rules(check_skips.ALLOWED.read_text())


# --------------------------------------------------------------------------------------------------- conformance
CHECKLIST = """| Area | Title | Rows |
## LOG — Table model

| # | Who | Level | Source · section | Rule |
|---|---|---|---|---|
| C001 | RW | def | 004 | A rule with \\| in it. |
| C002 | W | must | 004 | Another. |
"""


def test_rows_of_the_checklist_are_read_without_their_rules() -> None:
    rows = conformance.read_rows(CHECKLIST)
    assert [(r.id, r.area, r.who, r.level) for r in rows] == [
        ("C001", "Table model", "RW", "def"),
        ("C002", "Table model", "W", "must"),
    ]


def test_row_numbers_are_read_from_test_names(tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text(
        "def test_c001_c002_both(): ...\nclass TestIt:\n    def test_c001_again(self): ...\n"
        "def test_abc123_is_no_row(): ...\ndef c002_is_no_test(): ...\n"
    )
    assert conformance.named_tests(tmp_path) == {
        "C001": ["test_x.py::test_c001_again", "test_x.py::test_c001_c002_both"],
        "C002": ["test_x.py::test_c001_c002_both"],
    }


def test_row_numbers_are_read_from_the_text_of_sources(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text('"""It follows C001 and C003-C005."""\n')
    (tmp_path / "b.py").write_text("# (C002-004, ABC009, C0055)\n")
    assert conformance.named_sources(tmp_path) == {
        **{row: ["a.py"] for row in ("C001", "C005")},
        "C002": ["b.py"],
        **{row: ["a.py", "b.py"] for row in ("C003", "C004")},
    }


def test_page_states_each_row() -> None:
    rows = conformance.read_rows(CHECKLIST)
    page = conformance.render(rows, {"C001": ["test_x.py::test_c001"]}, {"C001": ["a.py", "b/c.py"]})
    assert "| C001 | reader and writer | definition | tested | `test_x.py::test_c001` | `a.py`<br>`b/c.py` |" in page
    assert "| C002 | writer | must | not yet (writing) |  |  |" in page
    assert "| for readers | 1 | 1 | 0 | 0 |" in page
    assert "A rule" not in page


# ----------------------------------------------------------------------------------------------------- run_tests
@pytest.mark.parametrize(
    ("line", "closes"),
    [
        ("867 passed in 0.81s", True),
        ("===== 1 failed, 182 passed, 3 skipped in 4.16s =====", True),
        ("12 deselected in 0.20s", True),
        ("0.81s call tests/x.py::test_y", False),
    ],
)
def test_closing_lines_are_recognised(line: str, closes: bool) -> None:
    assert bool(run_tests.CLOSING.match(line)) == closes


def test_unknown_stages_are_refused() -> None:
    assert run_tests.main(["no-such-stage"]) == 2


def stage(name: str) -> Any:
    return run_tests.Stage(name, "no-environment", ())


def says(program: str) -> Callable[[Any], list[str]]:
    """The command of a stage: a program that is told the name of the stage."""
    return lambda stage: [sys.executable, "-c", program, stage.name]


def test_stages_run_at_once_and_show_what_they_say_in_one_piece(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The first stages end only when all of them have begun.
    program = f"""import pathlib, sys
name, folder = sys.argv[1], pathlib.Path({str(tmp_path)!r})
(folder / name).touch()
print(name, "begins", flush=True)
while not all((folder / first).exists() for first in "abc"):
    pass
print("1 failed in 0.1s" if name == "b" else "1 passed in 0.1s")
sys.exit(name == "b")"""
    outcomes = run_tests.run_all([stage(name) for name in "abcd"], says(program))
    assert [(o.name, o.code, o.closing) for o in outcomes] == [
        ("a", 0, "1 passed in 0.1s"),
        ("b", 1, "1 failed in 0.1s"),
        ("c", 0, "1 passed in 0.1s"),
        ("d", 0, "1 passed in 0.1s"),
    ]
    shown = capsys.readouterr().out
    for name, closing in (("a", "1 passed"), ("b", "1 failed"), ("c", "1 passed")):
        assert f"--- {name}: no-environment, pytest \n{name} begins\n{closing}" in shown


def test_a_stage_without_tests_proves_nothing() -> None:
    (outcome,) = run_tests.run_all([stage("a")], says("print('9 deselected in 0.2s'); raise SystemExit(5)"))
    assert outcome.code == 5
    assert outcome.closing == "no test was selected, so the stage proves nothing (9 deselected in 0.2s)"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_all_processes_of_all_stages(tmp_path: Path, number: signal.Signals) -> None:
    """The stages have started processes of their own, which do not listen to the interrupt."""
    ids = tmp_path / "ids"
    stubborn = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); print(flush=True); signal.pause()"
    program = f"""import os, pathlib, signal, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {stubborn!r}], stdout=subprocess.PIPE)
child.stdout.readline()
ids = pathlib.Path({str(ids)!r})
with ids.open("a") as file:
    file.write(f"{{child.pid}}\\n")
while len(ids.read_text().splitlines()) < 2:
    pass
if sys.argv[1] == "b":
    os.kill(os.getppid(), {number})
signal.pause()"""
    main = f"""import pathlib, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background inherits that it is ignored
sys.path.insert(0, {str(SCRIPTS)!r})
import run_tests
run_tests.REPORTS = pathlib.Path({str(tmp_path / "reports")!r})
run_tests.STAGES = [run_tests.Stage(name, "no-environment", ()) for name in ("a", "b", "never")]
run_tests.AT_ONCE = 2
run_tests._pytest = lambda stage, extra: [sys.executable, "-c", {program!r}, stage.name]
sys.exit(run_tests.main([]))"""
    done = subprocess.run([sys.executable, "-c", main], capture_output=True, text=True, check=False)
    assert done.returncode == 130, done.stderr
    assert "Interrupted" in done.stderr
    started = [int(line) for line in ids.read_text().splitlines()]
    assert len(started) == 2
    assert not any(is_running(process) for process in started)
    assert "never runs" not in done.stdout


def is_running(process: int) -> bool:
    """Whether a process goes on. One that was killed closes its files a moment before it counts as ended."""
    try:
        descriptor = os.pidfd_open(process)
    except ProcessLookupError:
        return False
    try:
        ended, _, _ = select.select([descriptor], [], [], 5)
        return not ended
    finally:
        os.close(descriptor)


# ----------------------------------------------------------------------------------------------------- findings
def test_the_page_of_findings_is_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["findings.py", "--check"])
    assert findings.main() == 0


# ---------------------------------------------------------------------------------------------- interoperability
def test_the_page_of_peers_is_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["interoperability.py", "--check"])
    assert interoperability.main() == 0


def test_another_page_of_peers_is_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    page = tmp_path / "interoperability.md"
    page.write_text(interoperability.render().replace("refuses", "reads", 1))
    monkeypatch.setattr(interoperability, "PAGE", page)
    monkeypatch.setattr(sys, "argv", ["interoperability.py", "--check"])
    assert interoperability.main() == 1


# -------------------------------------------------------------------------------------------------- test_pythons
def test_a_python_that_is_not_there_is_named() -> None:
    command = [sys.executable, str(SCRIPTS / "test_pythons.py"), "--pyspark", "pyspark"]
    done = subprocess.run([*command, sys.executable, "no-such-python"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("No Python that can make environments: no-such-python. ")


def test_pythons_are_tested_and_the_others_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    releases = {"python3.11": "3.11", "python3.13": "3.13"}
    monkeypatch.setattr(pythons, "release_of", releases.get)
    monkeypatch.setattr(pythons, "ROOT", tmp_path)
    prepared = []
    monkeypatch.setattr(pythons, "_prepare", lambda folder, *_: prepared.append(folder.relative_to(tmp_path)))
    program = "import sys; print('1 passed in 0.1s'); sys.exit(sys.argv[1] == '3.13 smoke')"
    monkeypatch.setattr(pythons, "_pytest", lambda stage, extra: [sys.executable, "-c", program, stage.name, *extra])
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert pythons.main(["--pyspark", "pyspark"]) == 1
    finally:
        signal.signal(signal.SIGTERM, before)
    assert prepared == [Path(".cache/pythons/3.11"), Path(".cache/pythons/3.13")]
    *outcomes, failed, others = capsys.readouterr().out.splitlines()[-6:]
    names = [line.partition(":")[0].strip() for line in outcomes]
    assert names == ["3.11 core", "3.11 smoke", "3.13 core", "3.13 smoke"]
    assert others.endswith(": python3.12, python3.14")
    assert failed == "Failed: 3.13 smoke"
