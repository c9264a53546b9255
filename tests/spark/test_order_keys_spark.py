"""Keys of columns against Spark's ORDER BY, for all types that have an order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from pyspark_delta.maintenance.layout.order_keys import has_number_keys, number_keys, ranks_among, sort_order

# Every type has two nulls, equal values, its extremes, and what is special about it.
VALUES = {
    "boolean": "true, false, true",
    "tinyint": "-128Y, -1Y, 0Y, 1Y, 127Y",
    "smallint": "-32768S, -1S, 0S, 32767S",
    "int": "-2147483648, -1, 0, 1, 2147483647",
    "bigint": "-9223372036854775807L - 1L, -1L, 0L, 9223372036854775807L",
    "float": "float('-Infinity'), float(-1.5), float(-0.0), float(0.0), float(1e-45), float('Infinity'), float('NaN')",
    "double": "double('-Infinity'), -1.5D, -0.0D, 0.0D, 4.9E-324D, -4.9E-324D, double('Infinity'), double('NaN')",
    "decimal(9,2)": "-9999999.99, -0.01, 0.00, 0.01, 9999999.99",
    "decimal(38,10)": "'-9999999999999999999999999999.9999999999', '-1E-10', '0', '18446744073709551616', '1E27'",
    "string": "'', 'a', 'b', 'ab', 'aa', 'A', 'ä', 'z', '😀', '\uffee', concat('a', chr(0)), repeat('x', 40), "
    "concat(repeat('x', 40), 'y'), concat(repeat('x', 40), chr(0)), concat(repeat('x', 32), 'y')",
    "binary": "X'', X'00', X'0000', X'7F', X'80', X'FF', X'FF00', X'00112233445566778899', X'0011223344556677'",
    "date": "date'0001-01-01', date'1969-12-31', date'1970-01-01', date'9999-12-31'",
    "timestamp": "timestamp'0001-01-01 00:00:00', timestamp'1969-12-31 23:59:59.999999', timestamp'9999-12-31'",
    "timestamp_ntz": "timestamp_ntz'0001-01-01 00:00:00', timestamp_ntz'1970-01-01 00:00:00.000001'",
    "interval day to second": "interval '-1' day, interval '0' second, interval '1 02:03:04.000005' day to second",
}


def test_keys_have_the_order_of_sparks_order_by(spark: SparkSession) -> None:
    statements = []
    for kind, values in VALUES.items():
        rows = f"select explode(array({values}, null, null)) as v"
        cast = f"cast(v as {kind})"
        ranked = f"select {cast} as v, dense_rank() over (order by {cast}) as place from ({rows})"
        statements.append(f"(select collect_list(struct(v, place)) from ({ranked}))")
    # All types in one job, as columns of lists.
    names = [f"c{number}" for number in range(len(VALUES))]
    found = spark.sql("select " + ", ".join(f"{s} as {n}" for s, n in zip(statements, names, strict=True))).toArrow()
    chance = np.random.default_rng(0)
    for kind, name in zip(VALUES, names, strict=True):
        pairs = found[name].combine_chunks().values
        pairs = pairs.take(pa.array(chance.permutation(len(pairs))))
        values, places = pairs.field("v"), pairs.field("place").to_numpy()
        assert np.all(np.diff(places[sort_order([values])]) >= 0), kind
        if has_number_keys(values.type):
            keys = number_keys(values)
        else:
            distinct = values.drop_null().unique()
            ordered = distinct.take(pa.array(sort_order([distinct])))
            keys = ranks_among(values, as_bytes(ordered))
        by_key = np.argsort(keys, kind="stable")
        assert np.all(np.diff(places[by_key]) >= 0), kind
        assert len(np.unique(keys)) == len(np.unique(places)), kind


def as_bytes(values: pa.Array) -> list[bytes]:
    """Values as bytes in their order: those of binaries and texts, and of decimals from the lowest on."""
    if not pa.types.is_decimal(values.type):
        return [value if isinstance(value, bytes) else value.encode() for value in values.to_pylist()]
    scale = values.type.scale
    return [(int(value.scaleb(scale)) + (1 << 127)).to_bytes(16, "big") for value in values.to_pylist()]
