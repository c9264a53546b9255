"""Print errors of tables and catalogs as one sentence on standard error, and exit with 1."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import ParamSpec

import typer

from pyspark_delta.cli.output import discard, print_problem, print_problem_json
from pyspark_delta.errors import DeltaError, SqlSyntaxError

P = ParamSpec("P")


def reporting(command: Callable[P, None]) -> Callable[P, None]:
    """Decorate a command: print a table's error as one sentence, or as JSON, on standard error, and exit with 1."""

    @functools.wraps(command)
    def reporting(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except DeltaError as error:
            if kwargs.get("as_json"):
                _print_error_json(error)
            else:
                print_problem(text_of_error(error))
            raise typer.Exit(1) from None
        except BrokenPipeError:
            discard(sys.stdout)

    return reporting


def text_of_error(error: DeltaError) -> str:
    """Return the sentence of an error; for a wrong syntax, the statement with a marker too."""
    shown = f"Error: {error.message}"
    return f"{shown}\n{error.sql}" if isinstance(error, SqlSyntaxError) else shown


def _print_error_json(error: DeltaError) -> None:
    """Print `{"type": error class, "message": sentence}` on standard error."""
    print_problem_json({"type": error.error_class, "message": error.message.encode(errors="replace").decode()})
