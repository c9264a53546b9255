"""How results are printed: rich tables on a terminal, tab-separated plain text in a pipe, JSON on request."""

from __future__ import annotations

import base64
import io
import math
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def prepare_streams() -> None:
    """Let text that the terminal's encoding cannot show, or that never was UTF-8, be printed escaped."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def print_json(value: Any) -> None:
    """One JSON document, indented."""
    print(_dump(value, orjson.OPT_INDENT_2))


def print_json_lines(rows: Iterable[Any]) -> None:
    """One JSON document a line."""
    for row in rows:
        print(_dump(row, 0))


def print_facts(facts: Mapping[str, Any]) -> None:
    """Names and values, one pair a line."""
    console = _console()
    if console is None:
        for name, value in facts.items():
            print(f"{name}\t{cell(value)}")
        return
    table = RichTable(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(Text(name), Text(cell(value)))
    console.print(table)


def print_rows(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table with a header line. In a pipe rows are printed as they come."""
    console = _console()
    if console is None:
        print("\t".join(cell(name) for name in names))
        for row in rows:
            print("\t".join(cell(value) for value in row))
        return
    table = RichTable(header_style="bold", pad_edge=False)
    for name in names:
        table.add_column(Text(name), overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell(value)) for value in row))
    console.print(table)


def print_text(text: str) -> None:
    """Text as it is."""
    print(text)


def cell(value: Any) -> str:
    """One value on one line; tabs and line ends are escaped, NULL is empty."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value.translate(_ESCAPES)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime | date):
        return value.isoformat(*([" "] if isinstance(value, datetime) else []))
    if isinstance(value, list | tuple | dict | bytes):
        plain = jsonable(value)
        return plain if isinstance(plain, str) else _dump(plain, 0)
    return str(value)


def jsonable(value: Any) -> Any:
    """The value in JSON's types: bytes as base64, decimals as text, times in ISO 8601, NaN and infinity as text."""
    if isinstance(value, Mapping):
        return {_key(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [jsonable(item) for item in (sorted(value) if isinstance(value, set | frozenset) else value)]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, timedelta):
        return str(value)
    return value


def _key(key: Any) -> str:
    plain = jsonable(key)
    return plain if isinstance(plain, str) else _dump(plain, 0)


def _dump(value: Any, option: int) -> str:
    return orjson.dumps(jsonable(value), option=option, default=str).decode("utf-8")


def _console() -> Console | None:
    """The terminal, or None where output goes to a file or a pipe, or to a terminal without abilities."""
    if not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        return None
    return Console(highlight=False)
