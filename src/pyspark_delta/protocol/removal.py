"""How a feature is dropped from a table: what every feature that can be dropped states about itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class FileTraces(Enum):
    """What live files have because of a feature; the values are used in messages."""

    VECTORS = "deletion vectors"
    PHYSICAL_NAMES = "physical column names"
    OLD_TYPES = "types before a change"
    ROW_IDS = "row ids in the log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """How a feature is dropped.

    First no writer may use the feature any more: the properties `disabling` are set, or unset where the value is None.
    Then `files` lose their traces, and fields the keys `field_keys` of their metadata. If `all_domains`, metadata
    domains are removed. The commit that drops the feature removes the properties `properties` and the metadata domains
    `domains`.

    Earlier versions of the table still have the feature. If it `protects_history`, clients that do not know the feature
    could misread them: checkpoints before the drop must then stay, or the history must go. If it `needs_truncation`,
    only the latter is possible. `leaves` is what stays in files and log, for messages.
    """

    disabling: Mapping[str, str | None] = field(default_factory=dict, hash=False)
    files: FileTraces | None = None
    field_keys: tuple[str, ...] = ()
    all_domains: bool = False
    properties: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    protects_history: bool = False
    needs_truncation: bool = False
    leaves: str = ""
