"""Deletion vectors inside of the log, for tables made by hand."""

from __future__ import annotations

import numpy as np
from tests.hand_made import Json

from pyspark_delta.deletion_vectors import encode_inline, of_indexes


def vector(*rows: int) -> Json:
    """The member of an add or a remove that marks rows."""
    made = encode_inline(of_indexes(np.array(rows, np.int64)))
    return {
        "deletionVector": {
            "storageType": made.storage_type,
            "pathOrInlineDv": made.path_or_inline_dv,
            "sizeInBytes": made.size_in_bytes,
            "cardinality": made.cardinality,
        }
    }
