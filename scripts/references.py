"""Writes docs/error-classes.md and docs/table-properties.md from the code; `--check` compares only.

An error class has its cause in its docstring. What to do is here, one sentence for each class: a message often knows
more, because it knows the values.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

from pyspark_delta import errors
from pyspark_delta.protocol import properties
from pyspark_delta.protocol.properties import TableProperty

DOCS = Path(__file__).parents[1] / "docs"

REMEDIES = {
    "AppendOnlyTableError": "Append instead, or set `delta.appendOnly` to `false`.",
    "AttemptsExhaustedError": "Run the operation again with fewer concurrent writers, or write other partitions.",
    "CatalogError": "Follow the reason of the catalog in the message.",
    "CatalogNameExistsError": "Choose another name, or drop what has it.",
    "CatalogNameNotFoundError": "Check the name, and list what the catalog has.",
    "CatalogUnavailableError": "Check the history of the table before you repeat a write; reads can be repeated.",
    "ChangedRowsError": "Start the stream with `skipChangeCommits`, `ignoreDeletes` or `readChangeFeed`.",
    "ChecksumMismatchError": "Check the table with `pyspark-delta check`, which names a repair.",
    "CommitConflictError": "Run the operation again: it reads the version that won.",
    "CommitError": "See the subclass.",
    "CommitStateUnknownError": "Look for the commit in the history before you repeat the operation.",
    "ComputationError": "Correct the values, or leave such rows out by a condition.",
    "ConcurrentAppendError": "Run it again. Conditions on partition columns avoid the conflict.",
    "ConcurrentDeleteDeleteError": "Run it again. Let statements change different files or partitions.",
    "ConcurrentDeleteReadError": "Run it again. Narrow the condition, so that fewer files are read.",
    "ConcurrentTransactionError": "Give each writer an application id of its own; the other write may be this one.",
    "ConcurrentWriteError": "Make the DataFrame or plan again from the current version.",
    "ConstraintViolationError": "Correct the row in the message, or drop the constraint.",
    "CorruptLogError": "Restore the file that `path` names from a backup, or run `pyspark-delta repair`.",
    "DataFileError": "Restore the file that `path` names, or remove it from the table with `pyspark-delta repair`.",
    "DeletionVectorError": "Run `pyspark-delta check`, or restore an earlier version of the table.",
    "DeltaError": "See the subclass.",
    "DeltaWarning": "Follow the message; the result is right.",
    "FileAlreadyExistsError": "Another writer made the file; run the operation again.",
    "FileNotFoundInStoreError": "Check the path; VACUUM may have removed a file that an old version needs.",
    "InvalidOffsetError": "Use the checkpoint with the table it was made for, or begin with a new checkpoint.",
    "InvalidOperationError": "Use the alternative that the message names.",
    "InvalidOptionError": "Correct the option; the message lists what is allowed.",
    "InvalidPredicateError": "Correct the condition; the message shows the place or the columns.",
    "InvalidProposalError": "Correct the request; repeating it cannot succeed.",
    "InvalidTableError": "Run `pyspark-delta check`, which explains the violation and names a repair.",
    "MaintenanceNotAllowedError": "Let the catalog do this maintenance, or ask its administrator.",
    "MetadataChangedError": "Run the operation again: it uses the new schema and properties.",
    "MissingDependencyError": "Run the command in the message, or `pyspark-delta doctor`.",
    "NotAuthorizedError": "Pass a token with the right to do this.",
    "NotDeltaTableError": "Read it with its own format, or convert it.",
    "PathAccessError": "Open the table by its name in the catalog.",
    "PermissionDeniedError": "Give the credentials the right that the message names.",
    "ProtocolChangedError": "Run the operation again; upgrade this package if the new protocol is not supported.",
    "PublishedMismatchError": "Stop the writer that bypasses the catalog, then run `pyspark-delta catalog repair`.",
    "RatificationConflictError": "Run the operation again.",
    "SchemaMismatchError": "Correct the columns, or write with the option `mergeSchema`.",
    "SqlSyntaxError": "Correct the statement at the marker.",
    "StaleMetadataError": "Run the operation again: it reads the metadata.",
    "StorageError": "Check the location in `path`, the network and the storage options.",
    "StoreThrottledError": "Wait, or spread the load; `maxFilesPerTrigger` and `optimize` reduce requests.",
    "StreamDataLossError": "Start with `failOnDataLoss` = `false`, and accept that versions are skipped.",
    "StreamError": "See the subclass.",
    "StreamSchemaError": "Start the query again with a new DataFrame, or use `schemaTrackingLocation`.",
    "TableAlreadyExistsError": "Append, overwrite, or choose another location.",
    "TableNotFoundError": "Check the location; `Table.create` or a write makes a table.",
    "TableReplacedError": "Open the table again by its name.",
    "TimestampOutOfRangeError": "Choose a time within the range in the message.",
    "TooManyUnpublishedError": "Run `pyspark-delta catalog publish`, and see why publishing fails.",
    "UnsupportedDataFileError": "Read the table in a session with `enable(spark)`.",
    "UnsupportedFeatureError": "Upgrade this package, or drop the feature with the engine that added it.",
    "UnsupportedTableError": "Follow the message: it names what is not supported.",
    "VersionNotFoundError": "Choose one of the versions in the message.",
}

ERRORS = """# Error classes

