"""Find what another installation left behind: settings and JARs of delta-spark, and a Spark that is not PySpark's own.

Settings that name classes of delta-spark make Spark fail where its JAR is missing. Where the JAR is present, both
packages work, and one of them answers to `format("delta")`.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from pyspark_delta.cli.doctor.check import Check
from pyspark_delta.cli.doctor.requirements import version_of

_OF_DELTA_SPARK = re.compile(r"io\.delta[.:]|org\.apache\.spark\.sql\.delta\.|\bdelta-(?:spark|core)_")
_SUBMIT = "PYSPARK_SUBMIT_ARGS"


def check_leftovers() -> Iterator[Check]:
    """Check settings, JARs and packages; one finding each, or a single good one."""
    homes = _homes()
    jars = [jar for home in homes for jar in sorted((home / "jars").glob("delta-*.jar"))]
    found = [*_check_home(), *_check_settings(homes, has_jar=bool(jars)), *_check_jars(jars), *_check_package()]
    yield from found or [Check("settings of delta-spark", "ok", "none")]


def _check_home() -> Iterator[Check]:
    """SPARK_HOME makes PySpark start the Spark in that folder, which must have PySpark's version."""
    home, version = os.environ.get("SPARK_HOME"), version_of("pyspark")
    if not home or version is None:
        return
    remedy = "unset SPARK_HOME, or install the PySpark of its version"
    cores = sorted(Path(home, "jars").glob("spark-core_*.jar"))
    if not cores:
        yield Check("SPARK_HOME", "failed", f"{home} has no jars/spark-core_*.jar", remedy)
    elif version not in cores[0].name:
        yield Check("SPARK_HOME", "failed", f"{home} has {cores[0].name}, and PySpark is {version}", remedy)


def _check_settings(homes: list[Path], *, has_jar: bool) -> Iterator[Check]:
    for file in _default_files(homes):
        for number, line in enumerate(_lines(file), start=1):
            if _OF_DELTA_SPARK.search(line) and not line.lstrip().startswith("#"):
                yield _setting(f"{file}:{number}", " ".join(line.split()), "remove this line", has_jar)
    arguments = os.environ.get(_SUBMIT, "")
    if _OF_DELTA_SPARK.search(arguments):
        yield _setting(_SUBMIT, arguments, "remove what names delta-spark", has_jar)


def _setting(where: str, text: str, remedy: str, has_jar: bool) -> Check:
    """A setting fails without the JAR, unless it is one that fetches the JAR."""
    fetches = "packages" in text or ".jar" in text
    why = "pyspark-delta needs neither delta-spark's settings nor its JAR"
    return Check(where, "warning" if has_jar or fetches else "failed", text, f"{remedy}: {why}")


def _check_jars(jars: list[Path]) -> Iterator[Check]:
    for jar in jars:
        yield Check(
            "JAR of delta-spark",
            "warning",
            str(jar),
            'remove it if you do not use delta-spark; without `enable`, use format("deltapy")',
        )


def _check_package() -> Iterator[Check]:
    version = version_of("delta-spark")
    if version is not None:
        yield Check(
            "delta-spark",
            "warning",
            f"{version} is installed, so `import delta` is its module",
            "pip uninstall delta-spark, if you do not use it",
        )


def _homes() -> list[Path]:
    """The folders of Spark: SPARK_HOME, and that of PySpark."""
    homes = [Path(os.environ["SPARK_HOME"])] if os.environ.get("SPARK_HOME") else []
    with contextlib.suppress(metadata.PackageNotFoundError):
        homes.append(Path(str(metadata.distribution("pyspark").locate_file("pyspark"))))
    return list(dict.fromkeys(homes))


def _default_files(homes: list[Path]) -> list[Path]:
    """The file of default settings that Spark reads: in SPARK_CONF_DIR, otherwise in the folder conf of Spark."""
    folder = os.environ.get("SPARK_CONF_DIR")
    folders = [Path(folder)] if folder else [home / "conf" for home in homes[:1]]
    return [file for file in (folder / "spark-defaults.conf" for folder in folders) if file.is_file()]


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
