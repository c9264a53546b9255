"""Functions that make strings from strings: case, blanks, parts, padding, replacement."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.expressions.functions.signature import Function, Kernel, Site, Values, by_array, failed, takes
from pyspark_delta.expressions.tree import Call, Expression, Literal, type_of
from pyspark_delta.schema.types import BINARY, INTEGER, LONG, STRING, DataType

_LARGEST = 1000  # characters that padding and repetition may add
_MOST = 2**31 - 1


# --------------------------------------------------------------------------------------------------------- binding
def of_text(to: DataType, *, others: tuple[type, ...] = (), strict: bool = True) -> Callable[[Site], Expression]:
    """Return the binder of a function of a string and constants; it is NULL if a constant is."""

    def bind(site: Site) -> Expression:
        operand = site.typed(0, STRING)
        constants = [site.constant(n, others[n - 1]) for n in range(1, len(site.arguments))]
        if strict and any(value is None for value in constants):
            return Literal(None, to)
        return site.call(operand, *site.arguments[1:], to=to)

    return bind


def _trim(site: Site) -> Expression:
    characters = site.constant(1, str) if len(site.arguments) > 1 else " "
    operand = site.typed(0, STRING)
    if characters is None:
        return Literal(None, STRING)
    return site.call(operand, Literal(characters, STRING), to=STRING) if characters else operand


def _concat(site: Site) -> Expression:
    types = {type_of(argument) for argument in site.arguments}
    if types == {BINARY}:
        return site.call(*site.arguments, to=BINARY)
    return site.call(*(site.typed(n, STRING) for n in range(len(site.arguments))), to=STRING)


def _concat_with_separator(site: Site) -> Expression:
    separator, *parts = (site.typed(n, STRING) for n in range(len(site.arguments)))
    known = [part for part in parts if not (isinstance(part, Literal) and part.value is None)]
    if not known:
        raise site.refusal("NULL alone")
    return site.call(separator, *known, to=STRING)


def substring(site: Site) -> Expression:
    """Bind `substring(text, position[, length])` with constants; text may be binary."""
    operand = site.arguments[0]
    source = type_of(operand) if type_of(operand) == BINARY else STRING
    if source == STRING:
        operand = site.typed(0, STRING)
    start = site.constant(1, int)
    length = site.constant(2, int) if len(site.arguments) > 2 else _MOST
    if start is None or length is None:
        return Literal(None, source)
    return Call("substring", (operand, Literal(start, INTEGER), Literal(length, INTEGER)), source)


def _left(site: Site) -> Expression:
    count = site.constant(1, int)
    if count is None:
        return Literal(None, STRING)
    if type_of(site.arguments[0]) == BINARY:
        raise site.refusal("binary")
    start = 1 if site.name == "left" or count <= 0 else -count
    arguments = (site.arguments[0], Literal(start, INTEGER), Literal(max(count, 0), INTEGER))
    return substring(Site(site.name, arguments, site.zone, site.keep))


def _pad(site: Site) -> Expression:
    width = site.constant(1, int)
    padding = site.constant(2, str) if len(site.arguments) > 2 else " "
    operand = site.typed(0, STRING)
    if width is None or padding is None:
        return Literal(None, STRING)
    if width > _LARGEST:
        raise site.refusal(f"more than {_LARGEST} characters")
    return site.call(operand, Literal(max(width, 0), INTEGER), Literal(padding, STRING), to=STRING)


def _repeat(site: Site) -> Expression:
    count = site.constant(1, int)
    operand = site.typed(0, STRING)
    if count is None:
        return Literal(None, STRING)
    if count > _LARGEST:
        raise site.refusal(f"more than {_LARGEST} repetitions")
    return site.call(operand, Literal(max(count, 0), INTEGER), to=STRING)


def _space(site: Site) -> Expression:
    return _repeat(Site("repeat", (Literal(" ", STRING), site.arguments[0]), site.zone))


def _translate(site: Site) -> Expression:
    """Bind `translate` if no replacement is a character that is replaced, so that the order does not matter."""
    found, replacements = site.constant(1, str), site.constant(2, str)
    operand = site.typed(0, STRING)
    if found is None or replacements is None:
        return Literal(None, STRING)
    if set(found) & set(replacements) or len(found) > 100:
        raise site.refusal("characters that are both replaced and replacements")
    return site.call(operand, *site.arguments[1:], to=STRING)


def _replace(site: Site) -> Expression:
    found = site.constant(1, str)
    replacement = site.constant(2, str) if len(site.arguments) > 2 else ""
    operand = site.typed(0, STRING)
    if found is None or replacement is None:
        return Literal(None, STRING)
    return site.call(operand, Literal(found, STRING), Literal(replacement, STRING), to=STRING) if found else operand


def _part_before(site: Site) -> Expression:
    delimiter, count = site.constant(1, str), site.constant(2, int)
    operand = site.typed(0, STRING)
    if delimiter is None or count is None:
        return Literal(None, STRING)
    if not delimiter or not count:
        return Call("substring", (operand, Literal(1, INTEGER), Literal(0, INTEGER)), STRING)
    if len(delimiter) > 1 or abs(count) > 500:
        raise site.refusal("a delimiter of more than one character")
    return site.call(operand, *site.arguments[1:], to=STRING)


def _character(site: Site) -> Expression:
    return site.call(site.typed(0, LONG), to=STRING)


def _overlay(site: Site) -> Expression:
    """Bind `overlay(text, replacement, position[, length])` with constants."""
    replacement, start = site.constant(1, str), site.constant(2, int)
    length = site.constant(3, int) if len(site.arguments) > 3 else -1
    operand = site.typed(0, STRING)
    if replacement is None or start is None or length is None:
        return Literal(None, STRING)
    if start < 1:
        raise site.refusal("a position below 1")
    length = length if length >= 0 else len(replacement)
    before = Call("substring", (operand, Literal(1, INTEGER), Literal(start - 1, INTEGER)), STRING)
    after = Call("substring", (operand, Literal(start + length, INTEGER), Literal(_MOST, INTEGER)), STRING)
    return Call("concat", (before, Literal(replacement, STRING), after), STRING)


FUNCTIONS = {
    "upper": Function(of_text(STRING), takes(1), is_total=False),
    "lower": Function(of_text(STRING), takes(1), is_total=False),
    "trim": Function(_trim, takes(1, 2)),
    "ltrim": Function(_trim, takes(1, 2)),
    "rtrim": Function(_trim, takes(1, 2)),
    "concat": Function(_concat, takes(1, 1000)),
    "concat_ws": Function(_concat_with_separator, takes(2, 1000)),
    "substring": Function(substring, takes(2, 3)),
    "left": Function(_left, takes(2)),
    "right": Function(_left, takes(2)),
    "lpad": Function(_pad, takes(2, 3)),
    "rpad": Function(_pad, takes(2, 3)),
    "repeat": Function(_repeat, takes(2)),
    "space": Function(_space, takes(1)),
    "reverse": Function(of_text(STRING), takes(1)),
    "replace": Function(_replace, takes(2, 3)),
    "translate": Function(_translate, takes(3)),
    "substring_index": Function(_part_before, takes(3)),
    "overlay": Function(_overlay, takes(3, 4)),
    "chr": Function(_character, takes(1)),
}


# ------------------------------------------------------------------------------------------------------- computing
# Characters without case, and characters whose upper and lower case are single characters in every release of Unicode
# in use. Left out are those with special rules, such as the sharp s, the dotted i and the final sigma.
_SIMPLE = (
    r"\x00-\x{b4}\x{b6}-\x{de}\x{e0}-\x{fe}\x{100}-\x{12f}\x{132}-\x{148}\x{14a}-\x{17e}"
    r"\x{391}-\x{3a1}\x{3a4}-\x{3a9}\x{3b1}-\x{3c1}\x{3c4}-\x{3c9}\x{410}-\x{44f}"
    r"\x{5d0}-\x{5ea}\x{621}-\x{64a}\x{300}-\x{344}\x{900}-\x{97f}\x{2010}-\x{205e}\x{20a0}-\x{20b5}"
    r"\x{3041}-\x{3096}\x{30a1}-\x{30fa}\x{3001}-\x{3003}\x{4e00}-\x{9fa5}\x{ac00}-\x{d7a3}"
    r"\x{ff61}-\x{ff9f}\x{1f300}-\x{1f64f}"
)
_NOT_SIMPLE = f"[^{_SIMPLE}]"


def _cased(ascii_kernel: Kernel, kernel: Kernel) -> Kernel:
    def cased(value: pa.Array) -> pa.Array:
        if pc.all(pc.string_is_ascii(value)).as_py() is not False:
            return ascii_kernel(value)
        special = pc.match_substring_regex(value, _NOT_SIMPLE)
        if pc.any(special).as_py():
            text = value.filter(special)[0].as_py()
            raise failed(f"the case of {text!r} has special rules, for which Arrow and Spark may differ")
        return kernel(value)

    return by_array(cased)


def _trimmer(kernel: Callable[..., Values]) -> Kernel:
    return lambda value, characters: kernel(value, characters=characters.as_py())


def _joined(*values: Values) -> Values:
    empty = pa.scalar("" if pa.types.is_string(values[0].type) else b"", values[0].type)
    return pc.binary_join_element_wise(*values, empty, null_handling="emit_null")


def _separated(separator: pa.Array, *values: pa.Array) -> pa.Array:
    """Join the values that are not null. Arrow loses rows without any, so that their last value becomes empty."""
    present = reduce(pc.or_, [pc.is_valid(value) for value in values])
    last = pc.if_else(present, values[-1], "")
    return pc.binary_join_element_wise(*values[:-1], last, separator, null_handling="skip")


def _substring(value: Values, start: pa.Scalar, length: pa.Scalar) -> Values:
    first, count = start.as_py(), length.as_py()
    last = first + count
    if first >= 0:
        first = max(first - 1, 0)
        last = first + count
    kernel = pc.binary_slice if pa.types.is_binary(value.type) else pc.utf8_slice_codeunits
    if count <= 0:
        return kernel(value, 0, 0)
    if first < 0 <= last:
        return kernel(value, first)
    return kernel(value, first, last) if first < 0 else kernel(value, first, min(last, _MOST))


def _padder(*, is_left: bool) -> Kernel:
    def pad(value: pa.Array, width: pa.Array, padding: pa.Array) -> pa.Array:
        if not len(value):
            return value
        count, fill = width[0].as_py(), padding[0].as_py()
        cut = pc.utf8_slice_codeunits(value, 0, count)
        if not fill:
            return cut
        whole = fill * (count // len(fill) + 1)
        fills = pa.array([whole[:n] for n in range(count + 1)], pa.string())  # at most 1000 characters
        missing = fills.take(pc.subtract(pa.scalar(count, pa.int32()), pc.utf8_length(cut)))
        parts = (missing, cut) if is_left else (cut, missing)
        return pc.binary_join_element_wise(*parts, "", null_handling="emit_null")

    return by_array(pad)


def _translated(value: Values, found: pa.Scalar, replacements: pa.Scalar) -> Values:
    new = replacements.as_py()
    for character in dict.fromkeys(found.as_py()):
        place = found.as_py().index(character)
        value = pc.replace_substring(value, pattern=character, replacement=new[place : place + 1])
    return value


def escaped(text: str) -> str:
    """Return a pattern of RE2 that matches a text."""
    return "".join(rf"\x{{{ord(character):x}}}" for character in text)


def _indexed(value: Values, delimiter: pa.Scalar, count: pa.Scalar) -> Values:
    end, wanted = escaped(delimiter.as_py()), count.as_py()
    other, more = f"[^{end}]*", abs(wanted) - 1
    pattern = (
        rf"(?s)\A(?P<part>{other}(?:{end}{other}){{0,{more}}})"
        if wanted > 0
        else rf"(?s)(?P<part>(?:{other}{end}){{0,{more}}}{other})\z"
    )
    return pc.struct_field(pc.extract_regex(value, pattern=pattern), [0])


def _of_code(value: pa.Array) -> pa.Array:
    codes = value.fill_null(0).to_numpy(zero_copy_only=False)
    characters = pa.array([chr(n) for n in range(256)], pa.string())
    found = characters.take(pa.array(codes & 255, mask=value.is_null().to_numpy(zero_copy_only=False)))
    return pc.if_else(pc.less(value, 0), "", found)


KERNELS: dict[str, Kernel] = {
    "upper": _cased(pc.ascii_upper, pc.utf8_upper),
    "lower": _cased(pc.ascii_lower, pc.utf8_lower),
    "trim": _trimmer(pc.utf8_trim),
    "ltrim": _trimmer(pc.utf8_ltrim),
    "rtrim": _trimmer(pc.utf8_rtrim),
    "concat": _joined,
    "concat_ws": by_array(_separated),
    "substring": _substring,
    "lpad": _padder(is_left=True),
    "rpad": _padder(is_left=False),
    "repeat": lambda value, count: pc.binary_repeat(value, count.as_py()),
    "reverse": pc.utf8_reverse,
    "replace": lambda value, found, new: pc.replace_substring(value, pattern=found.as_py(), replacement=new.as_py()),
    "translate": _translated,
    "substring_index": by_array(lambda v, d, n: _indexed(v, d[0], n[0]) if len(v) else v),
    "chr": by_array(_of_code),
}
