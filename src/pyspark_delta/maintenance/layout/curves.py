"""Positions on space-filling curves, by tables: the Z-order curve and the Hilbert curve of any number of columns.

A Hilbert curve is described by states, as in "Compact Hilbert Indices" by Hamilton and Rau-Chaplin: in each state, one
bit of every column gives the next digit of the position and the next state. Several bits are looked up at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from pyspark_delta.maintenance.layout.order_keys import Words

Numbers: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

MOST_BITS = 60  # of a position
_BITS_AT_ONCE = 8  # of a position, in one look-up
_BLOCK = 1 << 15  # rows


def most_bits(columns: int) -> int:
    """Return how many bits of each column fit into a position; at most 10."""
    return min(10, MOST_BITS // columns)


def zorder_positions(columns: Sequence[Numbers], bits: int) -> Words:
    """Return the position of each row on the Z-order curve. The numbers of columns are below `2 ** bits`.

    The bits of the columns are interleaved, with that of the first column as the most significant one.
    """
    count = len(columns)
    spread = _spread(bits, count)
    positions: Words = np.zeros(len(columns[0]), np.uint64)
    for number, column in enumerate(columns):
        positions |= spread[column] << np.uint64(count - 1 - number)
    return positions


def hilbert_positions(columns: Sequence[Numbers], bits: int) -> Words:
    """Return the position of each row on the Hilbert curve. The numbers of columns are below `2 ** bits`."""
    count = len(columns)
    if count == 1:
        return np.asarray(columns[0]).astype(np.uint64)
    interleaved = zorder_positions(columns, bits)
    digits = max(1, _BITS_AT_ONCE // count)
    following, positions = _steps(count, digits)
    width = count * digits
    mask, shift = np.uint64((1 << width) - 1), np.uint64(width)
    steps = -(-bits // digits)
    result: Words = np.zeros(len(interleaved), np.uint64)
    for start in range(0, len(interleaved), _BLOCK):
        block = interleaved[start : start + _BLOCK]
        state, found = np.zeros(len(block), np.intp), np.zeros(len(block), np.uint64)
        for step in range(steps - 1, -1, -1):
            at = (state << width) | ((block >> np.uint64(step * width)) & mask).astype(np.intp)
            found = (found << shift) | positions[at]
            state = following[at]
        result[start : start + _BLOCK] = found
    return result


@cache
def _spread(bits: int, gap: int) -> Words:
    """Return for each number its bits with `gap - 1` zeros between them."""
    numbers = np.arange(1 << bits, dtype=np.uint64)
    spread: Words = np.zeros(1 << bits, np.uint64)
    for bit in range(bits):
        spread |= ((numbers >> np.uint64(bit)) & np.uint64(1)) << np.uint64(bit * gap)
    return spread


@cache
def _steps(columns: int, digits: int) -> tuple[Numbers, Words]:
    """Return the next state, and the next digits of the position, by state and interleaved bits."""
    following, digit = _states(columns)
    states, width = following.shape[0], columns * digits
    inputs = np.arange(1 << width, dtype=np.intp)
    state = np.repeat(np.arange(states, dtype=np.intp)[:, None], 1 << width, axis=1)
    found = np.zeros((states, 1 << width), np.uint64)
    for step in range(digits - 1, -1, -1):
        part = np.broadcast_to((inputs >> (step * columns)) & ((1 << columns) - 1), state.shape)
        found = (found << np.uint64(columns)) | digit[state, part]
        state = following[state, part]
    return state.reshape(-1), found.reshape(-1)


@cache
def _states(columns: int) -> tuple[Numbers, Words]:
    """Return the states of a Hilbert curve: the next state, and the digit, by state and bits.

    A state is the corner where the curve enters the cube, and the direction in which it leaves it.
    """
    corners = 1 << columns
    numbers: dict[tuple[int, int], int] = {(0, 0): 0}
    waiting, following, digits = [(0, 0)], [], []
    for entry, direction in waiting:
        row, out = [0] * corners, [0] * corners
        for bits in range(corners):
            turned = _rotated(bits ^ entry, -(direction + 1), columns)
            digit = _inverse_gray(turned)
            then = (
                entry ^ _rotated(_entry(digit), direction + 1, columns),
                (direction + _direction(digit, columns) + 1) % columns,
            )
            if then not in numbers:
                numbers[then] = len(numbers)
                waiting.append(then)
            row[bits], out[bits] = numbers[then], digit
        following.append(row)
        digits.append(out)
    return np.array(following, np.intp), np.array(digits, np.uint64)


def _rotated(bits: int, left: int, width: int) -> int:
    left %= width
    return ((bits << left) | (bits >> (width - left))) & ((1 << width) - 1)


def _gray(number: int) -> int:
    return number ^ (number >> 1)


def _inverse_gray(code: int) -> int:
    number = 0
    while code:
        number ^= code
        code >>= 1
    return number


def _entry(digit: int) -> int:
    return 0 if digit == 0 else _gray(2 * ((digit - 1) // 2))


def _direction(digit: int, columns: int) -> int:
    if digit == 0:
        return 0
    odd = digit if digit % 2 else digit - 1
    return _trailing_ones(odd) % columns


def _trailing_ones(number: int) -> int:
    return ((number + 1) & -(number + 1)).bit_length() - 1
