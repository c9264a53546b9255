"""Arrow data of other libraries as data of Delta types: encodings, extension types, variants, and invalid decimals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.data.encodings import decoded, decoded_type
from pyspark_delta.errors import ConstraintViolationError, SchemaMismatchError
from pyspark_delta.schema.arrow import ARROW_VARIANT, VARIANT_STORAGE, is_variant_storage
from pyspark_delta.schema.types import VARIANT, StructType

_EXTENSION = b"ARROW:extension:name"
# The extension types whose values are stored in their storage type: binary, string, list.
_STORED = {"arrow.uuid", "arrow.json", "arrow.fixed_shape_tensor", "geoarrow.wkb", "ogc.wkb", ARROW_VARIANT}
_VARIANT_MEMBERS = {"metadata", "value"}


@dataclass(frozen=True)
class ForeignTypes:
    """How batches of a schema become batches of `schema`, whose columns all have a Delta type or are refused later."""

    schema: pa.Schema
    encoded: frozenset[int]  # columns by their number
    variants: frozenset[int]
    extensions: frozenset[int]
    decimals: frozenset[int]

    @classmethod
    def of(cls, schema: pa.Schema, table: StructType | None) -> ForeignTypes:
        """Return it for data of a schema that is written to a table. A struct is a variant if the table's column is.

        Raises SchemaMismatchError for an extension type whose values have a meaning that the table would lose.
        """
        fields, encoded, variants, extensions, decimals = [], set(), set(), set(), set()
        for number, field in enumerate(schema):
            _check_extensions(field, f"column '{field.name}'")
            if field.type != decoded_type(field.type):
                encoded.add(number)
                field = field.with_type(decoded_type(field.type))
            if _is_variant(field, table):
                variants.add(number)
                field = field.with_type(VARIANT_STORAGE)
            elif isinstance(field.type, pa.BaseExtensionType) and field.type.storage_type.num_fields:
                extensions.add(number)
                field = field.with_type(field.type.storage_type)
            if _has_decimal(field.type):
                decimals.add(number)
            fields.append(field)
        return cls(
            pa.schema(fields), frozenset(encoded), frozenset(variants), frozenset(extensions), frozenset(decimals)
        )

    def converted(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches in `schema`.

        Raises ConstraintViolationError for a decimal with more digits than its type, and SchemaMismatchError for a
        variant that is not two binaries.
        """
        for batch in batches:
            columns = list(batch.columns)
            for number in self.encoded:
                columns[number] = decoded(columns[number])
            for number in self.decimals:
                self._check_decimals(number, columns[number])
            for number in self.extensions:
                columns[number] = columns[number].storage
            for number in self.variants:
                columns[number] = self._variants(number, columns[number])
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema) if columns else batch

    def _check_decimals(self, number: int, values: pa.Array) -> None:
        try:
            values.validate(full=True)
        except pa.ArrowInvalid as error:
            name = self.schema.names[number]
            raise ConstraintViolationError(
                f"A value of the column '{name}' does not fit its type {values.type}: {error}. Nothing was committed. "
                "Cast or filter the rows.",
                error_class="DELTA_CAST_OVERFLOW_IN_TABLE_WRITE",
                sqlstate="22003",
                column=name,
            ) from None

    def _variants(self, number: int, values: pa.StructArray) -> pa.StructArray:
        name = self.schema.names[number]
        missing = values.is_null() if values.null_count else None
        members = []
        for member in VARIANT_STORAGE:
            found = pc.struct_field(values, member.name).cast(pa.binary())
            if found.null_count > values.null_count:
                raise SchemaMismatchError(
                    f"A variant of the column '{name}' has no '{member.name}': shredded variants are not written here. "
                    "Nothing was committed. Give the two binaries 'metadata' and 'value' of each variant.",
                    column=name,
                )
            members.append(found.fill_null(b""))
        return pa.StructArray.from_arrays(members, fields=list(VARIANT_STORAGE), mask=missing)


def _is_variant(field: pa.Field, table: StructType | None) -> bool:
    if is_variant_storage(field.type) or not pa.types.is_struct(field.type):
        return False
    if {member.name for member in field.type} != _VARIANT_MEMBERS:
        return False
    target = None if table is None else table.find(field.name)
    return _extension(field) == ARROW_VARIANT or (target is not None and target.type == VARIANT)


def _check_extensions(field: pa.Field, where: str) -> None:
    found = _extension(field)
    if found is not None and found not in _STORED:
        raise SchemaMismatchError(
            f"The {where} has the extension type '{found}', whose values no Delta type has. Cast it to another type, "
            "such as a string, a number or a decimal. Nothing was written.",
            column=where,
        )
    storage = field.type.storage_type if isinstance(field.type, pa.BaseExtensionType) else field.type
    for member in _members(storage):
        _check_extensions(member, f"field '{member.name}' of {where}")


def _extension(field: pa.Field) -> str | None:
    if isinstance(field.type, pa.BaseExtensionType):
        return str(field.type.extension_name)
    name = (field.metadata or {}).get(_EXTENSION)
    return None if name is None else name.decode()


def _has_decimal(data_type: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(data_type)) or any(_has_decimal(member.type) for member in _members(data_type))


def _members(data_type: pa.DataType) -> list[pa.Field]:
    """Return the fields inside a type; an encoding has its values as a field."""
    if pa.types.is_dictionary(data_type) or pa.types.is_run_end_encoded(data_type):
        return [pa.field("values", data_type.value_type)]
    return [data_type.field(number) for number in range(data_type.num_fields)]
