"""Fetches the peers that are not Python packages: delta-spark's JARs into .cache/jars, Azurite into .cache/azurite,
Unity Catalog's server into .cache/unity-catalog, Hadoop's minicluster into .cache/hadoop.

A peer whose tool is absent (Maven or Ivy, npm) or offline is left out with a message; the tests that need it are
skipped with that reason then.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
JARS = ROOT / ".cache" / "jars"
AZURITE = ROOT / ".cache" / "azurite"
AZURITE_PACKAGE = "azurite@3"
GROUP, ARTIFACT, VERSION = "io.delta", "delta-spark_4.2_2.13", "4.4.0"
# The releases for older releases of Spark, into .cache/jars-3.5 and so on.
OLDER = {
    "3.5": ("delta-spark_2.12", "3.3.2"),
    "4.0": ("delta-spark_2.13", "4.0.1"),
    "4.1": ("delta-spark_4.1_2.13", "4.4.0"),
}
GROUPS = "io.delta,io.unitycatalog"  # Spark brings all other dependencies
UNITY = ROOT / ".cache" / "unity-catalog"
UNITY_GROUP, UNITY_ARTIFACT, UNITY_VERSION = "io.unitycatalog", "unitycatalog-server", "0.6.0"
HADOOP = ROOT / ".cache" / "hadoop"
HADOOP_GROUP, HADOOP_ARTIFACT, HADOOP_VERSION = "org.apache.hadoop", "hadoop-client-minicluster", "3.5.0"
JUNIT = ("org.junit.jupiter", "junit-jupiter-api", "5.13.4")  # the minicluster calls it, and does not declare it
POM = """<project><modelVersion>4.0.0</modelVersion>
<groupId>peers</groupId><artifactId>peers</artifactId><version>1</version>
<dependencies>{}</dependencies></project>
"""
DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
TIMEOUT_SECONDS = 600


def main() -> int:
    """Fetch what is missing. Always succeeds: a missing peer is for the tests to report."""
    if not any(JARS.glob(f"{ARTIFACT}-{VERSION}.jar")):
        fetch_delta_spark()
    for release, (artifact, version) in OLDER.items():
        if not any((folder := ROOT / ".cache" / f"jars-{release}").glob(f"{artifact}-{version}.jar")):
            fetch_older_delta_spark(artifact, version, folder)
    if not (AZURITE / "node_modules" / ".bin" / "azurite-blob").exists():
        fetch_azurite()
    if not any(UNITY.glob(f"{UNITY_ARTIFACT}-{UNITY_VERSION}.jar")):
        fetch_unity_catalog()
    if not any(HADOOP.glob(f"{HADOOP_ARTIFACT}-{HADOOP_VERSION}.jar")):
        fetch_hadoop()
    return 0


def fetch_delta_spark() -> None:
    """Resolve delta-spark with Maven, or with the Ivy inside PySpark where there is no Maven."""
    JARS.mkdir(parents=True, exist_ok=True)
    if maven := shutil.which("mvn"):
        copy_jars(maven, "delta-spark", (GROUP, ARTIFACT, VERSION), JARS, [f"-DincludeGroupIds={GROUPS}"])
        return
    ivy = ROOT / ".cache" / "ivy"
    session = (
        "from pyspark.sql import SparkSession;"
        "SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false')"
        f".config('spark.jars.packages', '{GROUP}:{ARTIFACT}:{VERSION}').config('spark.jars.ivy', {str(ivy)!r})"
        ".getOrCreate().stop()"
    )
    if run("delta-spark", [sys.executable, "-c", session]):
        for group in GROUPS.split(","):
            for jar in ivy.glob(f"jars/{group}_*.jar"):
                shutil.copy(jar, JARS / jar.name.removeprefix(f"{group}_"))


def fetch_older_delta_spark(artifact: str, version: str, folder: Path) -> None:
    """Resolve a release of delta-spark with Maven."""
    shutil.rmtree(folder, ignore_errors=True)
    if maven := shutil.which("mvn"):
        copy_jars(maven, f"delta-spark {version}", (GROUP, artifact, version), folder, [f"-DincludeGroupIds={GROUPS}"])


def fetch_unity_catalog() -> None:
    """Resolve Unity Catalog's server, with all that it needs to run, with Maven."""
    maven = shutil.which("mvn")
    if maven is None:
        say("Unity Catalog is left out: there is no mvn on the PATH. Install Maven to test against its server.")
        return
    coordinates = (UNITY_GROUP, UNITY_ARTIFACT, UNITY_VERSION)
    shutil.rmtree(UNITY, ignore_errors=True)  # of another version, or not whole
    if not copy_jars(maven, "Unity Catalog", coordinates, UNITY, ["-DincludeScope=runtime"]):
        shutil.rmtree(UNITY, ignore_errors=True)


def fetch_hadoop() -> None:
    """Resolve Hadoop's minicluster, an HDFS in one process, with Maven."""
    maven = shutil.which("mvn")
    if maven is None:
        say("Hadoop is left out: there is no mvn on the PATH. Install Maven to test tables on HDFS.")
        return
    coordinates = (HADOOP_GROUP, HADOOP_ARTIFACT, HADOOP_VERSION)
    shutil.rmtree(HADOOP, ignore_errors=True)  # of another version, or not whole
    if not copy_jars(maven, "Hadoop", coordinates, HADOOP, ["-DincludeScope=runtime"], JUNIT):
        shutil.rmtree(HADOOP, ignore_errors=True)


def copy_jars(
    maven: str,
    peer: str,
    coordinates: tuple[str, str, str],
    target: Path,
    options: list[str],
    *more: tuple[str, str, str],
) -> bool:
    """Copy artifacts and what they depend on into a directory."""
    with tempfile.TemporaryDirectory() as folder:
        pom = Path(folder, "pom.xml")
        pom.write_text(POM.format("".join(DEPENDENCY.format(*one) for one in (coordinates, *more))))
        options = [*options, f"-DoutputDirectory={target}", "-Dmdep.useBaseVersion=true"]
        return run(peer, [maven, "--batch-mode", "--quiet", "--file", str(pom), COPY, *options])


def fetch_azurite() -> None:
    """Install Azurite with npm."""
    npm = shutil.which("npm")
    if npm is None:
        say("Azurite is left out: there is no npm on the PATH. Install Node.js to test Azure storage.")
        return
    AZURITE.mkdir(parents=True, exist_ok=True)
    run("Azurite", [npm, "install", "--silent", "--no-save", "--prefix", str(AZURITE), AZURITE_PACKAGE])


def run(peer: str, command: list[str]) -> bool:
    """Run a command; on failure say which peer is left out, and why."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        say(f"{peer} is left out: {command[0]} took more than {TIMEOUT_SECONDS} s.")
        return False
    if done.returncode != 0:
        lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        say(f"{peer} is left out: {command[0]} failed: {' / '.join(lines[-3:])[:500]}")
    return done.returncode == 0


def say(text: str) -> None:
    """Tell the user, on standard error."""
    sys.stderr.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
