"""What doctor finds, and what it says to do."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pyspark_delta.cli.app import run
from pyspark_delta.cli.doctor import Check, examine, requirements
from pyspark_delta.cli.doctor.machine import java_major
from pyspark_delta.cli.doctor.requirements import Requirement, parse_version, requirements_of
from pyspark_delta.cli.doctor.store import check_store
from pyspark_delta.cli.doctor.workers import judge
from pyspark_delta.storage import intercepted
from pyspark_delta.storage.local import LocalStore


def failed(checks: list[Check]) -> dict[str, Check]:
    """The failures by name."""
    return {check.name: check for check in checks if check.status == "failed"}


@pytest.mark.parametrize(
    ("text", "version"),
    [("4.3.0", (4, 3, 0)), ("4.3.0.dev1", (4, 3, 0)), ("26", (26,)), ("1.2rc1", (1, 2)), ("unknown", ())],
)
def test_versions_are_compared_by_their_numbers(text: str, version: tuple[int, ...]) -> None:
    assert parse_version(text) == version


@pytest.mark.parametrize(
    ("text", "major"),
    [
        ('openjdk version "17.0.9" 2023-10-17', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "25-ea" 2025', 25),
        ("no java here", None),
    ],
)
def test_the_major_version_of_java(text: str, major: int | None) -> None:
    assert java_major(text) == major


def java_home(path: Path, says: str) -> Path:
    """A JAVA_HOME whose java answers with that text."""
    java = path / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    return path


def test_an_old_java_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java_home(tmp_path, 'openjdk version "11.0.2"')))
    found = failed(list(examine(spark=False)))
    assert found["Java"].found.startswith("11 ")
    assert "Java 17" in found["Java"].remedy


def test_a_java_home_without_java_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert str(tmp_path) in failed(list(examine(spark=False)))["Java"].found


def test_the_spark_job_is_not_tried_without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert "not run" in failed(list(examine()))["Spark job"].found


def test_every_failure_has_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements.metadata, "version", lambda name: "0.1")
    found = failed(list(examine(spark=False)))
    assert set(found) >= {
        "pyarrow",
        "numpy",
        "orjson",
        "pyroaring",
        "sqlglot",
        "pyspark",
        "pyspark-delta",
        "extra cloud",
    }
    assert all(check.remedy for check in found.values())
    assert "is needed" in found["pyarrow"].found


def test_requirements_are_those_of_the_project_file() -> None:
    """What doctor asks for is what pyproject.toml declares; the metadata is that of the last installation."""
    (pandas,) = [found for found in requirements_of("pyspark-delta", "spark") if found.name == "pandas"]
    assert pandas == Requirement("pandas", (), ((">=", "2.2"), ("<", "3")), "spark")
    assert pandas.admits("2.2.3")
    assert not pandas.admits("3.0")
    assert not pandas.admits("2.1.9")
    (psycopg,) = [found for found in requirements_of("pyspark-delta", "postgresql") if found.extras]
    assert psycopg.extras == ("binary",)
    assert requirements_of("no-such-distribution") == []


def test_a_missing_pyspark_is_told_with_the_command() -> None:
    """In an environment where pyspark is not installed, doctor still runs, as a module too, and exits with 1."""
    code = (
        "import sys, runpy\n"
        "import pyspark_delta.cli.doctor.requirements as d\n"
        "real = d.metadata.version\n"
        "def version(name):\n"
        "    if name == 'pyspark':\n"
        "        raise d.metadata.PackageNotFoundError(name)\n"
        "    return real(name)\n"
        "d.metadata.version = version\n"
        "sys.modules['pyspark'] = None\n"
        "sys.argv = ['pyspark-delta', 'doctor', '--json']\n"
        "runpy.run_module('pyspark_delta', run_name='__main__')\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 1, done.stderr
    checks = {check["name"]: check for check in json.loads(done.stdout)}
    assert checks["pyspark"]["status"] == "failed"
    assert checks["pyspark"]["remedy"] == "pip install --upgrade 'pyspark-delta[spark]'"
    assert checks["extra connect"]["status"] == "optional"


def test_a_package_that_cannot_be_imported_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "obstore.py").write_text("raise ImportError('libssl.so.1.1: cannot open shared object file')")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.partition(".")[0] == "obstore"]:
        monkeypatch.delitem(sys.modules, name)
    assert "libssl" in failed(list(examine(spark=False)))["extra cloud"].found


# ---------------------------------------------------------------------------------------------------- environment
@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"PYSPARK_PYTHON": "{new}"}, {"PYSPARK_PYTHON": "3.99.1"}),
        ({"PYSPARK_PYTHON": "/no/python"}, {"PYSPARK_PYTHON": "does not run"}),
        ({"PYSPARK_PYTHON": "{same}", "PYSPARK_DRIVER_PYTHON": "{new}"}, {"PYSPARK_DRIVER_PYTHON": "3.99.1"}),
        ({"PYSPARK_PYTHON": "{same}"}, {}),
    ],
)
def test_pythons_of_driver_and_workers_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], says: dict[str, str]
) -> None:
    new = tmp_path / "python"
    new.write_text("#!/bin/sh\necho 3.99.1\n")
    new.chmod(new.stat().st_mode | stat.S_IXUSR)
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(new=new, same=sys.executable))
    found = {name: check for name, check in failed(list(examine(spark=False))).items() if name.startswith("PYSPARK_")}
    assert found.keys() == says.keys()
    assert all(text in found[name].found for name, text in says.items())


LEFT_SETTING = "spark.sql.extensions io.delta.sql.DeltaSparkSessionExtension"


def leftovers() -> list[Check]:
    """What doctor says about settings and JARs of another installation."""
    names = ("spark-defaults.conf", "SUBMIT_ARGS", "JAR of", "SPARK_HOME", "settings of")
    return [check for check in examine(spark=False) if any(name in check.name for name in names)]


def test_settings_of_delta_spark_without_its_jar_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spark-defaults.conf").write_text(f"# {LEFT_SETTING}\nspark.ui.enabled false\n{LEFT_SETTING}\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--packages io.delta:delta-spark_4.2_2.13:4.4.0 pyspark-shell")
    file, arguments = leftovers()
    assert (file.status, file.name, file.found) == ("failed", f"{tmp_path}/spark-defaults.conf:3", LEFT_SETTING)
    assert (arguments.status, arguments.name) == ("warning", "PYSPARK_SUBMIT_ARGS")


def test_a_spark_home_of_another_version_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.13-4.0.1.jar").touch()
    (tmp_path / "jars" / "delta-spark_2.13-4.0.0.jar").touch()
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text(LEFT_SETTING)
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    home, setting, jar = leftovers()
    assert home.status == "failed"
    assert "spark-core_2.13-4.0.1.jar" in home.found
    assert setting.status == "warning", "the JAR is present"
    assert (jar.status, jar.found) == ("warning", f"{tmp_path}/jars/delta-spark_2.13-4.0.0.jar")


def test_nothing_left_is_one_good_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS"):
        monkeypatch.delenv(name, raising=False)
    assert [(check.status, check.found) for check in leftovers()] == [("ok", "none")]


# ---------------------------------------------------------------------------------------------------------- stores
class Replacing(LocalStore):
    """A store whose conditional write replaces a file."""

    def write_if_absent(self, path: str, data: bytes) -> None:
        self.write(path, data)


class Late(LocalStore):
    """A store whose clock is ten minutes behind."""

    def status(self, path: str) -> Any:
        found = super().status(path)
        return found._replace(modification_time=found.modification_time - 600_000)


def test_a_store_is_left_as_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--no-session", "--json", "--store", str(tmp_path)]) == 0
    checks = [check for check in json.loads(capsys.readouterr().out) if check["name"].startswith("store")]
    assert [check["status"] for check in checks] == ["ok"] * 5
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("store", "name", "says"),
    [(Replacing(), "store: conditional write", "replaced"), (Late(), "store: clock", "600 s")],
)
def test_a_store_that_is_not_fit_fails(tmp_path: Path, store: LocalStore, name: str, says: str) -> None:
    with intercepted(lambda _: store):
        found = failed(list(check_store(str(tmp_path), {})))
    assert list(found) == [name]
    assert says in found[name].found
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_fails(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (check,) = check_store(f"{tmp_path}/file", {})
    assert (check.name, check.status) == ("store: write", "failed")
    (check,) = check_store("gopher://place", {})
    assert (check.name, check.status) == ("store", "failed")


# ------------------------------------------------------------------------------------------------- the Spark job
DRIVER = {"python": "3.11.7", "host": "a", "pyspark": "4.3.0", "pyarrow": "26.0.1", "pyspark_delta": "0.1.0"}


def report(worker: dict[str, Any], **others: Any) -> dict[str, Any]:
    """What the probe says with one worker."""
    return {"driver": DRIVER, "workers": [{**DRIVER, **worker}], "source": "delta", "error": None, **others}


def test_a_healthy_cluster_has_no_failure() -> None:
    assert failed(list(judge(report({})))) == {}


@pytest.mark.parametrize(
    ("worker", "name", "says"),
    [
        ({"python": "3.12.1"}, "worker on a: Python", "PYSPARK_PYTHON"),
        ({"pyarrow": None}, "worker on a: pyarrow", "pip install pyarrow"),
        ({"pyarrow": "18.0.0"}, "worker on a: pyarrow", "same version"),
        ({"pyspark_delta": None}, "worker on a: pyspark_delta", "pip install pyspark-delta"),
    ],
)
def test_a_worker_that_differs_fails(worker: dict[str, Any], name: str, says: str) -> None:
    assert says in failed(list(judge(report(worker))))[name].remedy


def test_a_job_that_fails_is_told_in_its_own_words() -> None:
    given = {**report({}, error="ModuleNotFoundError: No module named 'pyarrow'", source=None), "workers": []}
    found = failed(list(judge(given)))
    assert list(found) == ["Spark job"]
    assert "pyarrow" in found["Spark job"].found


def test_a_small_table_that_cannot_be_written_fails() -> None:
    found = failed(list(judge(report({}, table=None, table_error="No space left on device"))))
    assert found["small table"].found == "No space left on device"


def test_a_source_that_spark_does_not_find_fails() -> None:
    given = report({}, source=None, source_error="DATA_SOURCE_NOT_FOUND: delta")
    assert "DATA_SOURCE_NOT_FOUND" in failed(list(judge(given)))["format('delta')"].found
