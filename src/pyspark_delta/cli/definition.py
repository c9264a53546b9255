"""The commands that change what a table declares: create, set, unset. Each makes one commit, or prints its plan."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pyspark_delta.cli.catalog_options import catalog_name
from pyspark_delta.cli.options import JsonOption, PathArgument, StorageOption, names_of, open_table, storage_options
from pyspark_delta.cli.outcome import print_plan_facts, print_result
from pyspark_delta.cli.output import print_json, print_text
from pyspark_delta.cli.reporting import reporting
from pyspark_delta.cli.sources import DataFiles
from pyspark_delta.cli.writing import DelimiterOption, FormatOption, PlanOption
from pyspark_delta.errors import (
    CatalogNameNotFoundError,
    InvalidOptionError,
    TableAlreadyExistsError,
    TableNotFoundError,
)

if TYPE_CHECKING:
    from pyspark_delta.ddl.change import TableChange
    from pyspark_delta.protocol.configuration import TableConfiguration
    from pyspark_delta.protocol.draft import CommitDraft
    from pyspark_delta.table import Table


PropertyOption = Annotated[
    list[str] | None, typer.Option("--property", metavar="KEY=VALUE", help="A table property; repeatable.")
]
PROPERTY_FORM = "A table property has the form --property KEY=VALUE"


class IfExists(StrEnum):
    """What happens if the table exists."""

    ERROR = "error"
    IGNORE = "ignore"
    REPLACE = "replace"


@reporting
def create(
    path: PathArgument,
    schema: Annotated[
        str | None,
        typer.Option("--schema", metavar="COLUMNS", help="As in CREATE TABLE: 'id BIGINT NOT NULL, name STRING'."),
    ] = None,
    like: Annotated[
        str | None, typer.Option("--like", metavar="FILE", help="Take the columns of a data file; - is standard input.")
    ] = None,
    file_format: FormatOption = None,
    delimiter: DelimiterOption = ",",
    partition_by: Annotated[
        str | None, typer.Option("--partition-by", metavar="NAMES", help="Columns, separated by commas.")
    ] = None,
    cluster_by: Annotated[
        str | None, typer.Option("--cluster-by", metavar="NAMES", help="Columns, separated by commas.")
    ] = None,
    property_: PropertyOption = None,
    comment: Annotated[
        str | None, typer.Option("--comment", metavar="TEXT", help="The description of the table.")
    ] = None,
    if_exists: Annotated[
        IfExists, typer.Option("--if-exists", help="Refuse, keep the table, or replace it.")
    ] = IfExists.ERROR,
    plan: PlanOption = False,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a table without rows.

    Give the columns with --schema or --like. With the name of a table in a catalog, the catalog chooses the location.
    """
    if (schema is None) == (like is None):
        raise typer.BadParameter("give either --schema or --like.", param_hint="--schema")
    columns = schema if like is None else DataFiles([like], None, file_format, delimiter).schema()
    definition: dict[str, Any] = {
        "partition_by": names_of(partition_by) or (),
        "cluster_by": names_of(cluster_by) or (),
        "properties": property_pairs(property_ or (), PROPERTY_FORM),
        "description": comment,
    }
    before = _existing(path, option)
    if before is not None and if_exists is IfExists.ERROR:
        raise TableAlreadyExistsError(before.location, "Use --if-exists ignore or --if-exists replace.")
    if before is not None and if_exists is IfExists.IGNORE:
        _print_kept(before, plan, as_json)
    elif plan:
        _plan_creation(before, columns, definition, as_json)
    else:
        _print_created(_create(path, columns, definition, if_exists, option), as_json)


