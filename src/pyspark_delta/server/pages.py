"""Lists in pages: a number of names, and a token for the next page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pyspark_delta.server.fields import invalid
from pyspark_delta.server.operation import Call, Schema

T = TypeVar("T")

LARGEST_PAGE = 50
PAGE_QUERY: dict[str, tuple[Schema, bool]] = {
    "max_results": ({"type": "integer", "minimum": 0}, False),
    "page_token": ({"type": "string"}, False),
}


def page_of(call: Call, sorted_values: Sequence[T], key: Callable[[T], str]) -> tuple[list[T], dict[str, Any]]:
    """Return the requested page of a sorted list, and the token for the rest.

    The token is the last name of the page, so that the list may change in between. Raises Failure.
    """
    after = call.query.get("page_token") or ""
    remaining = [value for value in sorted_values if key(value) > after]
    page = remaining[: _size(call.query.get("max_results"))]
    return page, {"next_page_token": key(page[-1]) if len(page) < len(remaining) else None}


def _size(given: str | None) -> int:
    """Return the size of a page; 0 leaves it to the server."""
    if given is None or given == "0":
        return LARGEST_PAGE
    if not given.isascii() or not given.isdigit() or len(given) > 9:
        raise invalid("'max_results' must be a whole number from 0 on.")
    return min(int(given), LARGEST_PAGE) or LARGEST_PAGE
