"""Commits of rows that identity columns number: no number is given twice, however many writers there are (C401).

Numbers are in the data files before the commit is tried. When another commit took numbers meanwhile, the rows are
written once more, with numbers that a small commit of its own has reserved: it moves the marks and nothing else, so it
lands quickly, and the second attempt cannot lose the same race.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from pyspark_delta.errors import MetadataChangedError
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import CommitDraft, Operation
from pyspark_delta.protocol.identity import MARK, STEP, differ_in_marks_only, move_marks, next_number
from pyspark_delta.protocol.state import TableState
from pyspark_delta.transaction.attempts import commit_draft

_WRITES = 3
_RESERVATIONS = 100


def commit_numbered(
    base: TableState,
    stage: Callable[[TableState], CommitDraft],
    current: Callable[[], TableState],
) -> TableState:
    """Write rows and commit them; the state of the table at the new version.

    `stage` writes the rows for a state of the table, and gives the draft, whose metadata moves the marks as far as it
    has given numbers. `current` loads the newest state. Raises as `commit_draft` does, and MetadataChangedError when
    the metadata changed in more than marks, when the draft is no blind append, or after a few rounds.
    """
    draft = stage(base)
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
    """Move the marks by so many numbers; the state after that, and the one that numbering begins from."""
    for attempt in range(_RESERVATIONS):
        newest = current()
        if not differ_in_marks_only(_known(base), _known(newest)):
            raise MetadataChangedError(
                f"The metadata of the table was changed while this {draft.operation.name} numbered its rows; nothing "
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
    """How many numbers from the marks on the draft has passed, by column."""
    if draft.metadata is None:
        return {}
    after = TableConfiguration(_known(base).protocol, draft.metadata)
    used = {}
    for field in _known(base).schema:
        moved = after.schema.find(field.name)
        if STEP in field.metadata and moved is not None and moved.metadata.get(MARK) != field.metadata.get(MARK):
            used[field.name] = (moved.metadata[MARK] - next_number(field)) // field.metadata[STEP] + 1
    return used


def _marks(configuration: TableConfiguration, needed: Mapping[str, int]) -> dict[str, int]:
    return {
        field.name: next_number(field) + (needed[field.name] - 1) * field.metadata[STEP]
        for field in configuration.schema
        if field.name in needed
    }


def _within_reservation(draft: CommitDraft, base: TableState) -> CommitDraft:
    """The draft as it is committed on the reservation: numbers beyond it still move the marks."""
    if draft.metadata is None:
        return draft
    staged = TableConfiguration(_known(base).protocol, draft.metadata)
    marks = {f.name: f.metadata[MARK] for f in staged.schema if MARK in f.metadata}
    return replace(draft, metadata=move_marks(_known(base), marks))


def _known(state: TableState) -> TableConfiguration:
    if state.configuration is None:
        raise ValueError("only an existing table has marks")
    return state.configuration
