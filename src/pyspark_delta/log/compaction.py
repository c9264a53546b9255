"""Write log compactions: the reconciliation of a range of commits in one file (Log Compaction Files; C096-C102)."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark_delta.actions.decode import decode_domain
from pyspark_delta.actions.encode import encode_action
from pyspark_delta.actions.model import Action
from pyspark_delta.errors import FileAlreadyExistsError, InvalidOptionError, VersionNotFoundError
from pyspark_delta.log import reconciliation
from pyspark_delta.log.commits import CommitText, read_commits
from pyspark_delta.log.file_lines import FileLines
from pyspark_delta.log.listing import first_gap, list_log, log_location
from pyspark_delta.log.names import CompactionName
from pyspark_delta.log.segment import CommitFile, earliest_version
from pyspark_delta.storage import ObjectStore
from pyspark_delta.storage.paths import join


def write_compaction(store: ObjectStore, table_location: str, start: int, end: int) -> str:
    """Write the compaction of the commits `start` to `end`, both included; return its location.

    An existing compaction of the same range is kept: its content is the same. Raises InvalidOptionError for a range of
    less than two versions, VersionNotFoundError if one of them is not in the log, CorruptLogError, StorageError.
    """
    if not 0 <= start < end:
        raise InvalidOptionError(
            f"A log compaction must cover at least two versions, found {start} to {end}. Give a later end."
        )
    listing = list_log(store, table_location, start, end)
    missing = first_gap(listing.commits, start, end)
    if missing is not None:
        latest = list_log(store, table_location, start).latest_version
        known = earliest_version(store, table_location)
        raise VersionNotFoundError(missing, known, known if latest is None else latest, table_location)
    texts = list(read_commits(store, [CommitFile(v, listing.commits[v]) for v in range(start, end + 1)]))
    location = join(log_location(table_location), str(CompactionName(start, end)))
    try:
        store.write_if_absent(location, b"".join(line + b"\n" for line in _lines(texts, table_location)))
    except FileAlreadyExistsError:
        return location
    return location


def _lines(texts: list[CommitText], table_location: str) -> Iterator[bytes]:
    """Yield the newest action of every key. Removes stay, and so do removed domains: earlier commits may hold what
    they cancel (C101, C102).
    """
    yield from map(encode_action, _small_actions(texts))
    yield from FileLines().apply(texts, table_location).by_key.values()


def _small_actions(texts: list[CommitText]) -> Iterator[Action]:
    newest_first = texts[::-1]
    protocol = reconciliation.latest_protocol(newest_first)
    metadata = reconciliation.latest_metadata(newest_first)
    yield from (action for action in (protocol, metadata) if action is not None)
    yield from reconciliation.transactions((), texts).values()
    yield from {d.domain: d for text in texts for d in map(decode_domain, text.fields("domainMetadata"))}.values()
