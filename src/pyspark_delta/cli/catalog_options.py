"""The catalog of a command, from options and environment variables."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from pyspark_delta.errors import InvalidOptionError

if TYPE_CHECKING:
    from pyspark_delta.catalog.contract import TableName
    from pyspark_delta.catalog.names import ResolvedTable
    from pyspark_delta.catalogs import DeltaCatalog
    from pyspark_delta.table import Table

URL_VARIABLE = "PYSPARK_DELTA_CATALOG_URL"
NAME_VARIABLE = "PYSPARK_DELTA_CATALOG_NAME"
TOKEN_VARIABLE = "PYSPARK_DELTA_CATALOG_TOKEN"
ROOT_VARIABLE = "PYSPARK_DELTA_CATALOG_STORAGE_ROOT"

UrlOption = Annotated[
    str | None,
    typer.Option("--url", envvar=URL_VARIABLE, help="sqlite:///file.db, postgresql://..., file:///..., https://..."),
]
NameOption = Annotated[str, typer.Option("--name", envvar=NAME_VARIABLE, help="The name of the catalog.")]
TokenOption = Annotated[str | None, typer.Option("--token", envvar=TOKEN_VARIABLE, help="A bearer token.")]
RootOption = Annotated[
    str | None, typer.Option("--storage-root", envvar=ROOT_VARIABLE, help="The directory of new tables.")
]


@dataclass(frozen=True, slots=True)
class ChosenCatalog:
    """The catalog that options and environment name."""

    url: str | None = field(default=None, repr=False)  # the URL of a database may hold a password
    name: str = "main"
    token: str | None = field(default=None, repr=False)
    storage_root: str | None = None

    @property
    def required_url(self) -> str:
        """Return the URL. Raises InvalidOptionError if there is none."""
        if not self.url:
            raise InvalidOptionError(
                f"No catalog is given. Use pyspark-delta catalog --url or the environment variable {URL_VARIABLE}: "
                "sqlite:///file.db, postgresql://host/database, file:///directory, or "
                "https://host/api/2.1/unity-catalog."
            )
        return self.url

    def connect(self) -> DeltaCatalog:
        """Connect to the catalog. Raises InvalidOptionError without a URL, CatalogError."""
        from pyspark_delta.catalogs import connect_catalog

        return connect_catalog(self.required_url, self.name, token=self.token, storage_root=self.storage_root)


def resolved(text: str) -> ResolvedTable | None:
    """Return a table in the catalog of the environment; None for a path."""
    from pyspark_delta.catalog.names import resolve

    name = _connected_name(text)
    return None if name is None else resolve(name)


def open_named(text: str, version: int | None, timestamp: str | None) -> Table | None:
    """Return the table of a name in the catalog of the environment; None for a path. Raises CatalogError."""
    from pyspark_delta.table import Table

    name = _connected_name(text)
    return None if name is None else Table.for_name(str(name), version=version, timestamp=timestamp)


def catalog_name(text: str) -> str | None:
    """Return the name of a table in the catalog of the environment, which is connected then; None for a path."""
    name = _connected_name(text)
    return None if name is None else str(name)


def _connected_name(text: str) -> TableName | None:
    """Connect to the catalog of the environment, and return the table name in an argument; None for a path."""
    from pyspark_delta.catalog.names import parse_table_name

    url, name = os.environ.get(URL_VARIABLE), parse_table_name(text)
    if not url or name is None or os.path.exists(text):
        return None
    ChosenCatalog(url, name.catalog, os.environ.get(TOKEN_VARIABLE), os.environ.get(ROOT_VARIABLE)).connect()
    return name
