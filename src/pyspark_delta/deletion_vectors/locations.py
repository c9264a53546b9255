"""Columns of deletion vector descriptors: the files that hold the vectors, without a loop over descriptors."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.model import DeletionVectorDescriptor
from pyspark_delta.deletion_vectors import z85
from pyspark_delta.deletion_vectors.files import UUID_LENGTH, deletion_vector_path
from pyspark_delta.storage.paths import join
from pyspark_delta.storage.percent import absolute_path_column, resolve_column

_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_DIGITS = np.array([at for at in range(36) if at not in (8, 13, 18, 23)])  # of a UUID's text


def vector_locations(table_location: str, vectors: pa.StructArray) -> pa.Array:
    """Return the distinct locations of the files that hold deletion vectors (C258-C260); inline vectors have none.

    Raises DeletionVectorError for a descriptor that is not valid, CorruptLogError for a path that is not.
    """
    return each_vector_location(table_location, vectors).drop_null().unique()


def each_vector_location(table_location: str, vectors: pa.StructArray) -> pa.Array:
    """Return the location of the file of each deletion vector; null for inline vectors and for none.

    Raises as `vector_locations`.
    """
    found = pa.nulls(len(vectors), pa.string())
    if vectors.null_count == len(vectors):
        return found
    kinds, texts = vectors.flatten()[:2]
    for kind in kinds.drop_null().unique().to_pylist():
        if kind not in ("i", "p", "u"):
            _location_of(table_location, kind, "")  # raises
    for kind, resolve in (("p", resolve_column), ("u", _relative)):
        chosen = pc.fill_null(pc.equal(kinds, kind), False)
        coded = texts.filter(chosen).dictionary_encode()
        found = pc.replace_with_mask(found, chosen, resolve(table_location, coded.dictionary).take(coded.indices))
    return found


def with_absolute_paths(table_location: str, vectors: pa.StructArray) -> pa.StructArray:
    """Return the same deletion vectors with absolute paths (C260), for the log of another table; inline ones stay.

    Raises as `vector_locations`.
    """
    locations = each_vector_location(table_location, vectors)
    stored = locations.is_valid()
    kinds, texts, *others = vectors.flatten()
    kinds = pc.if_else(stored, "p", kinds)
    texts = pc.replace_with_mask(texts, stored, absolute_path_column(locations.drop_null()))
    return pa.StructArray.from_arrays([kinds, texts, *others], fields=list(vectors.type), mask=vectors.is_null())


def _relative(table_location: str, texts: pa.Array) -> pa.Array:
    """Return the locations for texts that end in an encoded UUID, after a directory if there is one (C258)."""
    encoded = pc.utf8_slice_codeunits(texts, -UUID_LENGTH)
    directories = pc.utf8_slice_codeunits(texts, 0, -UUID_LENGTH)
    is_valid = pc.and_(pc.equal(pc.utf8_length(encoded), UUID_LENGTH), pc.invert(pc.match_substring(directories, "..")))
    try:
        if not pc.all(is_valid).as_py():
            raise ValueError("a text is too short, or its directory is unusual")
        uuids = _uuid_texts(z85.decode("".join(encoded.to_pylist())))
    except ValueError:  # one by one, so that the error names the text
        return pa.array([_location_of(table_location, "u", text) for text in texts.to_pylist()], pa.string())
    below = pc.if_else(pc.equal(directories, ""), "", pc.binary_join_element_wise(directories, "", "/"))
    return pc.binary_join_element_wise(join(table_location, ""), below, "deletion_vector_", uuids, ".bin", "")


def _uuid_texts(data: bytes) -> pa.Array:
    """Return the texts of UUIDs, 16 bytes each."""
    octets = np.frombuffer(data, np.uint8).reshape(-1, 16)
    names = np.full((len(octets), 36), ord("-"), np.uint8)
    names[:, _DIGITS[0::2]] = _HEX[octets >> 4]
    names[:, _DIGITS[1::2]] = _HEX[octets & 15]
    return pa.array(names.reshape(-1).view("S36"), pa.binary()).cast(pa.string())


def _location_of(table_location: str, kind: str, text: str) -> str | None:
    descriptor = DeletionVectorDescriptor(storage_type=kind, path_or_inline_dv=text, size_in_bytes=0, cardinality=0)
    return deletion_vector_path(table_location, descriptor)