@reporting
def set_(
    path: PathArgument,
    properties: Annotated[list[str], typer.Argument(metavar="KEY=VALUE", help="Table properties.")],
    plan: PlanOption = False,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Set table properties, which enables the features they need."""
    given = property_pairs(properties, "A table property has the form KEY=VALUE")
    if plan:
        from pyspark_delta.ddl.properties import set_properties

        _plan_change(open_table(path, option=option), lambda current: set_properties(current, given), as_json)
        return
    table = open_table(path, option=option)
    table.alter().set_properties(given)
    _print_version(table, as_json)


@reporting
def unset(
    path: PathArgument,
    properties: Annotated[list[str], typer.Argument(metavar="KEY", help="Names of table properties.")],
    if_exists: Annotated[bool, typer.Option("--if-exists", help="Skip properties that are not set.")] = False,
    plan: PlanOption = False,
    option: StorageOption = None,
    as_json: JsonOption = False,
) -> None:
    """Reset table properties to their defaults."""
    table = open_table(path, option=option)
    if plan:
        from pyspark_delta.ddl.properties import unset_properties

        _plan_change(table, lambda current: unset_properties(current, properties, if_exists=if_exists), as_json)
        return
    table.alter().unset_properties(*properties, if_exists=if_exists)
    _print_version(table, as_json)


def property_pairs(texts: list[str] | tuple[str, ...], form: str) -> dict[str, str]:
    """Return the pairs in texts KEY=VALUE. Raises InvalidOptionError, which says `form`, for another text."""
    pairs = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator or not key.strip():
            raise InvalidOptionError(f"{form}, found '{text}'.")
        pairs[key.strip()] = value
    return pairs


# -------------------------------------------------------------------------------------------------------- creation
def _existing(path: str, option: list[str] | None) -> Table | None:
    try:
        return open_table(path, option=option)
    except (TableNotFoundError, CatalogNameNotFoundError):
        return None


def _create(
    path: str, columns: Any, definition: dict[str, Any], if_exists: IfExists, option: list[str] | None
) -> Table:
    from pyspark_delta.table import Table

    name = catalog_name(path)
    if name is not None:
        return Table.create_for_name(name, columns, **definition, if_exists=if_exists.value)
    stored = storage_options(option)
    return Table.create(path, columns, **definition, if_exists=if_exists.value, storage_options=stored)


def _plan_creation(before: Table | None, columns: Any, given: dict[str, Any], as_json: bool) -> None:
    from pyspark_delta.ddl.create import CreateMode, draft_table
    from pyspark_delta.table.creation import definition

    table = definition(columns, **given)
    snapshot = None if before is None else before.snapshot
    draft = draft_table(table, snapshot, CreateMode.CREATE if before is None else CreateMode.CREATE_OR_REPLACE)
    facts: dict[str, Any] = {
        "operation": draft.operation.name,
        "version": 0 if before is None else before.version + 1,
        "files_removed": draft.removes.num_rows,
        "columns": {field.name: str(field.type) for field in table.schema.fields},
        "partition_by": list(table.partition_columns),
        "cluster_by": [".".join(parts) for parts in table.clustering],
    }
    print_plan_facts({**facts, **_declared(draft, None if snapshot is None else snapshot.configuration)}, as_json)


def _print_created(table: Table, as_json: bool) -> None:
    if as_json:
        print_json({"version": table.version, "location": table.location})
    else:
        print_text(f"Version {table.version}: created {table.location}")


def _print_kept(table: Table, plan: bool, as_json: bool) -> None:
    if as_json:
        print_json({"version": None, "location": table.location})
    else:
        print_text(f"Nothing {'would be' if plan else 'was'} committed: the table '{table.location}' exists.")


# ------------------------------------------------------------------------------------------------------ properties
def _plan_change(table: Table, make: Callable[[TableConfiguration], TableChange], as_json: bool) -> None:
    from pyspark_delta.ddl.change import draft_change

    snapshot = table.snapshot
    change = make(snapshot.configuration)
    draft = draft_change(change, snapshot.configuration, keeps_files=snapshot.num_files() > 0)
    facts = {"operation": draft.operation.name, "version": table.version + 1}
    print_plan_facts({**facts, **_declared(draft, snapshot.configuration)}, as_json)


def _declared(draft: CommitDraft, before: TableConfiguration | None) -> dict[str, Any]:
    """Return the properties that a draft sets and removes, and the features that it adds."""
    old = {} if before is None else dict(before.metadata.configuration)
    new = old if draft.metadata is None else dict(draft.metadata.configuration)
    listed = set() if before is None else set(before.protocol.listed_features)
    protocol = draft.protocol or (None if before is None else before.protocol)
    added = [] if protocol is None else sorted(set(protocol.listed_features) - listed)
    return {
        "properties_set": {name: value for name, value in new.items() if old.get(name) != value},
        "properties_removed": sorted(set(old) - set(new)),
        "features_added": added,
        "min_reader_version": None if protocol is None else protocol.min_reader_version,
        "min_writer_version": None if protocol is None else protocol.min_writer_version,
    }


def _print_version(table: Table, as_json: bool) -> None:
    from pyspark_delta.table import ChangeResult

    print_result(ChangeResult(table.version), as_json)
