"""Whether a commit that won the race leaves a draft valid: the checks, in the order of delta-spark's.

Every conflict names the winning version and its operation. A blind append depends on nothing but the protocol and the
metadata, so it conflicts with nothing else.
"""

from __future__ import annotations

from typing import Any

from pyspark_delta.errors import (
    ConcurrentAppendError,
    ConcurrentDeleteDeleteError,
    ConcurrentTransactionError,
    MetadataChangedError,
    ProtocolChangedError,
)
from pyspark_delta.protocol.draft import CommitDraft
from pyspark_delta.transaction.winner import Winner


def check_conflicts(draft: CommitDraft, winner: Winner) -> None:
    """Raises the CommitConflictError of the first rule that `winner` breaks."""
    _check_protocol(draft, winner)
    _check_metadata(draft, winner)
    _check_transactions(draft, winner)
    _check_appends(draft, winner)
    _check_removes(draft, winner)


def _check_protocol(draft: CommitDraft, winner: Winner) -> None:
    if winner.protocol is None:
        return
    if draft.protocol is not None and winner.version == 0:
        message = f"The table was created by another writer while this {draft.operation.name} was to create it"
    else:
        message = f"The protocol of the table was changed by {winner} while this {draft.operation.name} ran"
    raise ProtocolChangedError(f"{message}; nothing was committed. {_AGAIN}", **_facts(winner))


def _check_metadata(draft: CommitDraft, winner: Winner) -> None:
    if winner.metadata is not None:
        raise MetadataChangedError(
            f"The metadata of the table (schema, partitioning or properties) was changed by {winner} while this "
            f"{draft.operation.name} ran; nothing was committed. {_AGAIN}",
            **_facts(winner),
        )


def _check_transactions(draft: CommitDraft, winner: Winner) -> None:
    domains = {d.domain for d in draft.domains}.intersection(d.domain for d in winner.domains)
    if domains:
        raise ConcurrentTransactionError(
            f"The metadata domain '{min(domains)}' was written by {winner} while this {draft.operation.name} ran; "
            f"nothing was committed. {_AGAIN}",
            **_facts(winner),
        )
    applications = draft.reads.transactions | {t.app_id for t in draft.transactions}
    shared = applications.intersection(t.app_id for t in winner.transactions)
    if shared:
        raise ConcurrentTransactionError(
            f"The application '{min(shared)}' committed {winner} while this {draft.operation.name} of the same "
            "application (txnAppId) ran; nothing was committed. Run one writer per application id.",
            **_facts(winner),
        )


def _check_appends(draft: CommitDraft, winner: Winner) -> None:
    added = next((add for add in winner.adds if add.data_change), None)
    if draft.reads.whole_table and added is not None:
        raise ConcurrentAppendError(
            f"{_capital(winner)} added files, '{added.path}' among them, that this {draft.operation.name} would have "
            f"had to replace; nothing was committed. {_AGAIN}",
            **_facts(winner),
            path=added.path,
        )


def _check_removes(draft: CommitDraft, winner: Winner) -> None:
    if not winner.removes or not draft.removes.num_rows:
        return
    ours = set(draft.removes.column("path").to_pylist())
    shared = next((remove.path for remove in winner.removes if remove.path in ours), None)
    if shared is not None:
        raise ConcurrentDeleteDeleteError(
            f"{_capital(winner)} removed the file '{shared}', which this {draft.operation.name} removes too; nothing "
            f"was committed. {_AGAIN}",
            **_facts(winner),
            path=shared,
        )


_AGAIN = "Run the operation again: it will see the new version."


def _capital(winner: Winner) -> str:
    text = str(winner)
    return text[:1].upper() + text[1:]


def _facts(winner: Winner) -> dict[str, Any]:
    return {"version": winner.version, "operation": winner.info.get("operation")}
