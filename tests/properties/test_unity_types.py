"""The types of Unity Catalog's Delta API and the types of the log say the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_delta.catalog.unity.column_info import columns_to_json, schema_of_columns
from pyspark_delta.catalog.unity.type_json import columns_of, schema_string_of
from pyspark_delta.errors import InvalidProposalError
from pyspark_delta.schema.json import parse_schema, schema_to_json
from pyspark_delta.schema.types import (
    BINARY,
    LONG,
    STRING,
    TIMESTAMP_NTZ,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)

# Names and metadata hold the words that are renamed, to see that only those of types are.
words = st.sampled_from(["elementType", "element-type", "type", "containsNull", "a", "key-type", "fields"])
metadata = st.dictionaries(words, st.one_of(st.integers(-5, 5), st.booleans(), st.text(max_size=3)), max_size=2)


def structs(types: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
    fields = st.lists(
        st.builds(StructField, words, types, st.booleans(), metadata),
        min_size=1,
        max_size=3,
        unique_by=lambda f: f.name,
    )
    return fields.map(lambda found: StructType(tuple(found)))


types = st.recursive(
    st.sampled_from([LONG, STRING, BINARY, TIMESTAMP_NTZ, DecimalType(12, 3)]),
    lambda inner: st.one_of(
        st.builds(ArrayType, inner, st.booleans()),
        st.builds(MapType, inner, inner, st.booleans()),
        structs(inner),
    ),
    max_leaves=6,
)
schemas = structs(types)


def keys_of_types(data_type: Any) -> Iterator[str]:
    """The members that types have, without what is in the metadata of fields."""
    if not isinstance(data_type, dict):
        return
    yield from data_type
    for key in ("element-type", "key-type", "value-type"):
        yield from keys_of_types(data_type.get(key))
    for field in data_type.get("fields", ()):
        assert set(field) == {"name", "type", "nullable", "metadata"}
        yield from keys_of_types(field["type"])


@given(schemas)
def test_a_schema_goes_there_and_back(schema: StructType) -> None:
    text = schema_to_json(schema)
    assert orjson.loads(schema_string_of(columns_of(text))) == orjson.loads(text)


@given(schemas)
def test_the_members_of_types_have_hyphens(schema: StructType) -> None:
    known = {"type", "fields", "element-type", "contains-null", "key-type", "value-type", "value-contains-null"}
    assert set(keys_of_types(columns_of(schema_to_json(schema)))) <= known


@given(schemas)
def test_the_columns_of_the_older_endpoints_go_there_and_back(schema: StructType) -> None:
    partitions = [field.name for field in schema][:1]
    text, columns = schema_of_columns(columns_to_json(schema_to_json(schema), partitions))
    assert (parse_schema(text), list(columns)) == (schema, partitions)


def test_a_type_of_the_api_is_that_of_its_description() -> None:
    """The example is from Unity Catalog's own tests of these types."""
    field = {
        "name": "m",
        "type": {
            "type": "map",
            "key-type": "string",
            "value-type": {
                "type": "array",
                "element-type": {
                    "type": "struct",
                    "fields": [{"name": "x", "type": "double", "nullable": False, "metadata": {}}],
                },
                "contains-null": True,
            },
            "value-contains-null": True,
        },
        "nullable": True,
        "metadata": {},
    }
    schema = parse_schema(schema_string_of({"type": "struct", "fields": [field]}))
    assert str(schema) == "struct<m:map<string,array<struct<x:double>>>>"
    assert columns_of(schema_to_json(schema)) == {"type": "struct", "fields": [field]}


@pytest.mark.parametrize("columns", [None, "struct", [], {"type": "array"}, {"fields": []}])
def test_what_is_no_struct_is_refused(columns: Any) -> None:
    with pytest.raises(InvalidProposalError, match="must be a struct"):
        schema_string_of(columns)


def test_types_nested_too_deep_are_refused() -> None:
    nested: Any = "long"
    for _ in range(300):
        nested = {"type": "array", "element-type": nested, "contains-null": True}
    with pytest.raises(InvalidProposalError, match="nested more than"):
        schema_string_of({"type": "struct", "fields": [{"name": "a", "type": nested}]})
