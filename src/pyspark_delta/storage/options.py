"""Storage options, with the names of object stores or of Hadoop, converted to the settings of the client.

`AWS_ACCESS_KEY_ID`, `aws_endpoint`, `allow_http`, `azure_storage_account_name`, `google_service_account`, ... are
passed to the client unchanged. `fs.s3a.*`, `fs.azure.*` and `fs.gs.*` (with or without `spark.hadoop.`) are translated
if the client has an equivalent; Hadoop's tuning settings have none and are left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark_delta.errors import InvalidOptionError

_CLIENT_KEYS = frozenset(
    {
        "allow_http",
        "allow_invalid_certificates",
        "connect_timeout",
        "default_content_type",
        "http1_only",
        "http2_keep_alive_interval",
        "http2_keep_alive_timeout",
        "http2_keep_alive_while_idle",
        "http2_only",
        "pool_idle_timeout",
        "pool_max_idle_per_host",
        "proxy_ca_certificate",
        "proxy_excludes",
        "proxy_url",
        "timeout",
        "user_agent",
    }
)
_CLIENT_PREFIX = re.compile(r"^(?:aws|azure_storage|azure|google)_(?=" + "|".join(sorted(_CLIENT_KEYS)) + ")")
# Other Delta clients use these settings to lock commits on S3. Here the store itself refuses the second writer of a
# version.
_LOCKING_KEY = "aws_s3_locking_provider"
_IGNORED = re.compile(r"^(?:aws_s3_allow_unsafe_rename|aws_force_credential_load|delta_dynamo_.*|dynamo_.*)$")

_S3A = {
    "access.key": "access_key_id",
    "secret.key": "secret_access_key",
    "session.token": "session_token",
    "endpoint": "endpoint",
    "endpoint.region": "region",
}
_AZURE = {
    "account.key": "account_key",
    "account.oauth2.client.id": "client_id",
    "account.oauth2.client.secret": "client_secret",
    "sas.fixed.token": "sas_key",
}
_GS = {
    "fs.gs.auth.service.account.json.keyfile": "service_account",
    "google.cloud.auth.service.account.json.keyfile": "service_account",
}
CREDENTIAL_SETTINGS = frozenset(
    {"access_key_id", "secret_access_key", "session_token", "account_key", "client_id", "client_secret", "sas_key"}
)
"""The client settings that are credentials, or are used to get them."""

_OAUTH_TOKEN = "google_oauth_token"  # the client gets it from a function, not from its settings
_PROVIDER = re.compile(r"^(?:aws|azure_storage|azure|google)_")
_TRANSLATED = frozenset(
    {*_S3A.values(), *_AZURE.values(), *_GS.values(), "account_name", "tenant_id", "skip_signature"}
)
_AZURE_HOST = re.compile(r"^(?P<setting>.*?)\.(?P<account>[a-z0-9]+)\.(?:dfs|blob)\.[a-z0-9.]+$")
_ANONYMOUS = "AnonymousAWSCredentialsProvider"


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """The arguments for the client of one bucket: settings of the store, settings of HTTP, and the lock provider.

    `oauth_token` is a token for Google Cloud Storage, for example from a catalog; empty without one.
    """

    store: dict[str, Any] = field(default_factory=dict, repr=False)
    http: dict[str, Any] = field(default_factory=dict, repr=False)
    locking_provider: str = ""
    oauth_token: str = field(default="", repr=False)


def client_options(scheme: str, authority: str, options: Mapping[str, str]) -> ClientOptions:
    """Return the options of one store. Names are case-insensitive; the store's own names override Hadoop's."""
    given = {key.lower().removeprefix("spark.hadoop."): value for key, value in options.items()}
    hadoop = {key: value for key, value in given.items() if key.startswith(("fs.", "google.cloud."))}
    token = given.get(_OAUTH_TOKEN, "") if scheme == "gs" else ""
    result = ClientOptions(locking_provider=given.get(_LOCKING_KEY, "").lower(), oauth_token=token)
    match scheme:
        case "s3":
            _from_s3a(authority, hadoop, result)
        case "gs":
            result.store.update({_GS[key]: value for key, value in hadoop.items() if key in _GS})
        case _:
            _from_azure(authority, hadoop, result)
    for key, value in given.items():
        name = _CLIENT_PREFIX.sub("", key)
        if key in hadoop or key in (_LOCKING_KEY, _OAUTH_TOKEN) or _IGNORED.match(key):
            continue
        if name in _CLIENT_KEYS:
            result.http[name] = value
        else:
            result.store[_name(key)] = value
    if str(result.store.get("endpoint", "")).startswith("http://"):
        result.http.setdefault("allow_http", "true")
    return result


def _name(key: str) -> str:
    """Return the one name of a setting, so that the store's own setting replaces the one translated from Hadoop."""
    name = _PROVIDER.sub("", key)
    return "endpoint" if name == "endpoint_url" else name if name in _TRANSLATED else key


# ------------------------------------------------------------------------------------------------------- Hadoop
def _from_s3a(bucket: str, hadoop: Mapping[str, str], result: ClientOptions) -> None:
    settings = {key.removeprefix("fs.s3a."): value for key, value in hadoop.items() if key.startswith("fs.s3a.")}
    own = f"bucket.{bucket.lower()}."  # settings for one bucket override settings for all
    settings |= {key.removeprefix(own): value for key, value in settings.items() if key.startswith(own)}
    result.store.update({_S3A[key]: value for key, value in settings.items() if key in _S3A and value})
    if "path.style.access" in settings:
        path_style = _boolean("fs.s3a.path.style.access", settings["path.style.access"])
        result.store["virtual_hosted_style_request"] = str(not path_style).lower()
    if _ANONYMOUS in settings.get("aws.credentials.provider", ""):
        result.store["skip_signature"] = "true"
    endpoint = result.store.get("endpoint", "")
    if endpoint and "://" not in endpoint:
        plain = not _boolean("fs.s3a.connection.ssl.enabled", settings.get("connection.ssl.enabled", "true"))
        result.store["endpoint"] = f"{'http' if plain else 'https'}://{endpoint}"


def _from_azure(authority: str, hadoop: Mapping[str, str], result: ClientOptions) -> None:
    account = authority.partition("@")[2].partition(".")[0].lower()
    if account:
        result.store["account_name"] = account
    general: dict[str, str] = {}
    specific: dict[str, str] = {}
    for key, value in hadoop.items():
        setting = key.removeprefix("fs.azure.")
        match = _AZURE_HOST.match(setting)
        if match is None:
            general[setting] = value
        elif not account or match["account"] == account:
            specific[match["setting"]] = value
            result.store.setdefault("account_name", match["account"])
    for setting, value in (general | specific).items():
        if setting in _AZURE:
            result.store[_AZURE[setting]] = value
        elif setting == "account.oauth2.client.endpoint":  # https://login.microsoftonline.com/<tenant>/oauth2/token
            result.store["tenant_id"] = value.partition("://")[2].split("/")[1] if value.count("/") > 2 else value


def _boolean(key: str, text: str) -> bool:
    match text.strip().lower():
        case "true":
            return True
        case "false":
            return False
    raise InvalidOptionError(f"The storage option '{key}' is '{text}'; use 'true' or 'false'.", option=key)
