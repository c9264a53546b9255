"""Sizes and counts in a form that people read."""

from __future__ import annotations

_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def human_size(size: int) -> str:
    """Return a number of bytes in the largest unit that leaves at least 1, such as `12.2 KiB`."""
    amount, unit = float(size), "bytes"
    for larger in _UNITS:
        if abs(amount) < 1023.95:
            break
        amount, unit = amount / 1024, larger
    return f"{size} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"


def short_count(count: int) -> str:
    """Return a number in at most five characters, such as `9999`, `12.3k` or `4.5M`."""
    amount, unit = float(count), ""
    for larger in ("k", "M", "G", "T"):
        if abs(amount) < (9999.5 if unit == "" else 999.95):
            break
        amount, unit = amount / 1000, larger
    return f"{count}" if unit == "" else f"{amount:.1f}{unit}"
