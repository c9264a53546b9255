"""The commands over a catalog: schemas, tables by name, publishing, and the server with its tokens."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from pyspark_delta.cli.catalog_options import ChosenCatalog, NameOption, RootOption, TokenOption, UrlOption
from pyspark_delta.cli.output import print_json, print_rows, print_text
from pyspark_delta.cli.reporting import reporting
from pyspark_delta.errors import InvalidOptionError

if TYPE_CHECKING:
    from pyspark_delta.catalog.sql import SqlCatalog

catalog_app = typer.Typer(
    help="Schemas and tables of a catalog, and a server for it.", no_args_is_help=True, rich_markup_mode=None
)
token_app = typer.Typer(help="Bearer tokens for the server.", no_args_is_help=True, rich_markup_mode=None)
catalog_app.add_typer(token_app, name="token")

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
SchemaArgument = Annotated[str, typer.Argument(metavar="SCHEMA")]
TableArgument = Annotated[str, typer.Argument(metavar="TABLE", help="schema.table")]
_DAY = 86_400_000  # ms
_MOST_DAYS = 3_650_000
_OLDER_THAN = ("--older-than", "--older-than-days")


def days(value: float | None) -> float | None:
    """Check a number of days. It is limited to about ten thousand years, because later times cannot be represented."""
    if value is not None and not 0 <= value <= _MOST_DAYS:  # false for NaN too
        raise typer.BadParameter(f"{value} is not a number of days from 0 to {_MOST_DAYS}")
    return value


@catalog_app.callback()
def _choose(
    context: typer.Context,
    url: UrlOption = None,
    name: NameOption = "main",
    token: TokenOption = None,
    storage_root: RootOption = None,
) -> None:
    context.obj = ChosenCatalog(url, name, token, storage_root)


@catalog_app.command()
@reporting
def schemas(
    context: typer.Context,
    as_json: JsonOption = False,
) -> None:
    """List the schemas."""
    _print_names("schema", _chosen(context).connect().schemas(), as_json)


@catalog_app.command("create-schema")
@reporting
def create_schema(
    context: typer.Context,
    schema: SchemaArgument,
) -> None:
    """Create a schema."""
    _chosen(context).connect().create_schema(schema)


@catalog_app.command("drop-schema")
@reporting
def drop_schema(
    context: typer.Context,
    schema: SchemaArgument,
) -> None:
    """Drop a schema without tables."""
    _chosen(context).connect().drop_schema(schema)


@catalog_app.command()
@reporting
def tables(
    context: typer.Context,
    schema: SchemaArgument,
    as_json: JsonOption = False,
) -> None:
    """List the tables of a schema."""
    _print_names("table", _chosen(context).connect().tables(schema), as_json)


@catalog_app.command()
@reporting
def register(
    context: typer.Context,
    table: TableArgument,
    path: Annotated[str, typer.Argument(metavar="PATH", help="The location of the table.")],
) -> None:
    """Register an existing table under a name.

    Its files stay in place, and it does not become catalog-managed.
    """
    _chosen(context).connect().register(table, path)


@catalog_app.command()
@reporting
def rename(
    context: typer.Context,
    table: TableArgument,
    new: Annotated[str, typer.Argument(metavar="NEW", help="schema.table")],
) -> None:
    """Rename a table."""
    _chosen(context).connect().rename(table, new)


@catalog_app.command()
@reporting
def drop(
    context: typer.Context,
    table: TableArgument,
) -> None:
    """Remove the name of a table; its files stay until purge."""
    _chosen(context).connect().drop(table)


@catalog_app.command()
@reporting
def purge(
    context: typer.Context,
    older_than: Annotated[
        float,
        typer.Option(*_OLDER_THAN, callback=days, metavar="DAYS", help="Minimum number of days since it was dropped."),
    ] = 7,
    as_json: JsonOption = False,
) -> None:
    """Delete the files of tables dropped some time ago.

    This cannot be undone.
    """
    purged = _chosen(context).connect().purge(timedelta(days=older_than))
    _print_names("purged", purged, as_json)


@catalog_app.command()
@reporting
def clean(
    context: typer.Context,
    older_than: Annotated[
        float, typer.Option(*_OLDER_THAN, callback=days, metavar="DAYS", help="How long ago its creation began.")
    ] = 7,
    apply: Annotated[bool, typer.Option("--apply", help="Remove them. Without this option, only list them.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Remove tables whose creation was never completed.

    This cannot be undone.
    """
    found = _chosen(context).connect().clean(timedelta(days=older_than), apply=apply)
    rows = [
        {"name": str(table.name), "location": table.location, "begun": table.created_at, "removed": apply}
        for table in found
    ]
    if as_json:
        print_json(rows)
    else:
        print_rows(("name", "location", "begun", "removed"), (list(row.values()) for row in rows))
        if rows and not apply:
            print_text("Give --apply to remove them.")


@catalog_app.command()
@reporting
def publish(
    context: typer.Context,
    table: TableArgument,
) -> None:
    """Publish the commits that only the catalog has so far.

    Writers also do this.
    """
    newest = _chosen(context).connect().publish(table)
    print_text("There are no unpublished commits." if newest is None else f"Published up to version {newest}.")