All errors, with their cause and what to do. [Errors](errors.md) explains how to catch them. Messages begin with the
error class, so this page can be searched for it. A class may set a more specific error class for some of its causes.
`make references` writes this page from the code.

"""
PROPERTIES = """# Table properties

The properties of a table that pyspark-delta knows, with their defaults. Set them with
`ALTER TABLE t SET TBLPROPERTIES ('delta.appendOnly' = 'true')`, `DeltaTable.alter()`, `Table.alter`, or
`pyspark-delta set`. Other keys that begin with `delta.` are refused; keys without this prefix are free.
`make references` writes this page from the code.

"""


def render_errors() -> str:
    """Return the page of error classes: one section each, in the order of the alphabet."""
    return ERRORS + "\n".join(line for found in classes() for line in _section(found))


def classes() -> list[type]:
    """Return the public classes, without their second names."""
    named = {name: getattr(errors, name) for name in errors.__all__}
    return [found for name, found in sorted(named.items()) if inspect.isclass(found) and found.__name__ == name]


def _section(found: type) -> Iterator[str]:
    """Yield the lines of one class. A class without a remedy is a KeyError: write one."""
    yield f"## {found.__name__}"
    yield ""
    cause = inspect.cleandoc(found.__doc__ or "").partition("\n\n")[0].replace("\n", " ")
    yield f"**Cause.** {cause}"
    yield ""
    yield f"**What to do.** {REMEDIES[found.__name__]}"
    yield ""
    facts = [f"Error class `{getattr(found, 'error_class', '')}`"]
    if getattr(found, "sqlstate", ""):
        facts.append(f"SQLSTATE `{found.sqlstate}`")
    others = [name for name in errors.__all__ if getattr(errors, name) is found and name != found.__name__]
    facts += [f"also named `{name}`" for name in others]
    if found.__bases__[0] in classes():
        base = found.__bases__[0].__name__
        facts.append(f"a subclass of [{base}](#{base.lower()})")
    if "pyspark_class" in vars(found) and found is not errors.DeltaError:
        facts.append(f"with PySpark also a `{found.pyspark_class}`")
    yield f"{', '.join(facts)}."
    yield ""


def render_properties() -> str:
    """Return the page of table properties."""
    lines = ["| Property | Default | Meaning |", "|---|---|---|"]
    known = {found.name: found for found in vars(properties).values() if isinstance(found, TableProperty)}
    for name, found in sorted(known.items()):
        default = "" if found.default_text is None else f"`{found.default_text}`"
        meaning = found.meaning.replace("|", "\\|")
        alias = f" Also `{found.alias}`." if found.alias else ""
        lines.append(f"| `{name}` | {default} | {meaning}{alias} |")
    return PROPERTIES + "\n".join(lines) + "\n"


PAGES = {"error-classes.md": render_errors, "table-properties.md": render_properties}


def main(arguments: list[str]) -> int:
    """Write the pages, or compare them; 1 if one differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare only")
    options = parser.parse_args(arguments)
    stale = [name for name, render in PAGES.items() if _differs(DOCS / name, render())]
    if options.check:
        for name in stale:
            sys.stderr.write(f"docs/{name} is stale: run `make references`.\n")
        return 1 if stale else 0
    for name in stale:
        (DOCS / name).write_text(PAGES[name](), encoding="utf-8")
    return 0


def _differs(page: Path, text: str) -> bool:
    return not page.exists() or page.read_text(encoding="utf-8") != text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
