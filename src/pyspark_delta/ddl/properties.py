"""Changes to the properties and the description of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark_delta.ddl.change import TableChange, require_text, with_properties
from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import Operation
from pyspark_delta.protocol.properties import (
    CONSTRAINT_PREFIX,
    FEATURE_PREFIX,
    check_property,
    find_property,
    near_property_names,
)
from pyspark_delta.schema.json import dump_json


def set_properties(configuration: TableConfiguration, properties: Mapping[str, object]) -> TableChange:
    """Set properties; those of delta-spark are validated and get their known spelling.

    Requests for features (`delta.feature.`, protocol versions) take effect and are not stored. Raises
    InvalidOptionError for an unknown `delta.` key or an illegal value, InvalidOperationError for a property that is set
    by a separate method.
    """
    if not properties:
        raise InvalidOperationError("No properties to set were given.")
    changed = dict(configuration.properties)
    given: dict[str, str] = {}
    for name, value in properties.items():
        text = property_text(name, value)
        _check_settable(name)
        check_property(name, text)
        given[name] = text
        _remove(changed, name)
        changed[_spelled(name)] = text
    return TableChange(
        operation=Operation("SET TBLPROPERTIES", {"properties": dump_json(given).decode()}),
        metadata=with_properties(configuration.metadata, changed),
    )


def property_text(name: str, value: object) -> str:
    """Return the value of a property as a string. Raises TypeError for other types than str, bool, int and float."""
    if not isinstance(value, str | int | float):
        raise TypeError(
            f"The value of the property '{name}' must be a string, bool or number, found {type(value).__name__}."
        )
    return str(value).lower() if isinstance(value, bool) else str(value)


def unset_properties(
    configuration: TableConfiguration, names: Sequence[str], *, if_exists: bool = False
) -> TableChange:
    """Reset properties to their defaults. Raises InvalidOperationError for one that is not set, unless allowed."""
    if not names:
        raise InvalidOperationError("No properties to unset were given.")
    changed = dict(configuration.properties)
    for name in names:
        _check_settable(name)
        if not _remove(changed, name) and not if_exists:
            near = [n for n in near_property_names(name) if n in changed]
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise InvalidOperationError(
                f"The property '{name}' is not set.{hint} The properties of the table are: "
                f"{', '.join(sorted(changed)) or 'none'}.",
                error_class="DELTA_UNSET_NON_EXISTENT_PROPERTY",
                property=name,
            )
    parameters: dict[str, str | bool] = {"properties": dump_json(list(names)).decode(), "ifExists": if_exists}
    return TableChange(
        operation=Operation("UNSET TBLPROPERTIES", parameters),
        metadata=with_properties(configuration.metadata, changed),
    )


def set_description(configuration: TableConfiguration, text: str | None) -> TableChange:
    """Set the description (comment) of the table; None removes it. Raises TypeError if it is not a string."""
    require_text(text, "The comment of a table")
    return TableChange(
        operation=Operation("SET TBLPROPERTIES", {"properties": dump_json({"comment": text or ""}).decode()}),
        metadata=replace(configuration.metadata, description=text),
    )


def _check_settable(name: str) -> None:
    folded = name.casefold()
    if folded.startswith(CONSTRAINT_PREFIX):
        raise InvalidOperationError(
            f"'{name}' is a CHECK constraint; use addConstraint and dropConstraint, which check existing rows.",
            error_class="DELTA_ADD_CONSTRAINTS",
        )


def _spelled(name: str) -> str:
    """Return the known spelling of the property, or the user's own."""
    known = find_property(name)
    if known is not None:
        return known.name
    return FEATURE_PREFIX + name[len(FEATURE_PREFIX) :] if name.casefold().startswith(FEATURE_PREFIX) else name


def _remove(properties: dict[str, str], name: str) -> bool:
    """Remove a property, by any spelling or alias; return True if it existed."""
    known = find_property(name)
    names = {name.casefold()} if known is None else {n.casefold() for n in (known.name, known.alias) if n}
    found = [key for key in properties if key.casefold() in names]
    for key in found:
        del properties[key]
    return bool(found)
