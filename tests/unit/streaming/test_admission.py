"""Limits of batches, against a loop over the files."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from pyspark_delta.streaming.admission import Admission, Limits

SIZES = st.lists(st.one_of(st.none(), st.integers(0, 20)), max_size=8)
LIMITS = st.builds(Limits, st.none() | st.integers(1, 12), st.none() | st.integers(1, 40))


@given(LIMITS, st.lists(SIZES, max_size=5))
@example(Limits(None, 5), [[5], [0, 0, 1]])
@example(Limits(3, 1), [[None, 0, 0, 0]])
def test_a_file_is_admitted_while_anything_is_left(limits: Limits, commits: list[list[int | None]]) -> None:
    admission = Admission(limits)
    files, size = 0, 0
    for sizes in commits:
        expected = 0
        for one in sizes:
            if (limits.files is not None and files >= limits.files) or (
                limits.bytes is not None and size >= limits.bytes
            ):
                break
            files, size, expected = files + 1, size + (one or 0), expected + 1
        assert admission.take(pa.chunked_array([pa.array(sizes, pa.int64())])) == expected
    assert admission.is_full == (
        (limits.files is not None and files >= limits.files) or (limits.bytes is not None and size >= limits.bytes)
    )


@given(LIMITS, st.lists(st.tuples(st.integers(0, 5), st.integers(0, 30)), max_size=6))
@example(Limits(2, None), [(5, 1), (1, 1)])
@example(Limits(2, None), [(1, 1), (2, 1), (0, 0)])
def test_files_that_belong_together_fit_or_are_first(limits: Limits, commits: list[tuple[int, int]]) -> None:
    admission = Admission(limits)
    files = size = 0
    for count, total in commits:
        fits = (limits.files is None or files + count <= limits.files) and (
            limits.bytes is None or size + total <= limits.bytes
        )
        expected = fits or files == 0 or count == 0
        assert admission.take_together(count, total) == expected
        if expected:
            files, size = files + count, size + total


def test_many_files_need_no_loop() -> None:
    sizes = pa.array(range(1, 1_000_001))
    assert Admission(Limits(None, 10**9)).take(sizes) == 44721  # the first whose sum reaches the limit
    assert Admission(Limits(1000, 10**9)).take(sizes) == 1000
