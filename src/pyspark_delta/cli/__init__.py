"""The command `pyspark-delta`: look at tables and at the environment from a shell, without Spark."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; the process ends with 0, or with 1 after an error (2 for wrong usage)."""
    try:
        from pyspark_delta.cli.app import run
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich", "click"):
            raise
        print(f"The command line needs the package '{error.name}': pip install 'pyspark-delta[cli]'.", file=sys.stderr)
        sys.exit(1)
    sys.exit(run(sys.argv[1:]))
