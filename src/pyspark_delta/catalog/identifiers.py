"""The parts of names in catalogs: which ones are valid, and the keys for comparing them."""

from __future__ import annotations

import unicodedata

from pyspark_delta.errors import InvalidProposalError

LONGEST = 255
"""The maximum length of a part of a name, and of its key, in bytes of UTF-8."""


def name_key(part: str) -> str:
    """Return the key for comparing a part of a name: casefolded, in Unicode normalization form C.

    Raises InvalidProposalError for blank text, for text longer than `LONGEST` bytes, and for control characters and
    lone surrogates. Any other text is valid.
    """
    if len(part) > LONGEST:
        raise _too_long(part)
    if not part.strip():
        raise InvalidProposalError("A name in a catalog cannot be empty.", name=part)
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in part):
        raise InvalidProposalError(
            f"The name {shown(part)} contains control characters or lone surrogates. Use a name without them.",
            name=part,
        )
    key = unicodedata.normalize("NFC", unicodedata.normalize("NFC", part).casefold())
    if max(len(part.encode()), len(key.encode())) > LONGEST:
        raise _too_long(part)
    return key


def _too_long(part: str) -> InvalidProposalError:
    return InvalidProposalError(
        f"The name {shown(part)} is longer than {LONGEST} bytes, the most that a catalog accepts.",
        name=shown(part),
    )


def shown(part: str) -> str:
    """Return a name for a message: quoted, escaped, and truncated to 60 characters."""
    return ascii(part if len(part) <= 60 else part[:57] + "...")
