"""The options of a DataFrame write, by delta-spark's names, which compare regardless of case."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark_delta.actions.model import SetTransaction
from pyspark_delta.data.writer import COMPRESSIONS
from pyspark_delta.errors import DeltaWarning, InvalidOptionError
from pyspark_delta.transaction.write_plan import FileOptions

MODES = ("append", "overwrite", "error", "errorifexists", "ignore")

# Options of delta-spark that change what a write does, with the values that ask for nothing.
_LATER: Mapping[str, tuple[str, ...]] = {
    "mergeSchema": ("false",),
    "overwriteSchema": ("false",),
    "replaceWhere": (),
    "replaceOn": (),
    "replaceUsing": (),
    "targetAlias": (),
    "partitionOverwriteMode": ("static", "legacy"),
    "dataChange": ("true",),
    "optimizeWrite": ("false",),
    "clusterBy": (),
    "writePartitionColumns": ("false",),
}
_KNOWN = (
    "userMetadata",
    "txnAppId",
    "txnVersion",
    "maxRecordsPerFile",
    "compression",
    "targetFileSize",
    "path",
    "parquet.writer.version",
    "spark.sql.parquet.outputTimestampType",
)
_STORAGE_PREFIXES = ("fs.", "dfs.", "spark.hadoop.fs.", "aws_", "azure_", "google_", "allow_http", "endpoint", "region")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """The options of one write, checked. `properties` are the table properties for a new table."""

    files: FileOptions = field(default_factory=FileOptions)
    user_metadata: str | None = None
    transaction: SetTransaction | None = None
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)


def parse_mode(mode: str | None) -> str:
    """The save mode: append, overwrite, error or ignore. Raises InvalidOptionError listing the valid ones."""
    text = (mode or "error").lower()
    if text not in (*MODES, "default"):
        near = difflib.get_close_matches(text, MODES, n=1)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        raise InvalidOptionError(f"'{mode}' is not a save mode; valid modes are {', '.join(MODES)}.{hint}", mode=mode)
    return "error" if text in ("errorifexists", "default") else text


def parse_options(options: Mapping[str, object] | None) -> WriteOptions:
    """Check the options of a write.

    Raises InvalidOptionError for an illegal value, and for an option that this version does not have yet: a write that
    ignored it would do something else than asked. An unknown option is passed over with a DeltaWarning.
    """
    given = {str(key).lower(): (str(key), _text(value)) for key, value in (options or {}).items() if value is not None}
    _refuse_later(given)
    _warn_unknown(given)
    return WriteOptions(
        files=FileOptions(
            compression=_compression(given),
            max_records_per_file=_positive(given, "maxRecordsPerFile"),
            target_file_size=_positive(given, "targetFileSize"),
            storage_options={key: value for folded, (key, value) in given.items() if _is_storage(folded)},
        ),
        user_metadata=_get(given, "userMetadata"),
        transaction=_transaction(given),
        properties={key: value for folded, (key, value) in given.items() if folded.startswith("delta.")},
    )


_Given = Mapping[str, tuple[str, str]]


def _refuse_later(given: _Given) -> None:
    for name, neutral in _LATER.items():
        value = _get(given, name)
        if value is not None and value.lower() not in neutral:
            raise InvalidOptionError(
                f"The option '{name}' (found '{value}') is planned for the next release; this version does not have it "
                "yet. Nothing was written. Leave the option out, or write with another engine.",
                option=name,
                value=value,
            )


def _warn_unknown(given: _Given) -> None:
    known = {name.lower() for name in (*_KNOWN, *_LATER)}
    for folded, (name, _) in given.items():
        if folded in known or folded.startswith("delta.") or _is_storage(folded):
            continue
        near = difflib.get_close_matches(folded, known, n=1)
        spelled = next((n for n in (*_KNOWN, *_LATER) if near and n.lower() == near[0]), "")
        hint = f" Did you mean '{spelled}'?" if spelled else ""
        warnings.warn(DeltaWarning(f"The write option '{name}' is not known and has no effect.{hint}"), stacklevel=4)


def _is_storage(folded: str) -> bool:
    return folded.startswith(_STORAGE_PREFIXES)


def _get(given: _Given, name: str) -> str | None:
    found = given.get(name.lower())
    return None if found is None else found[1]


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _compression(given: _Given) -> str | None:
    value = _get(given, "compression")
    if value is not None and value.lower() not in COMPRESSIONS:
        raise InvalidOptionError(
            f"'{value}' is not a compression; valid values are {', '.join(COMPRESSIONS)}.", option="compression"
        )
    return value


def _positive(given: _Given, name: str) -> int | None:
    value = _get(given, name)
    if value is None:
        return None
    if not value.strip().isdigit():
        raise InvalidOptionError(f"The option '{name}' is a whole number from 0 on, found '{value}'.", option=name)
    return int(value) or None


def _transaction(given: _Given) -> SetTransaction | None:
    application, version = _get(given, "txnAppId"), _get(given, "txnVersion")
    if application is None and version is None:
        return None
    if application is None or version is None:
        raise InvalidOptionError("Give both options txnAppId and txnVersion, or neither: together they name a write.")
    if not version.strip().isdigit():
        raise InvalidOptionError(f"The option 'txnVersion' is a whole number from 0 on, found '{version}'.")
    return SetTransaction(app_id=application, version=int(version))
