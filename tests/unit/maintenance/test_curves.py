"""Space-filling curves: every place once, and each step of a Hilbert curve to a neighbour."""

from __future__ import annotations

import numpy as np
import pytest

from pyspark_delta.maintenance.layout.curves import hilbert_positions, most_bits, zorder_positions

CURVES = [(1, 6), (2, 1), (2, 5), (2, 6), (3, 3), (3, 5), (4, 3), (4, 4), (5, 2)]


def grid(columns: int, bits: int) -> list[np.ndarray]:
    axes = np.meshgrid(*[np.arange(1 << bits)] * columns, indexing="ij")
    return [axis.reshape(-1) for axis in axes]


@pytest.mark.parametrize(("columns", "bits"), CURVES)
def test_a_hilbert_curve_visits_every_place_once_in_unit_steps(columns: int, bits: int) -> None:
    places = grid(columns, bits)
    positions = hilbert_positions(places, bits)
    assert np.array_equal(np.sort(positions), np.arange(1 << columns * bits))
    steps = np.abs(np.diff(np.stack(places)[:, np.argsort(positions)], axis=1)).sum(axis=0)
    assert np.all(steps == 1)


def test_zorder_interleaves_the_bits_of_columns() -> None:
    assert zorder_positions([np.array([0b10]), np.array([0b01])], 2).tolist() == [0b1001]
    places = grid(3, 3)
    assert np.array_equal(np.sort(zorder_positions(places, 3)), np.arange(512))


def test_positions_fit_into_64_bits_for_any_number_of_columns() -> None:
    for columns in range(1, 61):
        assert columns * most_bits(columns) <= 60
    assert most_bits(4) == 10
