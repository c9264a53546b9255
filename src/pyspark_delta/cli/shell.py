"""The SQL shell: statements of several lines that end with a semicolon, with history and completion."""

from __future__ import annotations

import atexit
import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark_delta.cli.output import print_problem, print_text
from pyspark_delta.cli.reporting import text_of_error
from pyspark_delta.cli.statements import Printer, run_statements
from pyspark_delta.errors import DeltaError
from pyspark_delta.parser.tokens import Kind, tokenize

if TYPE_CHECKING:
    from pyspark_delta.interpreter.session import Session

_FIRST, _MORE = "sql> ", "...> "
_ENDS = frozenset({"quit", "exit"})
_HISTORY_LINES = 2000
_WORDS = (
    "SELECT FROM WHERE GROUP BY ORDER LIMIT WITH JOIN ON VERSION AS OF TIMESTAMP INSERT INTO OVERWRITE VALUES DELETE "
    "UPDATE SET MERGE USING WHEN MATCHED NOT THEN CREATE OR REPLACE TABLE IF EXISTS PARTITIONED CLUSTER TBLPROPERTIES "
    "SHALLOW DEEP CLONE DROP ALTER ADD COLUMN COLUMNS CONSTRAINT CHECK FEATURE RENAME COMMENT TRUNCATE VACUUM RETAIN "
    "HOURS DRY RUN DESCRIBE DETAIL HISTORY EXTENDED OPTIMIZE ZORDER FULL LITE REORG APPLY PURGE RESTORE TO UNDO "
    "CONVERT DELTA GENERATE FSCK REPAIR SHOW CATALOGS SCHEMAS TABLES PARTITIONS USE"
)


def run_shell(session: Session, printer: Printer) -> None:
    """Read and run statements until the end of the input, `quit` or `exit`. An error does not end the shell."""
    print_text("Statements end with a semicolon. quit, exit or Ctrl-D ends the shell.")
    with contextlib.suppress(ImportError):  # not on every platform
        _prepare_readline(session)
    lines: list[str] = []
    while True:
        try:
            line = input(_MORE if lines else _FIRST)
        except KeyboardInterrupt:
            lines = []
            print_text("")
            continue
        except EOFError:
            print_text("")
            return
        if not lines and line.strip().rstrip(";").lower() in _ENDS:
            return
        lines.append(line)
        text = "\n".join(lines)
        if is_complete(text):
            lines = []
            _run(text, session, printer)


def _run(text: str, session: Session, printer: Printer) -> None:
    try:
        run_statements(text, session, printer)
    except DeltaError as error:
        print_problem(text_of_error(error))
    except KeyboardInterrupt:
        print_problem("Interrupted.")


def is_complete(text: str) -> bool:
    """Return True if a text ends with a semicolon outside of strings and comments, or holds no token."""
    tokens = tokenize(text)
    return len(tokens) == 1 or (tokens[-2].kind is Kind.OPERATOR and tokens[-2].text == ";")


# --------------------------------------------------------------------------------------------- history, completion
def _prepare_readline(session: Session) -> None:
    import readline

    history = _history_file()
    with contextlib.suppress(OSError):
        readline.read_history_file(history)
    readline.set_history_length(_HISTORY_LINES)
    readline.set_completer_delims(" \t\n,()=<>;")
    readline.set_completer(_Completer(session))
    is_editline = "libedit" in (readline.__doc__ or "")
    readline.parse_and_bind("bind ^I rl_complete" if is_editline else "tab: complete")
    atexit.register(_save_history, readline, history)


def _history_file() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "pyspark-delta" / "history"


def _save_history(readline: Any, history: Path) -> None:
    """Write the history for its owner alone: statements may hold secrets."""
    with contextlib.suppress(OSError):
        history.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(history, os.O_CREAT | os.O_WRONLY, 0o600))
        readline.write_history_file(history)


class _Completer:
    """Completes words of statements, and names of tables of the current schema or folder."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._found: list[str] = []

    def __call__(self, text: str, state: int) -> str | None:
        if state == 0:
            self._found = completions(text, self._session)
        return self._found[state] if state < len(self._found) else None


def completions(text: str, session: Session) -> list[str]:
    """Return the words and names that begin with a text, in its case."""
    words = [word if text[:1].isupper() else word.lower() for word in _WORDS.split() if word.startswith(text.upper())]
    names = [name for name in _tables(session) if name.casefold().startswith(text.casefold())]
    return sorted(set(names)) + [f"{word} " for word in dict.fromkeys(words)]


def _tables(session: Session) -> list[str]:
    with contextlib.suppress(DeltaError, OSError):
        return session.names.tables()
    return []
