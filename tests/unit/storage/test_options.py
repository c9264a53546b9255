"""Storage options under the object stores' names and under Hadoop's."""

from __future__ import annotations

import pytest

from pyspark_delta.errors import InvalidOptionError
from pyspark_delta.storage.options import client_options

ACCOUNT = "acc.dfs.core.windows.net"


@pytest.mark.parametrize(
    ("options", "store"),
    [
        ({"AWS_ACCESS_KEY_ID": "k", "aws_region": "r"}, {"aws_access_key_id": "k", "aws_region": "r"}),
        ({"fs.s3a.access.key": "k", "fs.s3a.secret.key": "s"}, {"access_key_id": "k", "secret_access_key": "s"}),
        ({"spark.hadoop.fs.s3a.session.token": "t"}, {"session_token": "t"}),
        ({"fs.s3a.endpoint": "http://h:1"}, {"endpoint": "http://h:1"}),
        ({"fs.s3a.endpoint": "h:1"}, {"endpoint": "https://h:1"}),
        ({"fs.s3a.endpoint": "h:1", "fs.s3a.connection.ssl.enabled": "false"}, {"endpoint": "http://h:1"}),
        ({"AWS_ENDPOINT_URL": "https://h"}, {"endpoint": "https://h"}),
        ({"fs.s3a.path.style.access": "true"}, {"virtual_hosted_style_request": "false"}),
        ({"fs.s3a.access.key": "all", "fs.s3a.bucket.my-bucket.access.key": "one"}, {"access_key_id": "one"}),
        ({"fs.s3a.bucket.other.access.key": "one"}, {}),
        (
            {"fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"},
            {"skip_signature": "true"},
        ),
        ({"fs.s3a.access.key": "hadoop", "AWS_ACCESS_KEY_ID": "own"}, {"access_key_id": "own"}),
        ({"fs.s3a.connection.maximum": "100", "fs.s3a.threads.max": "9"}, {}),
        ({"AWS_S3_ALLOW_UNSAFE_RENAME": "true", "DELTA_DYNAMO_TABLE_NAME": "t"}, {}),
    ],
)
def test_s3(options: dict[str, str], store: dict[str, str]) -> None:
    found = client_options("s3", "my-bucket", options).store
    assert {key.removeprefix("aws_"): value for key, value in found.items()} == {
        key.removeprefix("aws_"): value for key, value in store.items()
    }


def test_plain_http_is_allowed_where_the_endpoint_says_so() -> None:
    assert client_options("s3", "b", {"aws_endpoint": "http://h:1"}).http == {"allow_http": "true"}
    assert client_options("s3", "b", {"aws_endpoint": "https://h:1"}).http == {}
    assert client_options("s3", "b", {"AWS_ALLOW_HTTP": "true", "timeout": "30s"}).http == {
        "allow_http": "true",
        "timeout": "30s",
    }


@pytest.mark.parametrize(
    ("authority", "options", "store"),
    [
        (f"c@{ACCOUNT}", {}, {"account_name": "acc"}),
        (f"c@{ACCOUNT}", {f"fs.azure.account.key.{ACCOUNT}": "k"}, {"account_name": "acc", "account_key": "k"}),
        (f"c@{ACCOUNT}", {"fs.azure.account.key.other.dfs.core.windows.net": "k"}, {"account_name": "acc"}),
        ("c", {f"fs.azure.account.key.{ACCOUNT}": "k"}, {"account_name": "acc", "account_key": "k"}),
        (f"c@{ACCOUNT}", {"fs.azure.sas.fixed.token": "?s"}, {"account_name": "acc", "sas_key": "?s"}),
        (
            f"c@{ACCOUNT}",
            {
                "fs.azure.account.oauth2.client.id": "general",
                f"fs.azure.account.oauth2.client.id.{ACCOUNT}": "i",
                f"fs.azure.account.oauth2.client.secret.{ACCOUNT}": "s",
                f"fs.azure.account.oauth2.client.endpoint.{ACCOUNT}": "https://login.microsoftonline.com/ten/oauth2/token",
                f"fs.azure.account.auth.type.{ACCOUNT}": "OAuth",
            },
            {"account_name": "acc", "client_id": "i", "client_secret": "s", "tenant_id": "ten"},
        ),
        ("c", {"AZURE_STORAGE_ACCOUNT_NAME": "a"}, {"account_name": "a"}),
    ],
)
def test_azure(authority: str, options: dict[str, str], store: dict[str, str]) -> None:
    assert client_options("abfss", authority, options).store == store


def test_gs() -> None:
    options = {"fs.gs.auth.service.account.json.keyfile": "/key.json", "fs.gs.project.id": "p"}
    assert client_options("gs", "b", options).store == {"service_account": "/key.json"}


def test_a_boolean_that_is_none_is_named() -> None:
    with pytest.raises(InvalidOptionError, match=r"fs\.s3a\.path\.style\.access"):
        client_options("s3", "b", {"fs.s3a.path.style.access": "maybe"})
