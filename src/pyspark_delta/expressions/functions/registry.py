"""All functions and operators that Arrow computes exactly, by Spark's names, and what is said about others."""

from __future__ import annotations

import difflib
from typing import Any

from pyspark_delta.expressions.functions import (
    arithmetic,
    conditional,
    dates,
    encoding,
    fields,
    formats,
    nested,
    rounding,
    search,
    text,
    zones,
)
from pyspark_delta.expressions.functions.signature import Function, Kernel, Site
from pyspark_delta.expressions.literals import NotExactError
from pyspark_delta.expressions.stored_functions import FUNCTIONS as KNOWN_TO_SPARK
from pyspark_delta.expressions.tree import Expression

_MODULES = (arithmetic, conditional, dates, encoding, fields, formats, nested, rounding, search, text, zones)
GROUPS = {
    "Numbers": (arithmetic, rounding),
    "Text": (text, search, encoding),
    "Dates and times": (fields, dates, formats, zones),
    "Choices and nulls": (conditional,),
    "Arrays, maps and structs": (nested,),
}
"""The modules of functions by the headings of the documentation."""

ALIASES = {
    "bit_get": "getbit",
    "btrim": "trim",
    "cardinality": "size",
    "ceiling": "ceil",
    "char": "chr",
    "char_length": "length",
    "character_length": "length",
    "curdate": "current_date",
    "date_diff": "datediff",
    "dateadd": "date_add",
    "datepart": "date_part",
    "dayofmonth": "day",
    "lcase": "lower",
    "len": "length",
    "now": "current_timestamp",
    "nvl": "ifnull",
    "position": "locate",
    "regexp": "rlike",
    "regexp_like": "rlike",
    "signum": "sign",
    "substr": "substring",
    "to_unix_timestamp": "unix_timestamp",
    "ucase": "upper",
}
"""Other names of functions in Spark."""

OPERATORS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "bit_and": "&",
    "bit_or": "|",
    "bit_xor": "^",
    "bit_not": "~",
    "subscript": "[ ]",
    "case": "CASE WHEN",
}
"""Functions that Spark writes as operators only."""

FUNCTIONS: dict[str, Function] = {name: found for m in _MODULES for name, found in m.FUNCTIONS.items()}
KERNELS: dict[str, Kernel] = {name: kernel for m in _MODULES for name, kernel in m.KERNELS.items()}


def bind_call(site: Site) -> Expression:
    """Bind a call of a function by its name in lower case.

    Raises NotExactError for a function that is unknown, or that would not give exactly Spark's result for the types of
    its arguments. With `keep`, the text comes from Spark, whose settings determine what fails, so only functions that
    never fail are bound.
    """
    name = ALIASES.get(site.name, site.name)
    function = FUNCTIONS.get(name)
    if function is None or (name in OPERATORS and site.name in ALIASES):
        raise NotExactError(_unknown(site.name))
    if len(site.arguments) not in function.counts:
        raise site.refusal(f"{len(site.arguments)} arguments")
    if site.keep and not function.is_total:
        raise NotExactError(f"only Spark computes {site.name}(...) if the settings of a session decide what fails")
    return function.bind(Site(name, site.arguments, site.zone, site.keep))


def compute_call(name: str, arguments: list[Any]) -> Any:
    """Return the result of a function over arrays or scalars.

    Raises pa.ArrowInvalid for a value that it cannot compute.
    """
    return KERNELS[name](*arguments)


def is_portable(name: str) -> bool:
    """True if no setting of Spark changes a result of the function without an error."""
    function = FUNCTIONS.get(name)
    return function is None or function.is_portable


def public_names() -> list[str]:
    """Return all names of functions that work, sorted."""
    return sorted({*FUNCTIONS, *ALIASES} - OPERATORS.keys())


def _unknown(name: str) -> str:
    names = public_names()
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    near += [other for other in _related(name, names) if other not in near][: 3 - len(near)]
    what = "exactly as Spark does" if name in KNOWN_TO_SPARK else "and knows no such function of Spark"
    nearby = f"; functions nearby that work: {', '.join(near)}" if near else ""
    return f"Arrow does not compute {name}(...) {what}{nearby}"


def _related(name: str, names: list[str]) -> list[str]:
    """Return functions that share a word with a name."""
    words = {word for word in name.split("_") if len(word) > 2}
    return [other for other in names if words & set(other.split("_"))]
