"""Dates and timestamps as text by patterns, and back."""

from __future__ import annotations

import re
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.expressions import coercion
from pyspark_delta.expressions.casts import cast_as_asked
from pyspark_delta.expressions.functions.dates import KERNELS as DATES
from pyspark_delta.expressions.functions.signature import Function, Kernel, Site, by_array, failed, takes
from pyspark_delta.expressions.functions.zones import local_time
from pyspark_delta.expressions.literals import is_utc
from pyspark_delta.expressions.tree import Call, Expression, Literal, type_of
from pyspark_delta.schema.types import DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ

_LETTERS = {"yyyy": (pc.year, 4), "MM": (pc.month, 2), "dd": (pc.day, 2)}
_LETTERS |= {"HH": (pc.hour, 2), "mm": (pc.minute, 2), "ss": (pc.second, 2)}
_PART = re.compile(r"(yyyy|MM|dd|HH|mm|ss)|([-/.:, _])")


def _parts(pattern: str) -> list[str] | None:
    """Return the letters and separators of a pattern; None for one that is not computed."""
    parts = [found.group() for found in _PART.finditer(pattern)]
    letters = [part for part in parts if part in _LETTERS]
    return parts if "".join(parts) == pattern and letters and len(set(letters)) == len(letters) else None


# --------------------------------------------------------------------------------------------------------- binding
def _format(site: Site) -> Expression:
    pattern = site.constant(1, str)
    operand = site.arguments[0]
    if pattern is None:
        return Literal(None, STRING)
    if _parts(pattern) is None:
        raise site.refusal(f"the pattern '{pattern}'")
    if type_of(operand) not in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        raise site.refusal(f"the type {type_of(operand)}")
    if type_of(operand) == TIMESTAMP and not is_utc(site.zone):
        operand = local_time(operand, site)
    elif type_of(operand) == DATE:
        operand = coercion.cast(operand, TIMESTAMP_NTZ, site.zone)
    return site.call(operand, Literal(pattern, STRING), to=STRING)


def _to_date(site: Site) -> Expression:
    operand = site.arguments[0]
    if len(site.arguments) == 1 or type_of(operand) != STRING:
        return cast_as_asked(operand, DATE, site.zone, keep=site.keep)
    pattern = site.constant(1, str)
    parts = None if pattern is None else _parts(pattern)
    if parts is None or {"yyyy", "MM", "dd"} != {part for part in parts if part in _LETTERS}:
        raise site.refusal(f"the pattern '{pattern}'")
    return Call("to_date", (operand, Literal(pattern, STRING)), DATE)


def _to_timestamp(site: Site) -> Expression:
    if len(site.arguments) > 1:
        raise site.refusal("a pattern")
    return cast_as_asked(site.arguments[0], TIMESTAMP, site.zone, keep=site.keep)


FUNCTIONS = {
    "date_format": Function(_format, takes(2), is_total=False),
    "to_date": Function(_to_date, takes(1, 2), is_total=False),
    "to_timestamp": Function(_to_timestamp, takes(1), is_total=False),
}


# ------------------------------------------------------------------------------------------------------- computing
def _formatted(value: pa.Array, pattern: pa.Array) -> pa.Array:
    if not len(value):
        return pa.array([], pa.string())
    years = pc.min_max(pc.year(value))
    if years["min"].is_valid and not (years["min"].as_py() >= 1 and years["max"].as_py() <= 9999):
        raise failed("the year is not between 1 and 9999")
    parts = _parts(pattern[0].as_py())
    assert parts is not None
    texts = [_field(value, part) if part in _LETTERS else pa.scalar(part) for part in parts]
    return reduce(lambda left, right: pc.binary_join_element_wise(left, right, ""), texts)


def _field(value: pa.Array, letters: str) -> pa.Array:
    kernel, width = _LETTERS[letters]
    return pc.utf8_lpad(kernel(value).cast(pa.string()), width=width, padding="0")


def _date_of(value: pa.Array, pattern: pa.Array) -> pa.Array:
    if not len(value):
        return pa.array([], pa.date32())
    parts = _parts(pattern[0].as_py())
    assert parts is not None
    groups = "".join(
        rf"(?P<{part}>[0-9]{{{_LETTERS[part][1]}}})" if part in _LETTERS else rf"\x{{{ord(part):x}}}" for part in parts
    )
    found = pc.extract_regex(value, pattern=rf"\A{groups}\z")
    wrong = pc.and_(pc.is_valid(value), pc.is_null(found))
    if pc.any(wrong).as_py():
        raise failed(f"{value.filter(wrong)[0].as_py()!r} is not a date of the pattern '{pattern[0].as_py()}'")
    return DATES["make_date"](*(pc.struct_field(found, [part]).cast(pa.int32()) for part in ("yyyy", "MM", "dd")))


KERNELS: dict[str, Kernel] = {"date_format": by_array(_formatted), "to_date": by_array(_date_of)}
