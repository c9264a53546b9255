"""A file system of Hadoop of the tests' own: one NameNode and one DataNode, as a process, started once where needed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

JARS = Path(os.environ.get("PYSPARK_DELTA_HADOOP_JARS") or Path(__file__).parents[2] / ".cache" / "hadoop")
START_SECONDS = 120
# A client waits this long for the NameNode to hear of a new block, by default 400 ms for every file.
SETTINGS = {"dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "2"}


@pytest.fixture(scope="session")
def hdfs_root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URI of a new file system."""
    java = shutil.which("java")
    if java is None or not any(JARS.glob("hadoop-client-minicluster-*.jar")):
        pytest.skip("Hadoop's minicluster is not set up; `make test` does it where Maven has it")
    folder = tmp_path_factory.mktemp("hdfs")
    details = folder / "details.json"
    command = [java, "-Xmx384m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", f"-Dtest.build.data={folder}/data"]
    command += ["-cp", f"{JARS}/*", "org.apache.hadoop.test.MiniDFSClusterManager"]
    command += ["-format", "-datanodes", "1", "-writeDetails", str(details)]
    log = folder / "output"
    with log.open("wb") as output:
        cluster = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        end = time.monotonic() + START_SECONDS
        while not details.exists() or not details.stat().st_size:
            assert cluster.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.1)
        port = json.loads(details.read_text())["namenode_port"]
        yield f"hdfs://localhost:{port}"
    finally:
        cluster.kill()
        cluster.wait()


@pytest.fixture
def hdfs_path(hdfs_root: str) -> str:
    """A directory that does not exist yet."""
    return f"{hdfs_root}/{uuid.uuid4().hex}"


@pytest.fixture
def upload(hdfs_path: str) -> Callable[[Path], str]:
    """Copies a local directory to the file system, with the store, and gives its location."""
    from pyspark_delta.storage import store_for

    def copy(folder: Path) -> str:
        store, target = store_for(hdfs_path, SETTINGS), f"{hdfs_path}/{folder.name}"
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                store.write(f"{target}/{path.relative_to(folder).as_posix()}", path.read_bytes())
        return target

    return copy
