"""Z85, the base-85 dialect of deletion vector descriptors: four bytes, big-endian, to five characters (C264).

Data whose length is not a multiple of four is zero-padded before it is encoded (C265). Some writers instead mark a
short last group with one leading `#` per missing byte, followed by the value of the rest; no full group begins with
`#`. Both are read.
"""

from __future__ import annotations

import numpy as np

ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"

_CHARACTERS = np.frombuffer(ALPHABET.encode(), dtype=np.uint8)
_BASE, _DIGITS = 85, 5
_POWERS = _BASE ** np.arange(_DIGITS, dtype=np.uint64)[::-1]
_MARK = ALPHABET[84]
_INVALID = 255
_VALUES = np.full(256, _INVALID, dtype=np.uint8)
_VALUES[_CHARACTERS] = np.arange(85, dtype=np.uint8)


def encode(data: bytes) -> str:
    """Return the text of `data`, zero-padded to a multiple of four bytes."""
    padded = data + b"\0" * (-len(data) % 4)
    rest = np.frombuffer(padded, dtype=">u4").astype(np.uint32)
    digits = np.empty((len(rest), _DIGITS), np.uint8)
    for place in reversed(range(_DIGITS)):
        quotients = rest // np.uint32(_BASE)  # a constant divisor is vectorised
        digits[:, place] = rest - quotients * np.uint32(_BASE)
        rest = quotients
    return _CHARACTERS[digits].tobytes().decode("ascii")


def decode(text: str) -> bytes:
    """Return the bytes of `text`, padding included. Raises ValueError for text that is not Z85."""
    if len(text) % _DIGITS:
        raise ValueError(f"its length {len(text)} is not a multiple of five")
    tail = b""
    if text[-5:].startswith(_MARK):
        text, tail = text[:-5], _decode_short_group(text[-5:])
    try:
        values = _VALUES[np.frombuffer(text.encode("ascii"), dtype=np.uint8)]
    except UnicodeEncodeError:
        raise ValueError("it contains characters outside of ASCII") from None
    if (values == _INVALID).any():
        raise ValueError(f"it contains the character {text[int((values == _INVALID).argmax())]!r}")
    groups = values.reshape(-1, _DIGITS).astype(np.uint64) @ _POWERS
    if (groups >> np.uint64(32)).any():
        raise ValueError("it contains a group beyond 32 bits")
    return groups.astype(">u4").tobytes() + tail


def _decode_short_group(group: str) -> bytes:
    digits = group.lstrip(_MARK)
    size = len(digits) - 1
    value = 0
    for character in digits:
        position = ALPHABET.find(character)
        if position < 0:
            raise ValueError(f"it contains the character {character!r}")
        value = value * 85 + position
    if not 1 <= size <= 3 or value >> (8 * size):
        raise ValueError(f"its last group {group!r} is malformed")
    return value.to_bytes(size, "big")
