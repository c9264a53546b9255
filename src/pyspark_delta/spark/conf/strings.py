"""How a session reads string literals, where it differs from this package: conditions and values of users as SQL."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark_delta.parser.strings import StringSyntax, may_depend, portable_text, standard_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RELEASE = re.compile(r"(\d+)\.(\d+)")
_READS_DOUBLED_QUOTES = (4, 1)  # the first release that reads one quote in 'it''s'


def as_read_here(spark: SparkSession, text: str) -> str:
    """Return the text that means in this package what a text of a user means in the session."""
    return standard_text(text, _syntax(spark)) if may_depend(text) else text


def as_stored(spark: SparkSession, text: str) -> str:
    """Return the text that means in the session what an expression in a log means: the same on every release."""
    return portable_text(text) if may_depend(text) and _syntax(spark).joins_strings else text


def _syntax(spark: SparkSession) -> StringSyntax:
    found = _RELEASE.match(spark.version)
    is_older = found is not None and (int(found[1]), int(found[2])) < _READS_DOUBLED_QUOTES
    return StringSyntax(
        joins_strings=is_older or _is_true(spark, "legacy.consecutiveStringLiterals.enabled"),
        keeps_backslashes=_is_true(spark, "parser.escapedStringLiterals"),
        quotes_names=_is_true(spark, "ansi.enabled") and _is_true(spark, "ansi.doubleQuotedIdentifiers"),
    )


def _is_true(spark: SparkSession, name: str) -> bool:
    return (spark.conf.get(f"spark.sql.{name}", "false") or "").lower() == "true"
