"""Functions that measure and search strings."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.expressions.functions.patterns import Pattern, like_pattern, read_pattern, read_replacement
from pyspark_delta.expressions.functions.signature import Function, Kernel, Site, Values, by_array, takes
from pyspark_delta.expressions.functions.text import escaped, of_text
from pyspark_delta.expressions.tree import Call, Comparison, Expression, Literal, StartsWith, type_of
from pyspark_delta.schema.types import BINARY, BOOLEAN, INTEGER, STRING, ArrayType


# --------------------------------------------------------------------------------------------------------- binding
def _size(site: Site) -> Expression:
    operand = site.arguments[0]
    if type_of(operand) != BINARY:
        operand = site.typed(0, STRING)
    return site.call(operand, to=INTEGER)


def _affix(site: Site) -> Expression:
    affix = site.constant(1, str)
    operand = site.typed(0, STRING)
    if affix is None:
        return Literal(None, BOOLEAN)
    if site.name == "startswith":
        return StartsWith(operand, affix)
    return site.call(operand, Literal(affix, STRING), to=BOOLEAN)


def _position(site: Site) -> Expression:
    """Bind `instr(text, part)`."""
    return of_text(INTEGER, others=(str,))(site)


def _located(site: Site) -> Expression:
    part, text, *start = site.arguments
    if start and not (isinstance(start[0], Literal) and start[0].value == 1):
        raise site.refusal("a position to start at")
    return _position(Site("instr", (text, part), site.zone, site.keep))


def like(site: Site) -> Expression:
    """Bind `text LIKE pattern[, escape]`."""
    pattern = site.constant(1, str)
    escape = site.constant(2, str) if len(site.arguments) > 2 else "\\"
    operand = site.typed(0, STRING)
    if pattern is None or escape is None:
        return Literal(None, BOOLEAN)
    if site.name == "ilike":
        if not pattern.isascii():
            raise site.refusal("a pattern that is not ASCII")
        operand, pattern = Call("lower", (operand,), STRING), pattern.lower()
    parts = like_pattern(pattern, escape, site)
    if all(isinstance(part, str) for part in parts):
        return Comparison("=", operand, Literal("".join(map(str, parts)), STRING))
    if parts[-1] is Pattern.MANY and all(isinstance(part, str) for part in parts[:-1]):
        return StartsWith(operand, "".join(map(str, parts[:-1])))
    return Call("like", (operand, Literal(pattern, STRING), Literal(escape, STRING)), BOOLEAN)


def _rlike(site: Site) -> Expression:
    pattern = site.constant(1, str)
    operand = site.typed(0, STRING)
    if pattern is None:
        return Literal(None, BOOLEAN)
    read_pattern(pattern, site)
    return Call("rlike", (operand, Literal(pattern, STRING)), BOOLEAN)


def _regexp_replace(site: Site) -> Expression:
    pattern, replacement = site.constant(1, str), site.constant(2, str)
    operand = site.typed(0, STRING)
    if pattern is None or replacement is None:
        return Literal(None, STRING)
    found = read_pattern(pattern, site)
    if found.may_be_empty or found.has_end:
        raise site.refusal("a pattern that matches the empty string or the end")
    read_replacement(replacement, found.groups, site)
    return site.call(operand, *site.arguments[1:], to=STRING)


def _regexp_extract(site: Site) -> Expression:
    pattern = site.constant(1, str)
    group = site.constant(2, int) if len(site.arguments) > 2 else 1
    operand = site.typed(0, STRING)
    if pattern is None or group is None:
        return Literal(None, STRING)
    found = read_pattern(pattern, site)
    if not 0 <= group <= found.groups or found.has_end:
        raise site.refusal("this pattern and group")
    return site.call(operand, Literal(pattern, STRING), Literal(group, INTEGER), to=STRING)


_META = frozenset("\\^$.|?*+()[]{}")


def _split(site: Site) -> Expression:
    delimiter = site.constant(1, str)
    operand = site.typed(0, STRING)
    if delimiter is None:
        return Literal(None, ArrayType(STRING, False))
    is_escape = len(delimiter) == 2 and delimiter[0] == "\\" and delimiter[1] in _META
    if not delimiter or (not is_escape and _META & set(delimiter)):
        raise site.refusal("a delimiter that is a pattern")
    return Call("split", (operand, Literal(delimiter, STRING)), ArrayType(STRING, False))


FUNCTIONS = {
    "length": Function(_size, takes(1)),
    "octet_length": Function(_size, takes(1)),
    "bit_length": Function(_size, takes(1)),
    "ascii": Function(of_text(INTEGER), takes(1)),
    "startswith": Function(_affix, takes(2)),
    "endswith": Function(_affix, takes(2)),
    "contains": Function(_affix, takes(2)),
    "instr": Function(_position, takes(2)),
    "locate": Function(_located, takes(2, 3)),
    "like": Function(like, takes(2, 3)),
    "ilike": Function(like, takes(2, 3), is_total=False),
    "rlike": Function(_rlike, takes(2)),
    "regexp_replace": Function(_regexp_replace, takes(3)),
    "regexp_extract": Function(_regexp_extract, takes(2, 3)),
    "split": Function(_split, takes(2)),
}


# ------------------------------------------------------------------------------------------------------- computing
def _length(value: Values) -> Values:
    return pc.binary_length(value) if pa.types.is_binary(value.type) else pc.utf8_length(value)


def _bits(value: Values) -> Values:
    return pc.multiply(pc.binary_length(value), pa.scalar(8, pa.int32()))


def _buffers(value: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the offsets of strings and all their bytes."""
    _, offsets, octets = value.buffers()
    ends = np.frombuffer(offsets, np.int32, len(value) + 1, value.offset * 4)
    return ends, np.frombuffer(octets, np.uint8) if octets is not None and octets.size else np.zeros(0, np.uint8)


