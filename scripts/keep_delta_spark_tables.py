"""Makes tables and offsets of streams with delta-spark, and keeps them in the repository."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHON = ROOT / ".venv-4.2" / "bin" / "python"
JARS = ROOT / ".cache" / "jars"
sys.path.insert(0, str(ROOT))

from tests.interop.kept_tables import ARCHIVE, MAKER, MAKER_OF_OFFSETS, OFFSETS, keep, keep_offsets  # noqa: E402


def main() -> int:
    """Return 0 if every table could be made."""
    jars = sorted(JARS.glob("*.jar"))
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([str(PYTHON), str(MAKER), folder, *map(str, jars)], check=True)
        descriptions = [json.loads(path.read_text()) for path in Path(folder).glob("*.json")]
        failed = {found["name"]: found["error"] for found in descriptions if "error" in found}
        if failed or not descriptions:
            sys.stderr.write(f"Nothing is kept: {failed or 'no table was made'}\n")
            return 1
        keep(Path(folder), jars)
    sys.stdout.write(f"{ARCHIVE.relative_to(ROOT)}: {len(descriptions)} tables\n")
    with tempfile.TemporaryDirectory() as folder:
        offsets = Path(folder, "offsets.json")
        subprocess.run([str(PYTHON), str(MAKER_OF_OFFSETS), str(offsets), *map(str, jars)], check=True)
        keep_offsets(offsets, jars)
    sys.stdout.write(f"{OFFSETS.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
