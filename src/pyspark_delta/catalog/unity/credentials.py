"""Short-lived credentials from a catalog, as storage options (`storage.options`) with their expiry time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark_delta.catalog.unity.responses import number, wire_location
from pyspark_delta.storage.credentials import Credentials

_OPTIONS = {
    "s3.access-key-id": "aws_access_key_id",
    "s3.secret-access-key": "aws_secret_access_key",
    "s3.session-token": "aws_session_token",
    "azure.sas-token": "azure_storage_sas_key",
    "gcs.oauth-token": "google_oauth_token",
}
_OLDER = {
    "aws_temp_credentials": {
        "access_key_id": "aws_access_key_id",
        "secret_access_key": "aws_secret_access_key",
        "session_token": "aws_session_token",
    },
    "azure_user_delegation_sas": {"sas_token": "azure_storage_sas_key"},
    "gcp_oauth_token": {"oauth_token": "google_oauth_token"},
}


def credentials_of(answer: Any, location: str) -> Credentials:
    """Return the credentials in a response of the Delta API: those with the longest prefix of the location."""
    found = answer.get("storage-credentials") if isinstance(answer, dict) else None
    given = [value for value in found or () if isinstance(value, dict)]
    fitting = [value for value in given if _covers(str(value.get("prefix") or ""), location)]
    if not fitting:
        return Credentials()
    chosen = max(fitting, key=lambda value: len(str(value.get("prefix") or "")))
    return Credentials(_translated(chosen.get("config"), _OPTIONS), _time(chosen.get("expiration-time-ms")))


def legacy_credentials_of(answer: Any) -> Credentials:
    """Return the credentials in a response of the legacy endpoints."""
    options: dict[str, str] = {}
    for kind, names in _OLDER.items():
        options |= _translated(answer.get(kind) if isinstance(answer, dict) else None, names)
    return Credentials(options, _time(answer.get("expiration_time")) if isinstance(answer, dict) else None)


def _translated(config: Any, names: Mapping[str, str]) -> dict[str, str]:
    if not isinstance(config, dict):
        return {}
    return {names[key]: str(value) for key, value in config.items() if key in names and value is not None}


def _time(value: Any) -> int | None:
    """Return a time in ms since the epoch; None if the credentials do not expire, for which some servers send 0."""
    return number(value) or None


def _covers(prefix: str, location: str) -> bool:
    """Return True if a location is at or below a prefix; spellings of the same URI may differ."""
    return _bare(wire_location(location)).startswith(_bare(prefix))


def _bare(uri: str) -> str:
    """Return one spelling of a URI: `s3` for `s3a` and `s3n`, one slash after the scheme and at the end."""
    scheme, _, rest = uri.partition(":")
    scheme = {"s3a": "s3", "s3n": "s3"}.get(scheme.lower(), scheme.lower())
    return f"{scheme}:/{rest.strip('/')}/" if rest else ""
