"""Conflicts of a draft with protocol and metadata changes of a winning commit.

Most of these changes invalidate prepared drafts. There are two exceptions. A table feature may be enabled if it does
not constrain prepared files, or if the next attempt meets its requirements. Counters that features keep in the schema
may advance. The features themselves declare which changes are of these kinds.
"""

from __future__ import annotations

from typing import Any

import orjson

from pyspark_delta.actions.model import Metadata
from pyspark_delta.features import all_features, find_feature, supported_features
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import CommitDraft


def protocol_conflict(draft: CommitDraft, before: TableConfiguration, after: TableConfiguration) -> str:
    """Return why the draft cannot be rebased on a new protocol; "" if it can."""
    had, has = supported_features(before), supported_features(after)
    if had - has:
        return f"it no longer supports {_listed(had - has)}"
    unsafe = [name for name in has - had if (feature := find_feature(name)) is None or not feature.can_rebase(draft)]
    if unsafe:
        return f"it now supports {_listed(unsafe)}"
    return ""


def metadata_conflict(draft: CommitDraft, before: TableConfiguration, after: TableConfiguration) -> str:
    """Return why the draft cannot be rebased on new metadata; "" if it can. The draft has no metadata of its own."""
    old, new = before.metadata, after.metadata
    if old.schema_string != new.schema_string and _schema(old) != _schema(new):
        return "the schema"
    if old.partition_columns != new.partition_columns:
        return "the partitioning"
    if (old.id, old.format_provider) != (new.id, new.format_provider):
        return "the identity of the table"
    if (old.name, old.description) != (new.name, new.description):
        return "name or description"
    changed = {
        name
        for name in old.configuration.keys() | new.configuration.keys()
        if old.configuration.get(name) != new.configuration.get(name)
    }
    conflicting = changed - _rebase_safe(draft, before, after) | (old.configuration.keys() - new.configuration.keys())
    return f"the table properties {_listed(conflicting)}" if conflicting else ""


def _rebase_safe(draft: CommitDraft, before: TableConfiguration, after: TableConfiguration) -> set[str]:
    found: set[str] = set()
    for feature in all_features():
        concerned = feature.rebase_safe_properties or feature.assigned_properties
        if concerned and feature.listed_name(after) is not None and feature.can_rebase(draft):
            found.update(name for name in feature.assigned_properties if name not in before.properties)
            if feature.is_active(after):
                found.update(feature.rebase_safe_properties)
    return found


def _schema(metadata: Metadata) -> Any:
    keys = {key for feature in all_features() for key in feature.rebase_safe_field_keys}
    return _without(orjson.loads(metadata.schema_string), keys)


def _without(value: Any, keys: set[str]) -> Any:
    """Return a schema as JSON, without some keys of field metadata."""
    if isinstance(value, dict):
        return {
            name: {k: v for k, v in member.items() if k not in keys}
            if name == "metadata" and isinstance(member, dict)
            else _without(member, keys)
            for name, member in value.items()
        }
    return [_without(member, keys) for member in value] if isinstance(value, list) else value


def _listed(names: Any) -> str:
    return ", ".join(repr(name) for name in sorted(names))
