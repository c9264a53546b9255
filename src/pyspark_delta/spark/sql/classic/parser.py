"""A parser around Spark's own: statements that change Delta tables become calls of Python, everything else stays.

Spark parses every text of SQL with the parser of the session: `spark.sql`, callers in the JVM, EXECUTE IMMEDIATE,
scripts, and the texts of views.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Any, ClassVar, ParamSpec, TypeVar

from pyspark_delta.errors import InvalidOperationError
from pyspark_delta.parser import parse
from pyspark_delta.parser.scripts import is_script, with_placeholders
from pyspark_delta.parser.statements import DeltaStatement
from pyspark_delta.spark.conf.probing import probing
from pyspark_delta.spark.frames.catalyst.error_relay import install
from pyspark_delta.spark.frames.catalyst.proxies import JavaProxy, passing
from pyspark_delta.spark.sql.classic.arguments import arguments_of
from pyspark_delta.spark.sql.classic.call import Procedures
from pyspark_delta.spark.sql.classic.path_names import rename_paths
from pyspark_delta.spark.sql.classic.providers import replace_provider
from pyspark_delta.spark.sql.classic.sessions import SessionReference
from pyspark_delta.spark.sql.classic.streams import with_streams
from pyspark_delta.spark.sql.classic.table_call import TableCalls
from pyspark_delta.spark.sql.classic.translation import Translator
from pyspark_delta.spark.sql.execute import is_of_spark

P = ParamSpec("P")
T = TypeVar("T")

_EXPLAIN = re.compile(r"\s*EXPLAIN(?:\s+(?:EXTENDED|CODEGEN|COST|FORMATTED|LOGICAL))?(?=\s)", re.IGNORECASE)
_NOT_SPACE = re.compile(r"\S")
_PARSER = "org.apache.spark.sql.catalyst.parser."
# Statements that begin with one of these words change nothing.
_QUERIES = frozenset(("SELECT", "VALUES", "SET", "USE"))


def _parsing(call: Callable[P, T]) -> Callable[P, T]:
    """Return the method with errors of Spark's parser that reach the JVM unchanged; other errors cross as ever.

    The methods of a parser declare their exceptions, so that a script, or a caller in the JVM, can handle them.
    """

    @wraps(call)
    def quiet(*args: P.args, **kwargs: P.kwargs) -> T:
        with probing():  # the caller of Spark logs the error
            return call(*args, **kwargs)

    return passing(quiet, lambda java: str(java.getClass().getName()).startswith(_PARSER))


class DeltaParser(JavaProxy):
    """Spark's parser with the statements of Delta."""

    class Java:
        implements: ClassVar[tuple[str, ...]] = (f"{_PARSER}ParserInterface",)

    def __init__(self, session: SessionReference, calls: Procedures | TableCalls, before: Any) -> None:
        super().__init__(session.jvm)
        self._session, self._before = session, before
        self._translator = Translator(session, calls)

    @_parsing
    def parsePlan(self, text: str) -> Any:
        own = self._own(text, None)
        return self._parsed(text, None, self._before.parsePlan) if own is None else own

    @_parsing
    def parsePlanWithParameters(self, text: str, parameters: Any) -> Any:
        own = self._own(text, parameters)
        if own is not None:
            return own
        return self._parsed(text, parameters, lambda known: self._before.parsePlanWithParameters(known, parameters))

    def _own(self, text: str, parameters: Any) -> Any:
        """Return the call for a statement of Delta's own grammar, or the plan that explains it; None for other texts.

        Spark would take some of these statements for others: DESCRIBE HISTORY t is also a table `HISTORY`.
        """
        explain = _EXPLAIN.match(text)
        blank = "" if explain is None else _NOT_SPACE.sub(" ", explain[0])  # positions in errors stay
        statement = self._statement(blank + text[len(blank) :], parameters)
        found = None if statement is None else self._translator.own(statement)
        if found is None or explain is None:
            return found
        return self._translator.explained(self._before.parsePlan(f"{explain[0]} SELECT 1"), found)

    def _statement(self, text: str, parameters: Any) -> DeltaStatement | None:
        try:
            return parse(text)
        except InvalidOperationError as error:
            if parameters is None or error.error_class != "UNBOUND_SQL_PARAMETER":
                raise
            return parse(text, arguments_of(self._session.spark, parameters))

    def _parsed(self, text: str, parameters: Any, parse_known: Callable[[str], Any]) -> Any:
        """Return the plan of a text that Spark parses, except for Delta's own statements in a script."""
        statements: dict[str, DeltaStatement] = {}
        if is_script(text):
            spark = self._session.spark
            text, statements = with_placeholders(
                text, lambda statement: not is_of_spark(spark, statement), arguments_of(spark, parameters)
            )
        plan = parse_known(text)
        rename_paths(self._session.spark, text, plan)
        plan = with_streams(self._session.spark, text, plan)
        if text[:7].strip().upper() in _QUERIES:
            return plan
        replace_provider(self._session.spark, plan)
        return self._translator.translated(plan, statements)

    # -------------------------------------------------------------------------------- what Spark's parser does alone
    @_parsing
    def parseQuery(self, text: str) -> Any:
        plan = self._before.parseQuery(text)
        rename_paths(self._session.spark, text, plan)
        return with_streams(self._session.spark, text, plan)

    @_parsing
    def parseExpression(self, text: str) -> Any:
        return self._before.parseExpression(text)

    @_parsing
    def parseTableIdentifier(self, text: str) -> Any:
        return self._before.parseTableIdentifier(text)

    @_parsing
    def parseFunctionIdentifier(self, text: str) -> Any:
        return self._before.parseFunctionIdentifier(text)

    @_parsing
    def parseMultipartIdentifier(self, text: str) -> Any:
        return self._before.parseMultipartIdentifier(text)

    @_parsing
    def parseTemporalTableIdentifier(self, text: str) -> Any:
        return self._before.parseTemporalTableIdentifier(text)

    @_parsing
    def parseRoutineParam(self, text: str) -> Any:
        return self._before.parseRoutineParam(text)

    @_parsing
    def parseTableSchema(self, text: str) -> Any:
        return self._before.parseTableSchema(text)

    @_parsing
    def parseDataType(self, text: str) -> Any:
        return self._before.parseDataType(text)

    @_parsing
    def splitStatements(self, text: str) -> Any:
        return self._before.splitStatements(text)


def install_parser(session: SessionReference, calls: Procedures | TableCalls) -> Callable[[], None]:
    """Put the parser into a session, in place of Spark's, and return what puts Spark's back.

    Exceptions must be passed on to the JVM (`pass_expected`). Raises AttributeError if this Spark has other internals.
    """
    jvm, state = session.jvm, session.state
    owners = ((state, "sqlParser"), (state.catalog(), "parser"))  # the latter parses the texts of views
    places = [(jvm.field(owner, name), owner) for owner, name in owners]
    before = [field.get(owner) for field, owner in places]
    install()
    parser = DeltaParser(session, calls, before[0])
    for field, owner in places:
        field.set(owner, parser)

    def remove() -> None:
        for (field, owner), one in zip(places, before, strict=True):
            field.set(owner, one)

    return remove
