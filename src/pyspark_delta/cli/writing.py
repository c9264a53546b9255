"""The commands that change rows: append, delete, update, merge. Each makes one commit, or prints its plan."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from pyspark_delta.cli.clauses import parse_assignments, parse_clause
from pyspark_delta.cli.options import JsonOption, PathArgument, StorageOption, open_table
from pyspark_delta.cli.outcome import print_plan, print_result
from pyspark_delta.cli.reporting import reporting
from pyspark_delta.cli.sources import DataFiles, Format

PlanOption = Annotated[bool, typer.Option("--plan", help="Print what would be done, and change nothing.")]
TxnOption = Annotated[
    str | None,
    typer.Option("--txn", metavar="APP:N", help="An application and the number of its write, which is done only once."),
]
UserMetadataOption = Annotated[
    str | None, typer.Option("--user-metadata", metavar="TEXT", help="A text that is kept with the commit.")
]
FormatOption = Annotated[Format | None, typer.Option("--format", help="The format of the files; default: by suffix.")]
DelimiterOption = Annotated[
    str, typer.Option("--delimiter", metavar="CHAR", help="The character between the fields of CSV.")
]
EvolveOption = Annotated[bool, typer.Option("--merge-schema", help="Add columns that the table lacks.")]


class Mode(StrEnum):
    """What happens to the rows that a table has."""

    APPEND = "append"
    OVERWRITE = "overwrite"


@reporting
def append(
    path: PathArgument,
    file: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="Files of Parquet, CSV, JSON lines or Arrow IPC; - is standard input."),
    ],
    file_format: FormatOption = None,
    delimiter: DelimiterOption = ",",
    mode: Annotated[Mode, typer.Option("--mode", help="Keep the rows of the table, or replace them.")] = Mode.APPEND,
    where: Annotated[
        str | None, typer.Option("--where", metavar="SQL", help="With --mode overwrite: replace only these rows.")
    ] = None,
    merge_schema: EvolveOption = False,
    txn: TxnOption = None,
    user_metadata: UserMetadataOption = None,
    plan: PlanOption = False,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add the rows of files, in one commit.

    Files are streamed. Columns are matched by name; CSV has them in its first line. Values of CSV and JSON take the
    types of the table's columns, and times without a zone are in UTC. An empty field of CSV is null, and an empty text
    is "". If a value does not fit, nothing is written. --mode overwrite replaces the rows of the table.
    """
    if where is not None and mode is Mode.APPEND:
        raise typer.BadParameter("it needs --mode overwrite.", param_hint="--where")
    given = _given(txn, user_metadata)
    table = open_table(path, option=option)
    rows = DataFiles(file, table.schema, file_format, delimiter, adds_columns=merge_schema).batches()
    changing: Any = table.append
    if mode is Mode.OVERWRITE:
        changing, given["where"] = table.overwrite, where
    _finish(changing(rows, merge_schema=merge_schema, plan=plan, **given), plan, as_json)


