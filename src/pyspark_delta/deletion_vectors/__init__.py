"""Deletion vectors: sets of row indexes of a data file that are no longer rows of the table (C251-C282)."""

from __future__ import annotations

from pyspark_delta.deletion_vectors.bitmap import check_rows, indexes_between, of_indexes, to_indexes, to_words
from pyspark_delta.deletion_vectors.files import (
    deletion_vector_path,
    encode_inline,
    read_deletion_vector,
    read_deletion_vectors,
    write_deletion_vectors,
)
from pyspark_delta.deletion_vectors.locations import each_vector_location, vector_locations, with_absolute_paths

__all__ = [
    "check_rows",
    "deletion_vector_path",
    "each_vector_location",
    "encode_inline",
    "indexes_between",
    "of_indexes",
    "read_deletion_vector",
    "read_deletion_vectors",
    "to_indexes",
    "to_words",
    "vector_locations",
    "with_absolute_paths",
    "write_deletion_vectors",
]
