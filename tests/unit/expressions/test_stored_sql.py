"""Which SQL text of a table may be evaluated."""

from __future__ import annotations

import pytest

from pyspark_delta.expressions.stored_sql import NotAllowedError, check_stored_sql

# Names as a hostile table chooses them: words that begin a query, or lead to one.
COLUMNS = ["id", "s", "l", "ts", "v", "a.b", "day", "select", "from", "values", "using", "map", "ſelect"]


def refused(text: str, *, columns: list[str] | None = None, current: bool = True) -> str:
    with pytest.raises(NotAllowedError) as error:
        check_stored_sql(text, COLUMNS if columns is None else columns, current=current)
    return str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "id > 0 AND ID <= 10 or not (s is null)",
        "id + 1.5BD * -2L / 1e-3 % 7 & 1 | 2 ^ ~3 << 1 >> 1 >>> 1 <=> 4 || s",
        "s RLIKE '^[a-z]+@[a-z]+$' AND length(s) BETWEEN 1 AND 10 AND s LIKE ANY ('a%', 'b''c', \"d\\\"e\")",
        "CAST(ts AS DATE) = DATE'2024-01-01' and cast(id as decimal(10, 2)) > 0 and id::varchar(3) = 'a'",
        "case when s in ('java_method(1)', r'\\d', X'AB') then (id) else `a.b` end <> 1",
        "exists(l, e -> e.select > id) and aggregate(l, 0, (acc, e) -> acc + e) > 0 and l[0] is distinct from 1",
        "ts > current_timestamp() - interval 1 day and current_date > '2020-01-01' and current_user() = s",
        "extract(year from ts) > 2000 and date_trunc('month', ts) = trim(both ' ' from s) and year(ts) = 1",
        "timestampadd(DAY, 1, ts) > ts and datediff(ts, ts) = 0 and day > 1",
        "lpad(s, 3, '0') = format_string('%03d', id) and round(id, -2) = floor(id) and format_number(id, '#.#') = s",
        "v:a.b::int > 1 and size(values) > 0 and values[0] = 1 and (from) < 3 and map('a', 1)['a'] = 1",
        "named_struct('x', id).x = 1 and struct(id as one).one = 1",
    ],
)
def test_ordinary_text_is_allowed(text: str) -> None:
    check_stored_sql(text, COLUMNS, current=True)


UNLISTED = """
java_method Reflect try_reflect `java_method` raise_error assert_true rand uuid input_file_name read_files from_json
from_avro xpath count sum explode row_number identifier my_udf sleep repeat sequence array_repeat array_insert version
any table current_database aes_decrypt session_window over long
"""


@pytest.mark.parametrize("name", UNLISTED.split())
def test_functions_that_are_not_listed_are_refused(name: str) -> None:
    assert name.strip("`") in refused(f"id > 0 and {name}(s) = 'x'")


@pytest.mark.parametrize("text", ["spark_catalog.default.abs(id)", "a.abs(id)", "system . `abs` (id)", "1.abs(id)"])
def test_qualified_functions_are_refused(text: str) -> None:
    assert "qualified name" in refused(text, columns=[*COLUMNS, "spark_catalog", "a", "system"])


@pytest.mark.parametrize(
    "text",
    [
        "(select max(id) from t) > 1",
        "select id",
        "id in (SELECT id)",
        "exists (from t select id)",
        "exists(values (1))",
        "((values 1))",
        "id in (table t)",
        "(with c as (select 1) table c) = 1",
        "(from (id) select s) = 1",
        "(map id using 'touch /tmp/x' as (s)) = 1",
        "(map(id) using 'touch /tmp/x' as (s)) = 1",
        "(map(id, 1. using 'touch /tmp/x')) = 1",
        "(reduce id using 'x') = 1",
    ],
)
def test_queries_are_refused_whatever_columns_are_called(text: str) -> None:
    assert "word" in refused(text, columns=[*COLUMNS, "t", "c", "with", "table", "reduce"])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("id > --1\n 1", "comment"),
        ("id /* java_method */ > 1", "comment"),
        ("id /*+ x */ > 1", "comment"),
        ("s = '${env:AWS_SECRET_ACCESS_KEY}'", "variable"),
        ("`${spark.hadoop.fs.s3a.secret.key}` = 1", "variable"),
        ("(ſelect id)", "character"),
        ("id\u00a0> 1", "character"),
        ("{fn abs(id)} > 1", "character"),
        ("id = ?", "character"),
        ("id > 1; drop table t", "character"),
        ("'abs'(id)", "call"),
        ('"abs"(id)', "call"),
        ("identifier('abs')(id)", "identifier"),
        ("(abs)(id)", "name 'abs'"),
        ("l[0](id)", "call"),
        ("1e+5R'\\' or java_method(s) or '' = ''", "quote"),
        ("id > 1) or (id < 1", "not opened"),
        ("(id > 1", "not closed"),
        ("id > 1, 2", "comma"),
        ("abs(x => id)", "'=>'"),
        ("", "empty"),
        ("secret = s", "'secret'"),
        ("x = s", "'x'"),
        ("1e = s", "'1e'"),
        ("1e - 5 = s", "'1e'"),
        ("`secret` + 1 = s", "'secret'"),
        ("year = s", "'year'"),
        ("date = s", "'date'"),
        ("exists(l, e -> true) and e = 1", "'e'"),
        ("abs(" * 60 + "id" + ")" * 60, "brackets"),
        ("s = '" + "a" * (1 << 20) + "'", "characters"),
        ("space(2000000000) = s", "size"),
        ("lpad(s, id) = s", "size"),
        ("rpad(s, 1 + 2000000000, 'x') = s", "size"),
        ("round(id / 3D, 2000000000) = 1", "size"),
        ("format_string('%2000000000d', id) = s", "format"),
        ("printf(s, id) = s", "format"),
    ],
)
def test_other_text_is_refused(text: str, found: str) -> None:
    assert found in refused(text)


def test_generated_columns_do_not_depend_on_the_moment() -> None:
    assert "now" in refused("now()", current=False)
    assert "current_date" in refused("current_date", current=False)
    check_stored_sql("current_date", ["current_date"], current=False)


def test_a_default_names_no_column() -> None:
    assert "constants" in refused("id", columns=[])
    check_stored_sql("cast(current_timestamp() as date)", [], current=True)
    check_stored_sql("array(1, 2)", [], current=True)


def test_the_check_takes_linear_time() -> None:
    """One pass: a long list of brackets is not read again for each of them."""
    check_stored_sql("id in (" + ",".join(f"({n})" for n in range(100_000)) + ")", COLUMNS, current=True)
