"""The parts of names in catalogs: which ones are valid, and the keys for comparing them."""

from __future__ import annotations

import unicodedata

from pyspark_delta.errors import InvalidProposalError

LONGEST = 255
"""A part of a name has at most so many bytes of UTF-8; so has its key."""


def name_key(part: str) -> str:
    """Return the text by which a part of a name is compared: casefolded, in one Unicode form.

    Raises InvalidProposalError for an invalid name: empty or blank, longer than `LONGEST` bytes, or with control
    characters or lone surrogates. Everything else is used literally.
    """
    if len(part) > LONGEST:
        raise _too_long(part)
    if not part.strip():
        raise InvalidProposalError("A name in a catalog cannot be empty.", name=part)
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in part):
        raise InvalidProposalError(
            f"The name {shown(part)} contains control characters, which a name in a catalog cannot.", name=part
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
    """Return a name as messages quote it: escaped, and truncated if it is long."""
    return ascii(part if len(part) <= 60 else part[:57] + "...")
