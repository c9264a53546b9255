from __future__ import annotations

import pytest

from pyspark_delta.log.commits import CommitText

ADD, INFO = '{"add":{"path":"x"}}', '{"commitInfo":{}}'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        (INFO, True),
        (f"{INFO}\n{ADD}\n", True),
        (f'{INFO}\n{ADD}\n{{"remove":{{}}}}\n{{"cdc":{{}}}}', True),
        (f'{INFO}\n{{"protocol":{{}}}}\n{ADD}', False),
        (f'{INFO}\n{ADD}\n{{"metaData":{{}}}}', False),
        (f'{INFO}\n{{ "protocol": {{}}}}', False),
        (f'{{"txn":{{}}}}\n{ADD}\n', False),
        (f"{INFO}\n\n{ADD}\n", False),  # not the usual form: looked through
    ],
)
def test_commits_that_are_about_files_alone_are_told(text: str, expected: bool) -> None:
    assert CommitText(0, "x", text.encode()).is_about_files() is expected