@reporting
def delete(
    path: PathArgument,
    where: Annotated[
        str | None, typer.Option("--where", metavar="SQL", help="Delete the rows for which this is true.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Delete all rows.")] = False,
    txn: TxnOption = None,
    user_metadata: UserMetadataOption = None,
    plan: PlanOption = False,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete the rows that meet a condition, or all rows."""
    if (where is None) != every:
        raise typer.BadParameter("give either --where or --all.", param_hint="--where")
    table: Any = open_table(path, option=option)
    _finish(table.delete(where, plan=plan, **_given(txn, user_metadata)), plan, as_json)


@reporting
def update(
    path: PathArgument,
    assignments: Annotated[
        list[str], typer.Option("--set", metavar="COLUMN=SQL", help="The new value of a column; repeatable.")
    ],
    where: Annotated[
        str | None, typer.Option("--where", metavar="SQL", help="Update the rows for which this is true.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Update all rows.")] = False,
    txn: TxnOption = None,
    user_metadata: UserMetadataOption = None,
    plan: PlanOption = False,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give rows new values.

    Values are SQL: a text is in single quotes, as in --set "state = 'paid'".
    """
    if (where is None) != every:
        raise typer.BadParameter("give either --where or --all.", param_hint="--where")
    values = parse_assignments(", ".join(assignments), "--set")
    table: Any = open_table(path, option=option)
    _finish(table.update(values, where, plan=plan, **_given(txn, user_metadata)), plan, as_json)


@reporting
def merge(
    path: PathArgument,
    file: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="Files of Parquet, CSV, JSON lines or Arrow IPC; - is standard input."),
    ],
    on: Annotated[str, typer.Option("--on", metavar="SQL", help="Which rows match, such as 't.id = s.id'.")],
    matched: Annotated[
        list[str] | None,
        typer.Option("--when-matched", metavar="CLAUSE", help="'update ...' or 'delete'; repeatable."),
    ] = None,
    not_matched: Annotated[
        list[str] | None, typer.Option("--when-not-matched", metavar="CLAUSE", help="'insert ...'; repeatable.")
    ] = None,
    by_source: Annotated[
        list[str] | None,
        typer.Option("--when-not-matched-by-source", metavar="CLAUSE", help="'update ...' or 'delete'; repeatable."),
    ] = None,
    file_format: FormatOption = None,
    delimiter: DelimiterOption = ",",
    merge_schema: EvolveOption = False,
    txn: TxnOption = None,
    user_metadata: UserMetadataOption = None,
    plan: PlanOption = False,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Merge the rows of files into the table, in one commit.

    In conditions and values, t is the table and s are the rows of the files. A clause is 'delete', 'update *',
    'update a = s.a, b = t.b + 1', 'insert *' or 'insert a = s.a'; * is all columns, by name. A condition may follow, as
    in 'delete where s.state = 1'. A row takes the first clause of its kind whose condition is true.
    """
    clauses = [
        *(("matched", parse_clause(text, "--when-matched", ("update", "delete"))) for text in matched or ()),
        *(("not_matched", parse_clause(text, "--when-not-matched", ("insert",))) for text in not_matched or ()),
        *(
            ("not_matched_by_source", parse_clause(text, "--when-not-matched-by-source", ("update", "delete")))
            for text in by_source or ()
        ),
    ]
    if not clauses:
        raise typer.BadParameter("give at least one clause, such as --when-matched 'update *'.")
    given = _given(txn, user_metadata)
    table = open_table(path, option=option)
    rows = DataFiles(file, table.schema, file_format, delimiter, adds_columns=merge_schema).batches()
    merging: Any = table.merge(rows, on, source_alias="s", target_alias="t", merge_schema=merge_schema, **given)
    for kind, clause in clauses:
        name = f"when_{kind}_{clause.action}"
        if clause.action == "delete":
            merging = getattr(merging, name)(clause.condition)
        elif clause.values:
            merging = getattr(merging, name)(clause.values, clause.condition)
        elif kind == "not_matched_by_source":
            raise typer.BadParameter(
                "'update *' has no values here, because no row of the files matches; name the columns.",
                param_hint="--when-not-matched-by-source",
            )
        else:
            merging = getattr(merging, f"{name}_all")(clause.condition)
    _finish(merging.plan() if plan else merging.execute(), plan, as_json)


def _given(txn: str | None, user_metadata: str | None) -> dict[str, Any]:
    """Return the arguments that every change takes. Raises typer.BadParameter."""
    application, _, number = (txn or "").rpartition(":")
    if txn is not None and (not application or not number.isdecimal()):
        raise typer.BadParameter(f"'{txn}' is not of the form APP:N, such as nightly:17.", param_hint="--txn")
    return {"txn": None if txn is None else (application, int(number)), "commit_info": user_metadata}


def _finish(done: Any, planned: bool, as_json: bool) -> None:
    if planned:
        print_plan(done, as_json)
    else:
        print_result(done, as_json)
