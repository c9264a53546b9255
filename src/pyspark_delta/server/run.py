"""Running the server: for this machine only, or with TLS for others."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark_delta.catalog.loopback import is_loopback
from pyspark_delta.errors import InvalidOptionError, MissingDependencyError
from pyspark_delta.server.served import ServerSettings

if TYPE_CHECKING:
    import uvicorn

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 8080
_GRACE = 10  # seconds for running requests to finish when the server stops


def serve(server: uvicorn.Server) -> None:
    """Run a server until the process receives SIGINT or SIGTERM."""
    from pyspark_delta.server.access_log import OneLineFormatter

    handler = logging.StreamHandler()
    handler.setFormatter(OneLineFormatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("uvicorn.error").addFilter(_is_news)
    server.run()


def create_server(
    url: str,
    host: str = LOOPBACK,
    port: int = DEFAULT_PORT,
    *,
    storage_root: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    certificate: str | None = None,
    key: str | None = None,
    open_access: bool = False,
    behind_proxy: bool = False,
    max_unpublished: int = 10,
    verify_published: bool = True,
    settings: ServerSettings | None = None,
) -> uvicorn.Server:
    """Return a server for the catalog in a database; `serve` runs it.

    `url`, `storage_root` and `storage_options` are as for `connect_catalog`. `certificate` and `key` are PEM files. A
    host that others can reach needs them, unless the server is `behind_proxy`: a proxy that terminates TLS. Every
    request needs a token, unless `open_access` gives every program on this machine full access. With
    `verify_published` the server checks that the files in requests exist.

    Raises InvalidOptionError for unsafe settings, CatalogError if the catalog cannot be opened, MissingDependencyError
    if a package is missing.
    """
    if settings is not None and settings.vend_credentials:
        raise InvalidOptionError(
            "A catalog in a database has only the credentials that it was connected with. They do not expire and are "
            "valid for all tables, so they cannot be given to clients. Omit vend_credentials; clients connect with "
            "storage options of their own."
        )
    check_exposure(host, certificate, key, open_access=open_access, behind_proxy=behind_proxy)
    try:
        import uvicorn

        from pyspark_delta.catalog.sql import SqlCatalog
        from pyspark_delta.server.application import create_application
        from pyspark_delta.server.connections import LONGEST_HEADERS, limited_protocol
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"The server needs the package '{error.name}': pip install 'pyspark-delta[server]'.", package=error.name
        ) from None
    catalog = SqlCatalog.connect(
        url,
        storage_root=storage_root,
        storage_options=storage_options,
        max_unpublished=max_unpublished,
        verify_files=verify_published,
    )
    catalog.create()
    settings = settings or ServerSettings()
    application = create_application(catalog, None if open_access else catalog.tokens, settings)
    return uvicorn.Server(
        uvicorn.Config(
            application,
            host=host,
            port=port,
            http=limited_protocol(settings),
            h11_max_incomplete_event_size=LONGEST_HEADERS,
            ssl_certfile=certificate,
            ssl_keyfile=key,
            access_log=False,  # the application writes its own log, without queries
            log_config=None,
            server_header=False,
            timeout_graceful_shutdown=_GRACE,
            ws="none",
            lifespan="on",
        )
    )


def check_exposure(
    host: str, certificate: str | None, key: str | None, *, open_access: bool, behind_proxy: bool
) -> None:
    """Raise InvalidOptionError if tokens would be sent in clear text, or others would have access without one."""
    if (certificate is None) != (key is None):
        raise InvalidOptionError("TLS needs both a certificate and its key.")
    if is_loopback(host):
        return
    if open_access:
        raise InvalidOptionError(
            f"Without tokens the server can listen on this machine only, not on '{host}': use {LOOPBACK}.", host=host
        )
    if certificate is None and not behind_proxy:
        raise InvalidOptionError(
            f"On '{host}' tokens would be sent in clear text. Pass a certificate and its key, or declare that the "
            "server is behind a proxy that terminates TLS.",
            host=host,
        )


def _is_news(record: logging.LogRecord) -> bool:
    """Return False for warnings about HTTP/2, which Java's HTTP client requests on every connection."""
    return not record.getMessage().startswith(("Unsupported upgrade request", "No supported WebSocket library"))