def _find(value: pa.Array, part: pa.Array) -> pa.Array:
    """Return the position of a part in characters, from 1; 0 if it is absent."""
    if not len(value):
        return pa.array([], pa.int32())
    at = pc.find_substring(value, pattern=part[0].as_py())
    if pc.all(pc.string_is_ascii(value)).as_py() is False:
        ends, octets = _buffers(value)
        before = np.concatenate(([0], np.cumsum((octets & 0xC0) != 0x80)))  # characters before each byte
        places = at.fill_null(-1).to_numpy(zero_copy_only=False)
        counted = before[ends[:-1] + np.maximum(places, 0)] - before[ends[:-1]]
        found = np.where(places < 0, -1, counted)
        at = pa.array(found.astype(np.int32), mask=value.is_null().to_numpy(zero_copy_only=False))
    return pc.add(at, pa.scalar(1, pa.int32()))


def _code(value: pa.Array) -> pa.Array:
    """Return the code point of the first character; 0 for the empty string."""
    first = pc.fill_null(pc.utf8_slice_codeunits(value, 0, 1), "").cast(pa.binary())
    lengths = pc.binary_length(first).to_numpy(zero_copy_only=False)
    ends, octets = _buffers(first)
    padded = np.concatenate((octets, np.zeros(4, np.uint8))).astype(np.int32)
    b0, b1, b2, b3 = (padded[np.minimum(ends[:-1] + n, len(padded) - 1)] for n in range(4))
    one, two, three = b1 & 63, b2 & 63, b3 & 63
    found = np.select(
        [lengths == 0, lengths == 1, lengths == 2, lengths == 3],
        [0, b0, (b0 & 31) << 6 | one, (b0 & 15) << 12 | one << 6 | two],
        (b0 & 7) << 18 | one << 12 | two << 6 | three,
    )
    return pa.array(found.astype(np.int32), mask=value.is_null().to_numpy(zero_copy_only=False))


def _matches(value: Values, pattern: pa.Scalar, escape: pa.Scalar) -> Values:
    parts = like_pattern(pattern.as_py(), escape.as_py(), None)
    words = [escaped(part) if isinstance(part, str) else part.value for part in parts]
    return pc.match_substring_regex(value, pattern=rf"(?s)\A{''.join(words)}\z")


def _has_match(value: Values, pattern: pa.Scalar) -> Values:
    return pc.match_substring_regex(value, pattern=read_pattern(pattern.as_py(), None).text)


def _replaced(value: Values, pattern: pa.Scalar, replacement: pa.Scalar) -> Values:
    found = read_pattern(pattern.as_py(), None)
    new = read_replacement(replacement.as_py(), found.groups, None)
    return pc.replace_substring_regex(value, pattern=found.text, replacement=new)


def _extracted(value: pa.Array, pattern: pa.Array, group: pa.Array) -> pa.Array:
    if not len(value):
        return value
    found = read_pattern(pattern[0].as_py(), None, named=group[0].as_py())
    part = pc.struct_field(pc.extract_regex(value, pattern=found.text), [0])
    return pc.if_else(pc.is_valid(value), pc.fill_null(part, ""), value)


def _parts(value: Values, delimiter: pa.Scalar) -> Values:
    text = delimiter.as_py()
    return pc.split_pattern(value, pattern=text[1:] if len(text) == 2 and text[0] == "\\" else text)


KERNELS: dict[str, Kernel] = {
    "length": _length,
    "octet_length": pc.binary_length,
    "bit_length": _bits,
    "ascii": by_array(_code),
    "endswith": lambda value, affix: pc.ends_with(value, pattern=affix.as_py()),
    "contains": lambda value, part: pc.match_substring(value, pattern=part.as_py()),
    "instr": by_array(_find),
    "like": _matches,
    "rlike": _has_match,
    "regexp_replace": _replaced,
    "regexp_extract": by_array(_extracted),
    "split": _parts,
}
