"""The command `pyspark-delta`: inspects tables and the environment from a shell, without Spark."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; the exit code is 0, or 1 after an error (2 for wrong usage)."""
    try:
        from pyspark_delta.cli.app import run
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich", "click"):
            raise
        print(f"The command line needs the package '{error.name}': pip install 'pyspark-delta[cli]'.", file=sys.stderr)
        sys.exit(1)
    sys.exit(run(sys.argv[1:]))
