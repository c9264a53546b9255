"""Commit rows with identity values: no value is assigned twice, even with concurrent writers (C401).

The values are in the data files before the commit is attempted. A writer that loses a race for identity values reserves
a range in its own commit, then retries. The reservation only moves the high-water marks, so it commits quickly, and the
second attempt cannot lose the same race.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from pyspark_delta.errors import MetadataChangedError
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import CommitDraft, Operation
from pyspark_delta.protocol.identity import differ_in_marks_only, move_marks, next_number
from pyspark_delta.protocol.state import TableState
from pyspark_delta.schema.declaration_keys import IDENTITY_MARK, IDENTITY_STEP
from pyspark_delta.transaction.attempts import commit_draft

_WRITES = 3
_RESERVATIONS = 100


def commit_numbered(
    base: TableState,
    stage: Callable[[TableState], CommitDraft],
    current: Callable[[], TableState],
) -> TableState:
    """Write rows and commit them; return the state of the table at the new version, `base` if nothing changed.

    `stage` writes the rows for a state of the table and returns the draft; the metadata of the draft move the
    high-water marks to the last assigned values. `current` loads the newest state. Raises the errors of `commit_draft`,
    and MetadataChangedError if the metadata changed in more than high-water marks, if the draft is not a blind append,
    or after a few rounds.
    """
    draft = stage(base)
    if draft.is_empty:
        return base
    for _ in range(_WRITES - 1):
        try:
            return commit_draft(draft, base)
        except MetadataChangedError:
            needed = _numbers_used(base, draft)
            if not needed or not draft.is_blind_append:
                raise
            base, numbering = _reserve(base, current, needed, draft)
        draft = _within_reservation(stage(numbering), base)
    return commit_draft(draft, base)


def _reserve(
    base: TableState, current: Callable[[], TableState], needed: Mapping[str, int], draft: CommitDraft
) -> tuple[TableState, TableState]:
    """Reserve the given numbers of values; return the states after and before the reservation."""
    for attempt in range(_RESERVATIONS):
        newest = current()
        if not differ_in_marks_only(_known(base), _known(newest)):
            raise MetadataChangedError(
                f"The metadata of the table was changed while this {draft.operation.name} assigned identity values; "
                "nothing "
                "was committed. Run the operation again on the new metadata.",
                version=newest.version,
            )
        metadata = move_marks(_known(newest), _marks(_known(newest), needed))
        reservation = CommitDraft(
            operation=Operation("SYNC IDENTITY"), metadata=metadata, data_change=False, engine_info=draft.engine_info
        )
        try:
            return commit_draft(reservation, newest), newest
        except MetadataChangedError:
            if attempt == _RESERVATIONS - 1:
                raise
    raise AssertionError


def _numbers_used(base: TableState, draft: CommitDraft) -> dict[str, int]:
    """Return how many values after the high-water marks the draft has used, by column."""
    if draft.metadata is None:
        return {}
    after = TableConfiguration(_known(base).protocol, draft.metadata)
    used = {}
    for field in _known(base).schema:
        moved = after.schema.find(field.name)
        if (
            IDENTITY_STEP in field.metadata
            and moved is not None
            and moved.metadata.get(IDENTITY_MARK) != field.metadata.get(IDENTITY_MARK)
        ):
            used[field.name] = (moved.metadata[IDENTITY_MARK] - next_number(field)) // field.metadata[IDENTITY_STEP] + 1
    return used


def _marks(configuration: TableConfiguration, needed: Mapping[str, int]) -> dict[str, int]:
    return {
        field.name: next_number(field) + (needed[field.name] - 1) * field.metadata[IDENTITY_STEP]
        for field in configuration.schema
        if field.name in needed
    }


def _within_reservation(draft: CommitDraft, base: TableState) -> CommitDraft:
    """Return the draft to commit after the reservation: values beyond it still advance the high-water marks."""
    if draft.metadata is None:
        return draft
    staged = TableConfiguration(_known(base).protocol, draft.metadata)
    marks = {f.name: f.metadata[IDENTITY_MARK] for f in staged.schema if IDENTITY_MARK in f.metadata}
    return replace(draft, metadata=move_marks(_known(base), marks))


def _known(state: TableState) -> TableConfiguration:
    if state.configuration is None:
        raise ValueError("only an existing table has high-water marks")
    return state.configuration
