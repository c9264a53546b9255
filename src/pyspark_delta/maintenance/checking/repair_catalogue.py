"""The catalogue of repairs: which are made without being named, and what each does."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark_delta.maintenance.checking import catalogue as names

WRONG_CHECKPOINTS = "wrong-checkpoints"

OF_WRONG_CHECKPOINTS = ("K01", "K02", "K03", "K06", "S05")
"""Findings of checkpoints that may be deleted once a new one is written."""

AUTOMATIC = (
    names.COMPACTION,
    names.CHECKSUM,
    names.CHECKPOINT,
    names.HINT,
    names.LEFTOVERS,
    names.REQUIRED_FEATURES,
    names.MAX_COLUMN_ID,
    names.IDENTITY,
    names.ROW_ID_MARK,
    names.ROW_IDS,
    names.CLUSTERING,
    names.CARDINALITY,
    names.BOUNDS,
    names.CUBES,
)
"""Repairs that are made without being named, in their order: what later ones need comes first."""

NAMED = (
    names.FEATURES,
    WRONG_CHECKPOINTS,
    names.PARTS,
    names.UNPUBLISHED,
    names.UNKNOWN_FILES,
    names.MISSING_FILES,
    names.CORRUPT_FILES,
    names.DUPLICATES,
    names.SIZES,
    names.VECTORS,
)
"""Repairs that must be named: they enable what had no effect, remove something, or trust a file more than the log."""

OF_LOG = frozenset(
    {
        names.COMPACTION,
        names.CHECKSUM,
        names.LEFTOVERS,
        WRONG_CHECKPOINTS,
        names.PARTS,
        names.UNPUBLISHED,
        names.UNKNOWN_FILES,
    }
)
"""Repairs that delete files of the log, which a catalog must allow as a clean-up of the log (C478)."""

TITLES: Mapping[str, str] = {
    names.COMPACTION: "delete log compactions that differ from their commits",
    names.CHECKSUM: "delete version checksums that differ from the log, and write that of the newest version",
    names.CHECKPOINT: "write a checkpoint of the newest version from the commits",
    names.HINT: "write the hint of the last checkpoint again",
    names.LEFTOVERS: "delete sidecars that no checkpoint names, and temporary files, older than a day",
    names.REQUIRED_FEATURES: "add features to the protocol that types of the schema, domains or other features require",
    names.MAX_COLUMN_ID: "raise the largest column id",
    names.IDENTITY: "advance the high-water marks of identity columns",
    names.ROW_ID_MARK: "advance the high-water mark of row ids",
    names.ROW_IDS: "assign row ids to files that have none",
    names.CLUSTERING: "declare only the clustering columns that the table has",
    names.CARDINALITY: "write the numbers of rows of deletion vectors",
    names.BOUNDS: "compute wrong statistics of files again, and mark bounds as wide",
    names.CUBES: "clear wrong tags of clustered files",
    names.FEATURES: "add features to the protocol that properties, schema or files use without effect",
    WRONG_CHECKPOINTS: "delete checkpoints that differ from the commits",
    names.PARTS: "delete parts of checkpoints that lack other parts, and empty ones, older than a day",
    names.UNPUBLISHED: "delete checkpoints and log compactions of versions that are not published",
    names.UNKNOWN_FILES: "delete files in the log with unknown names, older than a day",
    names.MISSING_FILES: "remove files that do not exist from the table, or copy them from the source of a deep clone",
    names.CORRUPT_FILES: "remove files that cannot be read from the table",
    names.DUPLICATES: "remove one of two references to the same file",
    names.SIZES: "write the sizes of files whose footers agree with the log",
    names.VECTORS: "drop deletion vectors that cannot be read: the rows that they deleted come back",
}
"""What each repair does."""
