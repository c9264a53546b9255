"""The command line: its commands, and how a run of it ends."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from typer.core import TyperGroup

from pyspark_delta._version import __version__
from pyspark_delta.cli import (
    checking,
    clustering,
    copying,
    definition,
    features,
    inspecting,
    inspection,
    maintenance,
    rearranging,
    rows,
    sql,
    streaming,
    upkeep,
    writing,
)
from pyspark_delta.cli.catalog import catalog_app
from pyspark_delta.cli.output import discard, prepare_streams, print_problem, print_text

app = typer.Typer(
    name="pyspark-delta",
    help="Look at Delta tables, create, change and maintain them, without Spark.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    cls=TyperGroup,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print_text(f"pyspark-delta {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


for _command in (
    inspection.info,
    inspection.schema,
    inspection.protocol,
    inspection.history,
    rows.files,
    inspection.log,
    rows.cat,
    rows.changes,
    streaming.follow,
    inspection.explain,
    inspecting.show,
    inspecting.diff,
    sql.sql,
    definition.create,
    writing.append,
    writing.delete,
    writing.update,
    writing.merge,
    definition.set_,
    definition.unset,
    features.drop_feature,
    maintenance.restore,
    maintenance.undo,
    maintenance.vacuum,
    upkeep.maintain,
    rearranging.optimize,
    rearranging.purge,
    clustering.clustering,
    copying.clone,
    copying.convert,
    copying.generate,
    copying.analyze,
    checking.check,
    checking.repair,
    checking.health,
    inspection.doctor,
):
    app.command(_command.__name__.rstrip("_").replace("_", "-"))(_command)
app.add_typer(catalog_app, name="catalog")
app.add_typer(streaming.stream_app, name="stream")


def run(arguments: list[str]) -> int:
    """Run one command and return the exit code."""
    prepare_streams()
    try:
        code = app(arguments or ["--help"], prog_name="pyspark-delta", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        discard(sys.stdout)
        return 0
    except OSError as error:  # errors of tables are DeltaErrors
        discard(sys.stdout)
        print_problem(f"Error: The output cannot be written: {error.strerror or error}.")
        return 1
    except KeyboardInterrupt:
        return 130
    except typer.Exit as end:
        return end.exit_code
    except typer.Abort:
        return 130
    except Exception as error:
        usage = getattr(error, "format_message", None)
        if usage is None:
            raise
        print_problem(f"Error: {usage().rstrip('.')}. See pyspark-delta --help.")
        return int(getattr(error, "exit_code", 2))
    return code if isinstance(code, int) else 0
