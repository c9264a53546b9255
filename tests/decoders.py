"""What tests of decoders share: the rows that PyArrow decodes, and those that Polars does with what it declined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
import pyarrow as pa

from pyspark_delta.data.decoders import CannotDecode, Decoded
from pyspark_delta.data.polars_columns import decodes
from pyspark_delta.data.polars_decoder import PolarsDecoder
from pyspark_delta.data.reader import output_schema, read_batches, read_plan
from pyspark_delta.scan.plan import ScanPlan, ScanTask

_INTEGERS = {pa.float32(): pa.int32(), pa.float64(): pa.int64()}


class Recorder:
    """A decoder that keeps the answers of another one: True for rows, or the reason why it gave none."""

    def __init__(self, decoder: PolarsDecoder) -> None:
        self._decoder = decoder
        self.has_views, self.unit = decoder.has_views, decoder.unit
        self.answers: list[bool | str] = []

    def takes_unopened(self, task: ScanTask) -> bool:
        return self._decoder.takes_unopened(task)

    def decode_files(self, files: Sequence[Any]) -> Decoded | CannotDecode:
        return self._kept(self._decoder.decode_files(files))

    def decode_row_groups(self, *given: Any, **options: Any) -> Decoded | CannotDecode:
        return self._kept(self._decoder.decode_row_groups(*given, **options))

    @property
    def declined(self) -> list[str]:
        """The reasons, without repetition."""
        return list(dict.fromkeys(answer for answer in self.answers if isinstance(answer, str)))

    def _kept(self, answer: Decoded | CannotDecode) -> Decoded | CannotDecode:
        self.answers.append(answer.reason if isinstance(answer, CannotDecode) else True)
        return answer


def recorder(plan: ScanPlan, *, views: bool = True) -> Recorder:
    """A decoder by Polars for a plan whose columns it takes."""
    assert decodes(plan.context, views=views)
    return Recorder(PolarsDecoder(plan.context, output_schema(plan.context), views=views))


def assert_decoded(plan: ScanPlan, *, views: bool = True) -> list[str]:
    """Both decoders give the same rows, bit by bit and in order; the reasons of what Polars declined."""
    decoder = recorder(plan, views=views)
    batches = list(read_batches(plan, decoder=decoder))
    expected = read_plan(plan).read_all()
    if not views:
        assert all(batch.schema.equals(expected.schema) for batch in batches)
        pa.Table.from_batches(batches, expected.schema).validate(full=True)
    same = [bits(pa.Table.from_batches([batch]), expected.schema) for batch in batches]
    found = pa.concat_tables(same) if same else bits(expected.schema.empty_table(), expected.schema)
    wanted = bits(expected, expected.schema)
    assert found.equals(wanted), f"{found.slice(0, 20).to_pylist()} instead of {wanted.slice(0, 20).to_pylist()}"
    return decoder.declined


def bits(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with texts that are no views, and with the bits of floating-point numbers as integers."""
    columns = []
    for field in schema:
        column = rows[field.name].cast(field.type).combine_chunks()
        column = column if isinstance(column, pa.Array) else pa.concat_arrays(column.chunks)
        if field.type in _INTEGERS:
            column = column.fill_null(0).view(_INTEGERS[field.type]), column.is_valid()
            columns += column
        else:
            columns.append(column)
    return pa.Table.from_arrays(columns, names=[str(i) for i in range(len(columns))])


def frame_of(rows: pa.Table) -> pl.DataFrame:
    """The rows as Polars converts them."""
    found = pl.from_arrow(rows)
    assert isinstance(found, pl.DataFrame)
    return found
