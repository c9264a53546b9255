"""What delta-spark made and the repository keeps: to make it takes minutes, and it comes out the same.

`delta_spark_tables.tar.xz` is what `delta_spark_tables.py` left, of all tables but those of which each run makes new
ones. `delta_spark_offsets.json` has the offsets of its streams. Each says which program and which JAR files made it;
`make peer-tables` writes them again.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ARCHIVE = Path(__file__).with_name("delta_spark_tables.tar.xz")
MAKER = Path(__file__).with_name("delta_spark_tables.py")
NEVER_KEPT = ("shallow_clone",)  # it names files of another table by their absolute paths
ORIGIN = "origin.json"
OFFSETS = Path(__file__).with_name("delta_spark_offsets.json")
MAKER_OF_OFFSETS = Path(__file__).with_name("delta_spark_offsets.py")


def origin(jars: Iterable[Path], maker: Path = MAKER) -> dict[str, Any]:
    """What they are made of: the program's digest, and the names of delta-spark's JAR files."""
    return {"program": hashlib.sha256(maker.read_bytes()).hexdigest(), "jars": sorted(jar.name for jar in jars)}


def keep(folder: Path, jars: Iterable[Path]) -> None:
    """Write the archive from the folder in which all tables were made."""
    with tarfile.open(ARCHIVE, "w:xz", format=tarfile.PAX_FORMAT) as archive:
        content = json.dumps(origin(jars)).encode()
        head = tarfile.TarInfo(ORIGIN)
        head.size = len(content)
        archive.addfile(head, io.BytesIO(content))
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.relative_to(folder).parts[0].startswith(NEVER_KEPT):
                archive.addfile(_entry(path, folder), io.BytesIO(path.read_bytes()))


def unpack(folder: Path) -> dict[str, Any]:
    """Write the tables below a folder; what they were made of."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    made_of: dict[str, Any] = json.loads((folder / ORIGIN).read_text())
    return made_of


def keep_offsets(made: Path, jars: Iterable[Path]) -> None:
    """Keep the offsets that the program left."""
    content = {"made_of": origin(jars, MAKER_OF_OFFSETS), "streams": json.loads(made.read_text())}
    OFFSETS.write_text(json.dumps(content, indent=1) + "\n")


def _entry(path: Path, folder: Path) -> tarfile.TarInfo:
    entry, status = tarfile.TarInfo(path.relative_to(folder).as_posix()), path.stat()
    entry.size = status.st_size
    # The times of commit files are those of the commits, in whole milliseconds: whatever a copy rounds, they stay.
    entry.mtime = (status.st_mtime_ns // 1_000_000 + 0.5) / 1000
    return entry
