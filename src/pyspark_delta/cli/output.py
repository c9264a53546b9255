"""Print results: rich tables on a terminal, tab-separated plain text in a pipe, JSON on request.

Data, names and errors may hold control characters, which a terminal obeys: one sequence writes the clipboard. All
printed text passes through `visible`, and all JSON through `_dump`.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import math
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TextIO

import orjson
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from pyspark_delta.errors import InvalidOperationError

if TYPE_CHECKING:
    import pyarrow as pa

_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
# C1 controls, and characters that change the direction or the lines of a text.
_HIDDEN = "\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069"
_IN_TEXT = re.compile(rf"[\x00-\x08\x0b-\x1f{_HIDDEN}]")
_IN_JSON = re.compile(f"[{_HIDDEN}]")  # orjson escapes the characters below the space
_NOT_ASCII = re.compile(r"[^\x00-\x7e]")


def prepare_streams() -> None:
    """Print escapes for text that the terminal's encoding cannot show, or that is not valid UTF-8.

    Output to a stream that was closed before the start is discarded.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - for as long as the process
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def print_json(value: Any) -> None:
    """Print one JSON document, indented."""
    print(_dump(value, orjson.OPT_INDENT_2))


def print_json_lines(rows: Iterable[Any]) -> None:
    """Print one JSON document a line."""
    for row in rows:
        print(_dump(row, 0))


def print_facts(facts: Mapping[str, Any]) -> None:
    """Print names and values, one pair a line. On a terminal each item of a list has its own line."""
    console = terminal()
    if console is None:
        for name, value in facts.items():
            text = ", ".join(map(cell, value)) if isinstance(value, list) else cell(value)
            print(f"{cell(name)}\t{text}")
        return
    table = RichTable(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in facts.items():
        items = value if isinstance(value, list) else [value]
        table.add_row(Text(cell(name)), Text("\n".join(map(cell, items))))
    console.print(table)


def print_rows(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table with a header line. A pipe gets rows as they arrive; a terminal folds long cells."""
    console = terminal()
    if console is None:
        print("\t".join(cell(name) for name in names))
        for row in rows:
            print("\t".join(cell(value) for value in row))
        return
    table = RichTable(header_style="bold", box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in names:
        table.add_column(Text(cell(name)), overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell(value)) for value in row))
    console.print(table)


def print_text(text: str) -> None:
    """Print text of several lines."""
    print(visible(text))


def print_problem(text: str) -> None:
    """Print a line on standard error; it is lost if standard error cannot be written."""
    _complain(visible(text))


def print_problem_json(value: Mapping[str, str]) -> None:
    """Print a JSON document on one line of standard error; it is lost if standard error cannot be written."""
    _complain(_dump(value, 0, sys.stderr.encoding))


def discard(stream: TextIO) -> None:
    """Discard buffered and later output: the reader has closed the pipe, or the disk is full."""
    with contextlib.suppress(OSError, ValueError):  # a replacement of the stream may have no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _complain(line: str) -> None:
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        discard(sys.stderr)


def visible(text: str) -> str:
    """Return the text with control characters and direction marks escaped, except tabs and line ends."""
    return _IN_TEXT.sub(lambda found: _escaped(found[0]), text)


def rows_of(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return the rows of a batch. If a date or time is outside of Python's years (1 to 9999), all become strings."""
    rows: list[dict[str, Any]]
    try:
        rows = batch.to_pylist(maps_as_pydicts="lossy")
    except (ValueError, OverflowError):
        texts = [column.cast(_without_times(column.type)) for column in batch.columns]
        rows = type(batch).from_arrays(texts, names=batch.schema.names).to_pylist(maps_as_pydicts="lossy")
    return rows


def _without_times(arrow_type: pa.DataType) -> pa.DataType:
    """Return the type with strings instead of dates and times."""
    import pyarrow as pa  # imported late: --help starts fast, and doctor works without it

    if pa.types.is_date(arrow_type) or pa.types.is_timestamp(arrow_type):
        return pa.string()
    if pa.types.is_struct(arrow_type):
        return pa.struct([f.with_type(_without_times(f.type)) for f in arrow_type])
    if pa.types.is_map(arrow_type):
        return pa.map_(_without_times(arrow_type.key_type), _without_times(arrow_type.item_type))
    if pa.types.is_list(arrow_type):
        return pa.list_(arrow_type.value_field.with_type(_without_times(arrow_type.value_type)))
    return arrow_type


def cell(value: Any) -> str:
    """Return one value on one line; tabs and line ends are escaped, NULL is empty."""
    if value is None:
        return ""
    if isinstance(value, str):
        return visible(value.translate(_ESCAPES))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime | date):
        return value.isoformat(*([" "] if isinstance(value, datetime) else []))
    if isinstance(value, list | tuple | dict | bytes):
        plain = jsonable(value)
        return plain if isinstance(plain, str) else _dump(plain, 0)
    return visible(str(value))


def jsonable(value: Any) -> Any:
    """Return the value in JSON's types.

    Bytes become base64, decimals, NaN and infinity become strings, times ISO 8601.
    """
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


def _dump(value: Any, option: int, encoding: str | None = None) -> str:
    """Return JSON in which characters that the encoding of the output lacks are escaped."""
    try:
        text = _text(jsonable(value), option)
    except RecursionError:
        raise InvalidOperationError("The result is nested too deeply to be printed as JSON.") from None
    if text.isascii() and "\x7f" not in text:
        return text
    encoding = (encoding or sys.stdout.encoding or "ascii").lower().replace("_", "-")
    hidden = _IN_JSON if encoding in ("utf-8", "utf8") else _NOT_ASCII
    return hidden.sub(lambda found: json.dumps(found[0])[1:-1] if found[0] != "\x7f" else "\\u007f", text)


def _text(plain: Any, option: int) -> str:
    try:
        return orjson.dumps(plain, option=option, default=str).decode("utf-8")
    except orjson.JSONEncodeError:  # numbers beyond 64 bits, and values nested more than 254 levels deep
        indent = 2 if option & orjson.OPT_INDENT_2 else None
        separators = None if indent else (",", ":")
        return json.dumps(plain, indent=indent, separators=separators, ensure_ascii=False, default=str)


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def terminal() -> Console | None:
    """Return the terminal, or None if output goes to a file, a pipe, or a terminal without capabilities."""
    if not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        return None
    return Console(highlight=False)
