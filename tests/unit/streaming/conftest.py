"""The S3 server of the contract tests serves here too."""

from tests.contracts.conftest import s3_endpoint, s3_options

__all__ = ["s3_endpoint", "s3_options"]
