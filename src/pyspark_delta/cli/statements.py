"""Statements that the command sql and its shell run, and how their results are printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_delta.cli.listing import View, print_listing
from pyspark_delta.cli.output import print_json_lines, print_text, terminal
from pyspark_delta.cli.rows import first_rows

if TYPE_CHECKING:
    import pyarrow as pa

    from pyspark_delta.interpreter.session import Session


def run_statements(text: str, session: Session, printer: Printer) -> None:
    """Run the statements of a text one after another, and print their results. Raises the error of the first one."""
    from pyspark_delta.interpreter.execute import execute
    from pyspark_delta.parser import split

    for statement in split(text):
        printer.print(execute(statement, session))


class Printer:
    """Prints results: rows as other commands do, JSON lines if asked; a statement without a result prints nothing."""

    def __init__(self, view: View, as_json: bool) -> None:
        self._view, self._as_json = view, as_json

    def print(self, result: pa.Table) -> None:
        """Print the rows of a result."""
        if not result.num_columns:
            if terminal() is not None and not self._as_json:
                print_text("Done.")
            return
        if self._as_json:
            print_json_lines(first_rows(result.to_batches(), self._view.limit))
            return
        rows = (list(row.values()) for row in first_rows(result.to_batches(), self._view.needed))
        print_listing(result.schema.names, rows, self._view, remedy="--vertical", total=lambda: result.num_rows)
