"""How objects show themselves in notebooks, and in one short line. Everything shown is escaped; nothing is read."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence

_MOST_NAMES = 8
_MOST_CHARACTERS = 500


def html_facts(title: str, facts: Mapping[str, object]) -> str:
    """Return names and values as a small HTML table. Values that are None or empty are left out."""
    shown = [(name, value) for name, value in facts.items() if value is not None and value != () and value != ""]
    return html_rows(title, (), shown)


def html_rows(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return rows as a small HTML table. The first cell of a row is its head; values other than texts are converted."""
    left = " style='text-align:left;white-space:pre-wrap'"
    head = "".join(f"<th{left}>{_escaped(name)}</th>" for name in header)
    lines = [f"<tr>{head}</tr>"] if header else []
    for first, *others in rows:
        cells = "".join(f"<td{left}>{_escaped(value)}</td>" for value in others)
        lines.append(f"<tr><th{left}>{_escaped(first)}</th>{cells}</tr>")
    return f"<table><caption{left}>{_escaped(title)}</caption>{''.join(lines)}</table>"


def listed(names: Sequence[str]) -> str:
    """Return names as one short text."""
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f", ... {more} more" if more > 0 else "")


def counted(count: int, what: str) -> str:
    """Return a number of things, such as `1 file` and `2,000 files`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _escaped(value: object) -> str:
    text = str(value)
    if len(text) > _MOST_CHARACTERS:
        text = f"{text[: _MOST_CHARACTERS - 3]}..."
    return html.escape(text)