@catalog_app.command()
@reporting
def repair(
    context: typer.Context,
    table: TableArgument,
    apply: Annotated[
        bool, typer.Option("--apply", help="Make the changes. Without this option, only list them.")
    ] = False,
) -> None:
    """Add the published commits that a restored catalog lacks.

    A catalog that was restored from an older backup does not know the commits since.
    """
    found = _chosen(context).connect().repair(table, apply=apply)
    first, last = found.forgotten.start, found.published_version
    versions = f"version {last}" if first == last else f"versions {first} to {last}"
    if not found.forgotten:
        print_text(f"The catalog has every published commit; its latest version is {found.catalog_version}.")
    elif found.applied:
        print_text(f"The catalog now has {versions}.")
    else:
        print_text(f"The catalog lacks {versions}. Use --apply to add them.")
    if found.undecided:
        print_text(
            f"It is unknown whether one of {len(found.undecided)} later staged commits was ratified: "
            f"{', '.join(found.undecided[:3])}{', ...' if len(found.undecided) > 3 else ''}"
        )


# ------------------------------------------------------------------------------------------------------- the server
@catalog_app.command()
@reporting
def serve(
    context: typer.Context,
    host: Annotated[
        str, typer.Option("--host", help="The address to listen at; default: this machine only.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535)] = 8080,
    certificate: Annotated[str | None, typer.Option("--tls-certificate", help="A PEM file.")] = None,
    key: Annotated[str | None, typer.Option("--tls-key", help="A PEM file.")] = None,
    behind_proxy: Annotated[bool, typer.Option("--behind-proxy", help="A proxy terminates TLS.")] = False,
    open_access: Annotated[bool, typer.Option("--open-access", help="Require no tokens; this machine only.")] = False,
    clean_after: Annotated[
        float | None,
        typer.Option(
            "--clean-after", callback=days, metavar="DAYS", help="Regularly remove unfinished tables; see clean."
        ),
    ] = None,
) -> None:
    """Serve a catalog in a database through Unity Catalog's API."""
    from pyspark_delta.server.run import create_server
    from pyspark_delta.server.run import serve as run_server
    from pyspark_delta.server.served import ServerSettings

    settings = ServerSettings(clean_after=None if clean_after is None else timedelta(days=clean_after))
    chosen = _chosen(context)
    server = create_server(
        chosen.required_url,
        host,
        port,
        storage_root=chosen.storage_root,
        certificate=certificate,
        key=key,
        open_access=open_access,
        behind_proxy=behind_proxy,
        settings=settings,
    )
    run_server(server)


@token_app.command("create")
@reporting
def create_token(
    context: typer.Context,
    principal: Annotated[str, typer.Argument(metavar="PRINCIPAL", help="The user of the token.")],
    scope: Annotated[list[str], typer.Option("--scope", help="read, write or admin; repeatable.")],
    schema: Annotated[
        list[str] | None,
        typer.Option(
            "--schema", metavar="CATALOG.SCHEMA", help="Limit the token to these schemas (catalog.schema); repeatable."
        ),
    ] = None,
    days: Annotated[
        float | None, typer.Option("--days", callback=days, help="Days until the token expires; default: never.")
    ] = None,
) -> None:
    """Create a token and print its secret once.

    Only its hash is stored.
    """
    from pyspark_delta.catalog.sql.tokens import Scope

    known = [one.value for one in Scope]
    unknown = [word for word in scope if word not in known]
    if unknown:
        raise InvalidOptionError(f"'{unknown[0]}' is not a scope; valid values are {', '.join(known)}.")
    expires = None if days is None else int(time.time() * 1000 + days * _DAY)
    limits = None if schema is None else [_schema(text) for text in schema]
    made = _database(_chosen(context)).tokens.create(principal, [Scope(word) for word in scope], limits, expires)
    print_text(made.secret)


@token_app.command("list")
@reporting
def list_tokens(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the tokens, without their secrets."""
    found = [
        {
            "id": token.token_id,
            "principal": token.principal,
            "scopes": sorted(scope.value for scope in token.scopes),
            "schemas": None if token.schemas is None else sorted(".".join(parts) for parts in token.schemas),
            "created": token.created_at,
            "expires": token.expires_at,
        }
        for token in _database(_chosen(context)).tokens.list_tokens()
    ]
    if as_json:
        print_json(found)
    else:
        print_rows(("id", "principal", "scopes", "schemas", "created", "expires"), (list(t.values()) for t in found))


@token_app.command("revoke")
@reporting
def revoke_token(
    context: typer.Context,
    token_id: Annotated[str, typer.Argument(metavar="ID")],
) -> None:
    """Revoke a token."""
    if not _database(_chosen(context)).tokens.revoke(token_id):
        raise InvalidOptionError(f"There is no token '{token_id}'; see pyspark-delta catalog token list.")


def _chosen(context: typer.Context) -> ChosenCatalog:
    return context.find_object(ChosenCatalog) or ChosenCatalog()


def _database(chosen: ChosenCatalog) -> SqlCatalog:
    from pyspark_delta.catalog.sql import SqlCatalog

    url = chosen.required_url
    if not url.startswith(("sqlite:", "postgresql:", "postgresql+psycopg:")):
        raise InvalidOptionError(
            f"Tokens are stored in the database of a catalog, and '{url.partition(':')[0]}:' is not the URL of a "
            "database. Use the sqlite: or postgresql: URL of the catalog."
        )
    return SqlCatalog.connect(url, storage_root=chosen.storage_root)


def _schema(text: str) -> tuple[str, str]:
    catalog, dot, schema = text.partition(".")
    if not dot or not catalog or not schema:
        raise InvalidOptionError(f"A schema has the form catalog.schema, found '{text}'.")
    return catalog, schema


def _print_names(header: str, names: list[str], as_json: bool) -> None:
    if as_json:
        print_json(names)
    else:
        print_rows((header,), ([name] for name in names))
