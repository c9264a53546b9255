"""Credentials for the storage of tables, in the form that clients get them."""

from __future__ import annotations

from typing import Any

from pyspark_delta.catalog.contract import Access, TableInfo
from pyspark_delta.catalog.sql.tokens import Scope
from pyspark_delta.catalog.unity.responses import wire_location
from pyspark_delta.server.delta_models import Credential
from pyspark_delta.server.failures import Failure, FailureKind
from pyspark_delta.server.legacy_models import LegacyCredentials
from pyspark_delta.server.models import AccessKind
from pyspark_delta.server.operation import Call

_DELTA = {
    "s3.access-key-id": ("aws_access_key_id", "access_key_id"),
    "s3.secret-access-key": ("aws_secret_access_key", "secret_access_key"),
    "s3.session-token": ("aws_session_token", "session_token"),
    "azure.sas-token": ("azure_storage_sas_key", "sas_key"),
    "gcs.oauth-token": ("google_oauth_token",),
}
_OLDER = {
    "s3.access-key-id": ("aws_temp_credentials", "access_key_id"),
    "s3.secret-access-key": ("aws_temp_credentials", "secret_access_key"),
    "s3.session-token": ("aws_temp_credentials", "session_token"),
    "azure.sas-token": ("azure_user_delegation_sas", "sas_token"),
    "gcs.oauth-token": ("gcp_oauth_token", "oauth_token"),
}


def access_of(call: Call[Any], kind: AccessKind) -> Access:
    """Return the requested access, which the caller's token must allow. Raises Failure."""
    access = Access(kind)
    call.require_scope(Scope.READ if access is Access.READ else Scope.WRITE)
    return access


def credentials_answer(call: Call[Any], info: TableInfo, access: Access) -> list[Credential]:
    """Return credentials for a table's storage in the form of the Delta API; `config` is empty if none are vended."""
    given, expires_at = _given(call, info, access)
    location = wire_location(info.location)
    return [Credential(prefix=location, operation=access.value, config=given, expiration_time_ms=expires_at)]


def legacy_credentials_answer(call: Call[Any], info: TableInfo, access: Access) -> LegacyCredentials:
    """Return credentials for a table's storage in the form of the legacy endpoints."""
    given, expires_at = _given(call, info, access)
    kinds: dict[str, dict[str, str]] = {}
    for key, value in given.items():
        kind, name = _OLDER[key]
        kinds.setdefault(kind, {})[name] = value
    return LegacyCredentials(
        aws_temp_credentials=kinds.get("aws_temp_credentials"),
        azure_user_delegation_sas=kinds.get("azure_user_delegation_sas"),
        gcp_oauth_token=kinds.get("gcp_oauth_token"),
        expiration_time=expires_at,
        url=wire_location(info.location),
    )


def _given(call: Call[Any], info: TableInfo, access: Access) -> tuple[dict[str, str], int | None]:
    """Return the catalog's credentials, by the names of the API, and their expiry (ms since the epoch).

    Raises Failure for credentials that do not expire: those are the server's own.
    """
    if not call.settings.vend_credentials:
        return {}, None
    credentials = call.catalog.credentials(info, access)
    found = {key.lower(): value for key, value in credentials.options.items()}
    given = {
        key: next(found[name] for name in names if name in found)
        for key, names in _DELTA.items()
        if any(name in found for name in names)
    }
    if given and credentials.expires_at is None:
        raise Failure(
            FailureKind.NOT_ALLOWED,
            "The server's credentials for its storage do not expire and are not limited to one table, so it does not "
            "give them to clients. Connect with storage options of your own.",
        )
    return given, credentials.expires_at
