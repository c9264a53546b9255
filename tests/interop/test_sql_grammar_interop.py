"""Delta's own SQL statements are accepted and refused as delta-spark's parser does, but for what is listed."""

from __future__ import annotations

from tests.interop.conftest import DeltaSparkServer
from tests.sql_corpus import ACCEPTED_BY_SPARK, CASES, REFUSED


def test_statements_are_accepted_as_in_delta_spark(delta_spark_server: DeltaSparkServer) -> None:
    plans = delta_spark_server.ask("parse", statements=[case.text for case in CASES])
    refused = {case.text for case, plan in zip(CASES, plans, strict=True) if plan is None}
    assert refused == {case.text for case in CASES if case.only_here}


def test_statements_are_refused_as_in_delta_spark(delta_spark_server: DeltaSparkServer) -> None:
    plans = delta_spark_server.ask("parse", statements=list(REFUSED))
    accepted = {text for text, plan in zip(REFUSED, plans, strict=True) if plan is not None}
    assert accepted == set(ACCEPTED_BY_SPARK)


def test_beginnings_of_statements_are_accepted_as_in_delta_spark(delta_spark_server: DeltaSparkServer) -> None:
    beginnings = [beginning for case in CASES if not case.only_here for beginning in case.legal]
    plans = delta_spark_server.ask("parse", statements=beginnings)
    assert [text for text, plan in zip(beginnings, plans, strict=True) if plan is None] == []
