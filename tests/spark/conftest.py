"""The S3 server of the contract tests serves here too, and cost models can be set."""

from tests.contracts.conftest import s3_endpoint, s3_options
from tests.costs import cost

__all__ = ["cost", "s3_endpoint", "s3_options"]
