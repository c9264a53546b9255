"""Sets of keys that rows are looked up in, many at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_MOST_PLACES = 1 << 24  # bytes that a table of all numbers between the least and the greatest key may take


@dataclass(frozen=True, slots=True)
class KeySet:
    """Distinct values, none null. Where they are numbers close to each other, `places` says of each whether it is one.

    That is many times as fast as hashing: Arrow would make its table anew for every batch.
    """

    values: pa.Array
    least: int = 0
    places: np.ndarray | None = None

    @classmethod
    def of(cls, values: pa.Array) -> KeySet:
        """Some values, of any type."""
        if not pa.types.is_signed_integer(values.type) or not len(values):
            return cls(values)
        numbers = values.cast(pa.int64()).to_numpy()
        least, greatest = int(numbers.min()), int(numbers.max())
        if greatest - least >= _MOST_PLACES:
            return cls(values)
        places = np.zeros(greatest - least + 1, np.bool_)
        places[numbers - least] = True
        return cls(values, least, places)

    def mask(self, keys: pa.Array) -> np.ndarray:
        """Whether each key is in the set; null never is."""
        if self.places is None or keys.null_count:
            is_in: np.ndarray = pc.is_in(keys, value_set=self.values).to_numpy(zero_copy_only=False)
            return is_in
        numbers = keys.cast(pa.int64()).to_numpy()
        inside: np.ndarray = (numbers >= self.least) & (numbers <= self.least + (len(self.places) - 1))
        inside[inside] = self.places[numbers[inside] - self.least]
        return inside
