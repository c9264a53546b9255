"""Convert column paths to text and back: the parts of a path such as a.`b.c`.element."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark_delta.errors import InvalidOperationError

_PART = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")
_PATH = re.compile(rf"(?:{_PART.pattern})(?:\.(?:{_PART.pattern}))*")
_PLAIN = re.compile(r"\w+")
_QUOTED = re.compile(r"`(?:[^`]|``)+`")


def parse_column_path(text: str) -> tuple[str, ...]:
    """Return the parts of a column path; backticks quote a part with dots. Raises InvalidOperationError."""
    if not isinstance(text, str) or not _PATH.fullmatch(text := text.strip()):
        raise InvalidOperationError(
            f"{text!r} is not a valid column name. Separate nested names with dots, and quote names that contain dots "
            "with backticks.",
            error_class="DELTA_INVALID_COLUMN_NAME",
        )
    return tuple(inner.replace("``", "`") or plain.strip() for inner, plain in _PART.findall(text))


def parse_name(text: str) -> str:
    """Return the name of one column, without the backticks around it; any other text is the name itself."""
    if isinstance(text, str) and _QUOTED.fullmatch(text):
        return text[1:-1].replace("``", "`")
    return text


def quoted(name: str) -> str:
    """Return a name in backticks, which Spark takes literally."""
    return f"`{name.replace('`', '``')}`"


def column_path_text(path: Sequence[str]) -> str:
    """Return the text of a path, quoted if needed."""
    return ".".join(part if _PLAIN.fullmatch(part) else quoted(part) for part in path)
