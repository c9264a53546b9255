"""Storage options in the form of Hadoop's file systems, for files that Spark itself reads."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark_delta.storage import own_options
from pyspark_delta.storage.credentials import given_credentials
from pyspark_delta.storage.options import client_options
from pyspark_delta.storage.paths import canonical_scheme, split

_PROVIDERS = "org.apache.hadoop.fs.s3a."
_S3A = {
    "access_key_id": "fs.s3a.access.key",
    "secret_access_key": "fs.s3a.secret.key",
    "session_token": "fs.s3a.session.token",
    "endpoint": "fs.s3a.endpoint",
    "region": "fs.s3a.endpoint.region",
}
_PATH_STYLE = "virtual_hosted_style_request"


def hadoop_options(location: str, storage_options: Mapping[str, str] | None) -> dict[str, str] | None:
    """Return storage options with Hadoop's names (`fs.`, `dfs.`); None if some have no Hadoop equivalent.

    S3 credentials from a catalog are requested and translated once, and not renewed. Raises the errors of the request.
    """
    own = own_options(storage_options)
    given = {**own, **given_credentials(storage_options)}
    if all(key.startswith(("fs.", "dfs.")) for key in given):
        return given
    scheme, authority, _ = split(location)
    if given == own or canonical_scheme(scheme) != "s3":
        return None
    return _s3a_options(authority, given)


def _s3a_options(bucket: str, options: Mapping[str, str]) -> dict[str, str] | None:
    resolved = client_options("s3", bucket, options)
    if not {*resolved.store} <= {*_S3A, _PATH_STYLE} or not {*resolved.http} <= {"allow_http"}:
        return None
    told = {_S3A[key]: str(value) for key, value in resolved.store.items() if key in _S3A}
    kind = "TemporaryAWSCredentialsProvider" if "session_token" in resolved.store else "SimpleAWSCredentialsProvider"
    path_style = "endpoint" in resolved.store and resolved.store.get(_PATH_STYLE, "false") != "true"
    return {
        **{key: value for key, value in options.items() if key.startswith(("fs.", "dfs."))},
        **told,
        "fs.s3a.aws.credentials.provider": _PROVIDERS + kind,
        "fs.s3a.path.style.access": str(path_style).lower(),
        # Hadoop caches one file system per bucket, whatever its credentials are.
        "fs.s3a.impl.disable.cache": "true",
    }
