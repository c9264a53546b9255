"""Sets of keys that rows are looked up in, many at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_MOST_PLACES = 1 << 24  # a byte each


@dataclass(frozen=True, slots=True)
class KeySet:
    """Distinct values, none null; numbers, dates and times are looked up by their `places`."""

    values: pa.Array
    places: Places | None = None

    @classmethod
    def of(cls, values: pa.Array) -> KeySet:
        """Some values, of any type."""
        return cls(values, Places.of(_numbers(values)) if len(values) and _has_numbers(values.type) else None)

    def mask(self, keys: pa.Array) -> np.ndarray:
        """Whether each key, of the type of the values, is in the set; null never is."""
        if self.places is None:
            is_in: np.ndarray = pc.is_in(keys, value_set=self.values).to_numpy(zero_copy_only=False)
            return is_in
        found = self.places.mask(_numbers(keys))
        return found & keys.is_valid().to_numpy(zero_copy_only=False) if keys.null_count else found


@dataclass(frozen=True, slots=True)
class Places:
    """Numbers, in order, and the places they take: their distances from the least, counted anew behind the last place.

    That is many times as fast as hashing: Arrow would make its table anew for every batch.
    """

    numbers: np.ndarray
    taken: np.ndarray

    @classmethod
    def of(cls, numbers: np.ndarray) -> Places:
        """Some numbers, at least one."""
        numbers = np.sort(numbers)
        span = int(numbers[-1]) - int(numbers[0])
        places = cls(numbers, np.zeros(min(1 << span.bit_length(), _MOST_PLACES), np.bool_))
        places.taken[places._place(places._distances(numbers))] = True
        return places

    def mask(self, numbers: np.ndarray) -> np.ndarray:
        """Which of some numbers are among these."""
        distances = self._distances(numbers)
        found: np.ndarray = self.taken[self._place(distances)]
        if int(self.numbers[-1]) - int(self.numbers[0]) < len(self.taken):  # each has a place of its own
            found &= distances < len(self.taken)
        else:
            maybe = np.flatnonzero(found)
            nearest = np.searchsorted(self.numbers[:-1], numbers[maybe])
            found[maybe] = self.numbers[nearest] == numbers[maybe]
        return found

    def _distances(self, numbers: np.ndarray) -> np.ndarray:
        """How far numbers are above the least; those below it are farther than the greatest."""
        distances: np.ndarray = numbers.view(np.uint64) - self.numbers[0].view(np.uint64)
        return distances

    def _place(self, distances: np.ndarray) -> np.ndarray:
        place: np.ndarray = distances & np.uint64(len(self.taken) - 1)
        return place


def _has_numbers(data_type: pa.DataType) -> bool:
    """Whether values of a type are in the order of whole numbers."""
    types = pa.types
    return bool(types.is_signed_integer(data_type) or types.is_date32(data_type) or types.is_timestamp(data_type))


def _numbers(values: pa.Array) -> np.ndarray:
    """The numbers of values of such a type; 0 for null."""
    if not pa.types.is_integer(values.type):
        values = values.view(pa.int32() if pa.types.is_date32(values.type) else pa.int64())
    numbers: np.ndarray = (values.fill_null(0) if values.null_count else values).cast(pa.int64()).to_numpy()
    return numbers
