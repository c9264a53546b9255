"""Checks of a proposal that do not depend on the table (C446, C469)."""

from __future__ import annotations

from pyspark_delta.catalog.contract import NewTable, Proposal, RatifiedCommit, StagedFile, TableInfo
from pyspark_delta.catalog.identifiers import shown
from pyspark_delta.catalog.log_tail import staged_path
from pyspark_delta.errors import FileNotFoundInStoreError, InvalidProposalError, InvalidTableError
from pyspark_delta.features import Feature, is_active
from pyspark_delta.log.names import CommitName, parse_name
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.properties import ENABLE_IN_COMMIT_TIMESTAMPS
from pyspark_delta.storage.contract import TableFiles

INLINE_LIMIT = 64 * 1024
"""The maximum size of an inline commit, in bytes."""

_LONGEST_ID = 255
_LARGEST = 2**63 - 1


def check_proposal(table: TableInfo, proposal: Proposal) -> None:
    """Raise InvalidProposalError for a proposal that is invalid in every state of the table."""
    if not table.catalog_managed:
        raise refused(table, proposal.version, "no catalog manages the table; commit to it by its path")
    numbers = (proposal.version, proposal.timestamp, proposal.published_version or 0)
    if not all(0 <= number <= _LARGEST for number in numbers) or proposal.version == 0:
        raise refused(table, proposal.version, "versions must be positive, times not negative, and both fit 64 bits")
    if len(proposal.transaction_id) > _LONGEST_ID or not proposal.transaction_id.isprintable():
        raise refused(
            table, proposal.version, f"its transaction id {shown(proposal.transaction_id)} is too long or not printable"
        )
    if proposal.published_version is not None and proposal.published_version >= proposal.version:
        raise refused(
            table,
            proposal.version,
            f"it reports version {proposal.published_version} as published, which is not an earlier version",
        )
    if (proposal.file is None) == (proposal.content is None):
        raise refused(table, proposal.version, "it must have either a staged file or the content of the commit")
    if proposal.file is not None:
        _check_file(table, proposal.version, proposal.file)


def _check_file(table: TableInfo, version: int, file: StagedFile) -> None:
    name = parse_name(file.name)
    if not isinstance(name, CommitName) or name.uuid is None:
        raise refused(
            table,
            version,
            f"{shown(file.name)} is not the name of a staged commit, '<20 digits of version>.<uuid>.json'",
        )
    if name.version != version:
        raise refused(table, version, f"the file '{file.name}' is for version {name.version} (C446)")
    if not 0 < file.size <= _LARGEST or not 0 <= file.modification_time <= _LARGEST:
        raise refused(table, version, f"the size ({file.size} bytes) or the time of '{file.name}' is not valid")


def check_staged_file(table: TableInfo, store: TableFiles, version: int, file: StagedFile) -> None:
    """Raise InvalidProposalError if the staged file does not exist or has another size."""
    path = staged_path(table.location, file.name)
    try:
        found = store.status(path)
    except FileNotFoundInStoreError:
        raise refused(table, version, f"there is no staged commit '{path}'") from None
    if found.size != file.size:
        raise refused(table, version, f"'{path}' has {found.size} bytes, not {file.size} as proposed")


def _carries_times(new: NewTable) -> bool:
    try:
        return is_active(TableConfiguration(new.protocol, new.metadata), Feature.IN_COMMIT_TIMESTAMP)
    except InvalidTableError:  # an illegal value
        return False


def check_new_table(name: object, new: NewTable) -> None:
    """Raise InvalidProposalError for a first version that does not create a managed table (C449, C450)."""
    missing = [
        feature.value
        for feature in (Feature.CATALOG_MANAGED, Feature.IN_COMMIT_TIMESTAMP)
        if feature not in (new.protocol.writer_features or ())
    ]
    if Feature.CATALOG_MANAGED not in (new.protocol.reader_features or ()) and Feature.CATALOG_MANAGED not in missing:
        missing.append(f"{Feature.CATALOG_MANAGED} (for readers)")
    if missing:
        raise InvalidProposalError(
            f"The table {name} cannot be managed by a catalog: its protocol lacks {' and '.join(missing)}.",
            table=str(name),
        )
    if not _carries_times(new):
        raise InvalidProposalError(
            f"The table {name} cannot be managed by a catalog: its property '{ENABLE_IN_COMMIT_TIMESTAMPS.name}' is "
            "not 'true'.",
            table=str(name),
        )
    if new.version != 0 or not 0 <= new.timestamp <= _LARGEST:
        raise InvalidProposalError(
            f"The table {name} cannot begin with version {new.version} at the timestamp {new.timestamp}; a new table "
            "begins with version 0.",
            table=str(name),
        )


def is_same(commit: RatifiedCommit, proposal: Proposal) -> bool:
    """Return True if a ratified commit has the file name or the transaction id of a proposal."""
    if proposal.file is not None and commit.file_name == proposal.file.name:
        return True
    return bool(proposal.transaction_id) and commit.transaction_id == proposal.transaction_id


def refused(table: TableInfo, version: int, reason: str) -> InvalidProposalError:
    """Return the error for an invalid proposal."""
    return InvalidProposalError(
        f"The catalog refuses version {version} of {table.name}: {reason}.", table=str(table.name), version=version
    )
