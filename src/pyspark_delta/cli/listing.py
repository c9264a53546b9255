"""Rows on a terminal: a line each, cut to its width, or one field a line. In a pipe they are complete."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from itertools import islice
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from pyspark_delta.cli.output import cell, print_rows, terminal

_TERMINAL_ROWS = 20
_NARROWEST = 10  # a column of text is not cut to fewer characters; one that does not fit is left out
_GAP = "  "
_EXACT = (bool, int, float, Decimal, date, datetime)  # cut, these would be other values
_NUMBERS = (int, float, Decimal)


@dataclass(frozen=True, slots=True)
class View:
    """How a command prints rows, from its options: how many, uncut, or one field a line."""

    limit: int | None = None
    full: bool = False
    vertical: bool = False

    @property
    def rows(self) -> int | None:
        """The largest number of rows to print; None is all of them."""
        return _TERMINAL_ROWS if self.limit is None and terminal() is not None else self.limit

    @property
    def needed(self) -> int | None:
        """The number of rows to read: on a terminal one more than `rows`, to know whether there are more."""
        rows = self.rows
        return rows if rows is None or terminal() is None else rows + 1


def print_listing(
    names: Sequence[str],
    rows: Iterable[Sequence[Any]],
    view: View,
    *,
    fixed: Collection[str] = (),
    remedy: str = "--vertical",
    total: Callable[[], int | None] = lambda: None,
    below: Callable[[int], str] | None = None,
) -> None:
    """Print rows, and on a terminal say what is not shown.

    `fixed` are columns whose texts are not cut, and `remedy` is the option that shows columns that do not fit. `total`
    returns the number of all rows if it is known, and is asked only if there are more. `below` returns a text to print
    below the row of that index.
    """
    console = terminal()
    if console is None:
        (_print_fields if view.vertical else print_rows)(names, islice(rows, view.limit))
        return
    found = list(islice(rows, view.needed))
    limited = found[: view.rows]
    if view.vertical:
        _show_fields(console, names, limited, view)
    else:
        _show_lines(console, names, limited, view, fixed, remedy, below)
    if len(found) > len(limited):
        count = total()
        shown = f"First {len(limited):,} rows" if count is None else f"{len(limited):,} of {count:,} rows"
        _note(console, f"{shown}. --limit N shows N rows.")


# --------------------------------------------------------------------------------------------------- a line a row
def _show_lines(
    console: Console,
    names: Sequence[str],
    rows: Sequence[Sequence[Any]],
    view: View,
    fixed: Collection[str],
    remedy: str,
    below: Callable[[int], str] | None,
) -> None:
    header = [cell(name) for name in names]
    texts = [[_shown(value) for value in row] for row in rows]
    natural = [max(map(cell_len, column)) for column in zip(header, *texts, strict=True)]
    if view.full:
        widths = natural
    else:
        least = [
            _least(name, width, column, fixed)
            for name, width, column in zip(names, natural, _columns(rows, len(names)), strict=True)
        ]
        widths = fit(natural, least, console.width)
    right = [_all_are(column, _NUMBERS) for column in _columns(rows, len(names))]
    marker = _ellipsis(console)
    _line(console, header, widths, right, marker, style="bold")
    _line(console, [("─" if marker == "…" else "-") * width for width in widths], widths, right, marker, style="dim")
    for index, row in enumerate(texts):
        _line(console, row, widths, right, marker)
        if below is not None and (text := below(index)):
            for line in Text(text, style="dim").wrap(console, max(console.width - 4, _NARROWEST)):
                console.print(Text("    ") + line)
    if left_out := header[len(widths) :]:
        _note(console, _left_out(left_out, remedy, 2 * console.width))


def _left_out(names: Sequence[str], remedy: str, room: int) -> str:
    """Return which columns are left out, by as many names as there is room for, and what shows them."""
    noun = "column does" if len(names) == 1 else "columns do"
    advice = f"Use {remedy}, or --full for whole lines."
    named: list[str] = []
    for name in names:
        if cell_len(", ".join([*named, name])) + len(advice) + 40 > room:
            named.append("...")
            break
        named.append(name)
    return f"{len(names)} {noun} not fit: {', '.join(named)}. {advice}"


def fit(natural: Sequence[int], least: Sequence[int], width: int) -> list[int]:
    """Return the widths of the columns that fit into a width: the first ones, at least one.

    Every column gets its least width. What is left goes to the columns that are cut, in equal parts.
    """
    shown, gap = len(natural), len(_GAP)
    while shown > 1 and sum(least[:shown]) + gap * (shown - 1) > width:
        shown -= 1
    widths = list(least[:shown]) if shown > 1 else [min(least[0], width)]
    rest = width - gap * (shown - 1) - sum(widths)
    while rest > 0 and (cut := [i for i in range(shown) if widths[i] < natural[i]]):
        part = max(rest // len(cut), 1)
        for i in cut[:rest]:
            more = min(part, natural[i] - widths[i])
            widths[i] += more
            rest -= more
    return widths


def _columns(rows: Sequence[Sequence[Any]], count: int) -> list[list[Any]]:
    return [[row[i] for row in rows] for i in range(count)]


def _all_are(values: Sequence[Any], types: tuple[type, ...]) -> bool:
    present = [value for value in values if value is not None]
    return bool(present) and all(isinstance(value, types) for value in present)


def _least(name: str, natural: int, values: Sequence[Any], fixed: Collection[str]) -> int:
    if name in fixed:
        return natural
    if _all_are(values, _EXACT):
        return max(min(cell_len(cell(name)), _NARROWEST), *(cell_len(_shown(value)) for value in values))
    return min(natural, _NARROWEST)


def _line(
    console: Console, texts: Sequence[str], widths: Sequence[int], right: Sequence[bool], marker: str, style: str = ""
) -> None:
    cells = []
    for text, width, to_right in zip(texts, widths, right, strict=False):  # columns that do not fit are left out
        length = cell_len(text)
        if length > width:
            cells.append(set_cell_size(_cut(text, width, marker), width))
        else:
            cells.append(" " * (width - length) + text if to_right else text + " " * (width - length))
    console.print(Text(_GAP.join(cells).rstrip(), style=style), soft_wrap=True)


# ------------------------------------------------------------------------------------------------ one field a line
def _print_fields(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    for number, row in enumerate(rows, 1):
        print(f"row\t{number}")
        for name, value in zip(names, row, strict=True):
            print(f"{cell(name)}\t{cell(value)}")


def _show_fields(console: Console, names: Sequence[str], rows: Iterable[Sequence[Any]], view: View) -> None:
    width = max((cell_len(cell(name)) for name in names), default=0)
    room, marker = max(console.width - width - len(_GAP), _NARROWEST), _ellipsis(console)
    for number, row in enumerate(rows, 1):
        console.print(Text(f"row {number}", style="dim"))
        for name, value in zip(names, row, strict=True):
            text = _shown(value)
            if not view.full and cell_len(text) > room:
                text = _cut(text, room, marker)
            console.print(Text(set_cell_size(cell(name), width), style="bold") + Text(_GAP + text), soft_wrap=True)


def _shown(value: Any) -> str:
    return "NULL" if value is None else cell(value)


def _cut(text: str, width: int, marker: str) -> str:
    """Return the beginning of a text and the marker; half of a wide character is left out."""
    return set_cell_size(text, max(width - len(marker), 0)).rstrip() + marker


def _ellipsis(console: Console) -> str:
    return "…" if console.encoding.startswith("utf") else "..."


def _note(console: Console, text: str) -> None:
    console.print(Text(text, style="dim"))
