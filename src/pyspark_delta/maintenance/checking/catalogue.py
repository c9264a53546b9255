"""The catalogue of checks: for each id its severity, the rules it follows, how much it reads, and what to do.

An error means that readers fail or return wrong rows; a warning, that a rule is broken or a failure will follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How bad a finding is, worst first."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Check:
    """One check. `level` is the least level that runs it; `repair` names the repair of its findings, or is empty."""

    id: str
    title: str
    severity: Severity
    rule: str
    level: str
    advice: str
    repair: str = ""


_E, _W, _I = Severity
_RESTORE_FILE = "Restore the file from a copy."
_NEW_CHECKPOINT = "Write a new checkpoint."
_REWRITE = "Have the writer that made the commit corrected; a RESTORE to the version before removes its effect."
_DECLARE = "Correct the metadata with the engine that declared it."
_STATISTICS = "Recompute the statistics of the file, or rewrite it."

CHECKPOINT, HINT, COMPACTION, CHECKSUM = "checkpoint", "hint", "compaction", "checksum"
MISSING_FILES, CORRUPT_FILES, DUPLICATES = "missing-files", "corrupt-files", "duplicate-files"
FEATURES, REQUIRED_FEATURES, MAX_COLUMN_ID = "features", "required-features", "max-column-id"
IDENTITY, ROW_ID_MARK, ROW_IDS = "identity", "row-id-mark", "row-ids"
CLUSTERING, BOUNDS, CUBES = "clustering-columns", "statistics", "cube-tags"
CARDINALITY, SIZES, VECTORS = "vector-cardinality", "file-sizes", "drop-vector"
PARTS, UNPUBLISHED = "checkpoint-parts", "unpublished-checkpoints"
LEFTOVERS, UNKNOWN_FILES = "log-leftovers", "unknown-files"

_ALL = (
    # ------------------------------------------------------------------------------------------------- log files
    Check("L01", "versions without a gap", _E, "C001, C017", "log", _RESTORE_FILE),
    Check("L02", "lines of commits", _E, "C011", "log", _RESTORE_FILE),
    Check("L03", "members of actions", _E, "C127-C210", "log", _REWRITE),
    Check("L04", "actions that contradict each other", _E, "C148, C181, C189, C221", "log", _REWRITE),
    Check("L05", "one path added twice", _E, "C279", "log", _REWRITE),
    Check("L06", "two vectors of a live file", _E, "C279", "log", "Remove one of the two.", DUPLICATES),
    Check("L07", "actions of checkpoints in commits", _W, "C073", "log", "Readers ignore them; nothing is lost."),
    Check(
        "L08",
        "unknown names in the log",
        _I,
        "C010, C030",
        "log",
        "Delete the file if no program uses it.",
        UNKNOWN_FILES,
    ),
    Check(
        "L09",
        "times of commit files",
        _W,
        "C360",
        "log",
        "Travel to versions by their number, or enable delta.enableInCommitTimestamps.",
    ),
    Check(
        "L10",
        "retention of log and files",
        _W,
        "C364",
        "log",
        "Set delta.logRetentionDuration to at least delta.deletedFileRetentionDuration.",
    ),
    Check("L11", "removals from an append-only table", _W, "C376", "log", _REWRITE),
    Check("L12", "rows of commits that change none", _E, "C149, C155", "log", _REWRITE),
    # ----------------------------------------------------------------------------------------------- checkpoints
    Check("K01", "contents of checkpoints", _E, "C022, C045", "log", _NEW_CHECKPOINT, CHECKPOINT),
    Check("K02", "files in checkpoints", _E, "C053, C061", "log", _NEW_CHECKPOINT, CHECKPOINT),
    Check("K03", "structure of checkpoints", _E, "C066, C068", "log", _NEW_CHECKPOINT, CHECKPOINT),
    Check("K04", "sidecars", _E, "C070-C072", "list", _NEW_CHECKPOINT, CHECKPOINT),
    Check("K05", "parts of checkpoints", _W, "C030, C032", "log", "Delete the parts.", PARTS),
    Check("K06", "kind of checkpoints", _W, "C034, C038", "log", _NEW_CHECKPOINT, CHECKPOINT),
    Check("K07", "hint of the last checkpoint", _W, "C080-C095", "log", "Write the hint again.", HINT),
    Check("K08", "log compactions", _E, "C099-C102", "log", "Delete the compaction.", COMPACTION),
    Check("K09", "version checksums", _W, "C105-C126", "log", "Write the checksum again.", CHECKSUM),
    Check("K10", "sidecars and temporary files that nothing names", _I, "C369", "list", "Delete them.", LEFTOVERS),
    Check("K11", "protected checkpoints", _E, "C229", "log", _RESTORE_FILE),
    Check("K12", "distance of checkpoints", _I, "C026", "log", _NEW_CHECKPOINT, CHECKPOINT),
    Check("K13", "checkpoints of unpublished versions", _W, "C476", "log", "Publish the commits.", UNPUBLISHED),
    # ------------------------------------------------------------------------------------------------ declaration
    Check("P01", "protocol", _E, "C002, C222, C226, C230", "log", "Have a writer commit a consistent protocol."),
    Check("P02", "features in use", _E, "C227, C235", "log", "Add the feature to the protocol.", FEATURES),
    Check("P03", "required features", _E, "C231", "log", "Add the feature to the protocol.", REQUIRED_FEATURES),
    Check("P04", "table properties", _W, "C231, C295", "log", "Set the property to a legal value, or unset it."),
    Check("P05", "schema", _E, "C134, C426-C433", "log", _DECLARE),
    Check("P06", "column mapping", _E, "C236-C245", "log", _DECLARE, MAX_COLUMN_ID),
    Check("P07", "constraints and expressions", _W, "C379-C394", "log", _DECLARE),
    Check("P08", "identity columns", _E, "C395-C401", "log", "Advance the high-water mark.", IDENTITY),
    Check("P09", "clustering columns", _W, "C347-C351", "log", "Declare the clustering columns again.", CLUSTERING),
    Check("P10", "Iceberg compatibility", _W, "C283-C301", "log", _DECLARE),
    Check("P11", "type changes", _E, "C434", "log", _DECLARE),
    Check("P12", "features that were dropped", _W, "C229", "log", "Keep the versions before it out of use."),
    Check("P13", "metadata domains", _W, "C201, C209", "log", "Have the writer of the domain correct it."),
    # ------------------------------------------------------------------------------------------------------ files
    Check(
        "F01", "existence of files", _E, "C138", "list", "Restore the file, or remove it from the log.", MISSING_FILES
    ),
    Check(
        "F02",
        "sizes of files",
        _E,
        "C140",
        "list",
        "Restore the file; if it is known to be right, the repair file-sizes writes its size to the log.",
        SIZES,
    ),
    Check("F03", "files that are live twice", _E, "C144, C220", "log", "Remove one of the two.", DUPLICATES),
    Check("F04", "partition values", _E, "C139, C373, C416-C425", "log", _REWRITE),
    Check("F05", "directories of partitions", _I, "C007", "log", "Readers of directories see other values; none else."),
    Check("F06", "numbers of records", _E, "C404, C405", "footer", _STATISTICS, BOUNDS),
    Check("F07", "columns of files", _E, "C241, C436-C443", "footer", "Rewrite the file with the types of the table."),
    Check("F08", "rows of files", _E, "C003", "data", "Restore the file, or remove it from the log.", CORRUPT_FILES),
    Check("F09", "files outside of the table", _W, "C138", "list", "Copy the table, so that it has its own files."),
    Check("F10", "removed files within the retention", _W, "C158, C159", "list", "Earlier versions are incomplete."),
    Check("F11", "files that no version needs", _I, "C016", "list", "Run a vacuum."),
    Check("F12", "change data files", _W, "C162-C166", "list", "The change data feed of the version is lost."),
    Check("F13", "hidden names of data files", _I, "C005", "log", "Rewrite the file."),
    Check("F14", "small files", _I, "C026", "log", "Compact the files."),
    # ------------------------------------------------------------------------------- statistics, vectors, row ids
    Check("S01", "text of statistics", _E, "C141, C256, C405", "log", _STATISTICS, BOUNDS),
    Check("S02", "values of statistics", _E, "C407", "log", _STATISTICS, BOUNDS),
    Check("S03", "bounds of statistics", _E, "C408-C412", "footer", _STATISTICS, BOUNDS),
    Check("S04", "tight bounds", _W, "C413", "log", _STATISTICS, BOUNDS),
    Check("S05", "statistics as text and as columns", _E, "C053", "log", _NEW_CHECKPOINT, CHECKPOINT),
    Check(
        "D01",
        "deletion vectors",
        _E,
        "C257-C277",
        "log",
        "Restore the file of the deletion vector. The repair drop-vector makes the file readable, and its deleted rows "
        "come back.",
        VECTORS,
    ),
    Check("D02", "rows of deletion vectors", _E, "C280", "log", _REWRITE, CARDINALITY),
    Check("D03", "deletion vectors without their feature", _E, "C251", "log", "Add the feature.", FEATURES),
    Check("D04", "places of deletion vectors", _I, "C008", "log", "Run a purge, which leaves no deletion vectors."),
    Check("D05", "files without rows", _I, "C255", "log", "Compact the files."),
    Check("R01", "row ids of files", _E, "C325", "log", "Number the files.", ROW_IDS),
    Check("R02", "row ids that occur twice", _E, "C330, C334", "log", "Have the writer corrected.", ROW_ID_MARK),
    Check("R03", "row commit versions", _W, "C335", "log", _REWRITE),
    Check("R04", "stored row ids", _E, "C338", "data", _REWRITE),
    Check("R05", "columns of stored row ids", _E, "C336, C337", "log", _DECLARE),
    Check("U01", "tags of clustered files", _I, "C352", "log", "Clear the tags.", CUBES),
    # ---------------------------------------------------------------------------------------------------- history
    Check("T01", "in-commit timestamps", _E, "C356, C357", "log", "Travel to versions by their number."),
    Check("T02", "enablement of in-commit timestamps", _E, "C358, C359", "log", _DECLARE),
    Check("T03", "provenance of commits", _I, "C194", "log", "Have the writer corrected."),
    Check("T04", "operations that did not end", _I, "C192", "log", "Run the operation again."),
    Check("T05", "reach of time travel", _I, "C016", "list", "Copy versions that must stay, before a vacuum."),
    Check("A01", "commits of the catalog", _E, "C444-C473", "log", "Publish the commits of the catalog."),
)

CHECKS: Mapping[str, Check] = {check.id: check for check in _ALL}
"""All checks by id."""
