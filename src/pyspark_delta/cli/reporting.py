"""Errors of tables and catalogs, as a shell wants them: one sentence on standard error, and the exit code 1."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import ParamSpec

import orjson
import typer

from pyspark_delta.errors import DeltaError

P = ParamSpec("P")


def reporting(command: Callable[P, None]) -> Callable[P, None]:
    """Print an error of the table as one sentence, or as JSON, on standard error, and exit with 1."""

    @functools.wraps(command)
    def reporting(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except DeltaError as error:
            if kwargs.get("as_json"):
                _print_error_json(error)
            else:
                print(f"Error: {error.message}", file=sys.stderr)
            raise typer.Exit(1) from None
        except BrokenPipeError:
            abandon_output()

    return reporting


def abandon_output() -> None:
    """The reader of a pipe went away (head, less), which is no error; what is still buffered goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_error_json(error: DeltaError) -> None:
    """`{"type": error class, "message": sentence}` on standard error."""
    line = orjson.dumps({"type": error.error_class, "message": error.message.encode(errors="replace").decode()})
    print(line.decode(), file=sys.stderr)
