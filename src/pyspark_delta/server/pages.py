"""Pages of lists: some of the values, and a token for the next page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from pyspark_delta.server.legacy_models import PageQuery

T = TypeVar("T")

LARGEST_PAGE = 50


def page_of(query: PageQuery, sorted_values: Sequence[T], key: Callable[[T], str]) -> tuple[list[T], str | None]:
    """Return the requested page of a sorted list, and the token for the next page; None after the last one.

    The token is the last name of the page, so the list may change between requests.
    """
    remaining = [value for value in sorted_values if key(value) > query.page_token]
    page = remaining[: min(query.max_results, LARGEST_PAGE) or LARGEST_PAGE]
    return page, key(page[-1]) if len(page) < len(remaining) else None
