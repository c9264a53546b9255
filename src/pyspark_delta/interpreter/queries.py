"""Queries without Spark: DuckDB or Polars runs them; columns and conditions reach the plan of the read.

The text is translated from Spark's dialect. What functions return is what the engine computes, which may differ from
Spark in details such as rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from importlib.util import find_spec
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from pyspark_delta.errors import InvalidOperationError, InvalidOptionError, MissingDependencyError, from_text
from pyspark_delta.expressions.operators import keyword_of
from pyspark_delta.interpreter.identifiers import with_identifiers
from pyspark_delta.interpreter.literals import with_plain_strings
from pyspark_delta.interpreter.references import name_of, parse_query, table_references, time_of
from pyspark_delta.interpreter.values import rows_of_values
from pyspark_delta.lazy_sqlglot import exp
from pyspark_delta.parser.change_calls import ChangeCall, change_calls
from pyspark_delta.parser.reader import Reader
from pyspark_delta.parser.values import SqlText, TableName, TimeTravel
from pyspark_delta.table.readable import Readable

Engine: TypeAlias = Literal["duckdb", "polars"]
Open: TypeAlias = Callable[[TableName, TimeTravel | None], Readable]
"""Opens the table of a name, at a point in time."""
OpenChanges: TypeAlias = Callable[[ChangeCall], Readable]
"""Opens the change data feed that a call names."""


def run_query(
    text: str, open_table: Open, open_changes: OpenChanges, engine: Engine | None = None
) -> pa.RecordBatchReader:
    """Run a query, and return a reader of its rows.

    Raises InvalidOperationError for text that cannot be parsed or run, MissingDependencyError if neither DuckDB nor
    Polars is installed, and the errors of opening and reading tables.
    """
    chosen = choose_engine(engine)
    text, calls = _with_named_changes(with_identifiers(text))
    tree = parse_query(_as_select(with_plain_strings(text)))
    tables, qualified = {}, set[tuple[str, ...]]()
    for number, node in enumerate(table_references(tree)):
        qualified.add(_folded(node.parts))
        name, call = f"_delta_{number}", calls.get(node.name)
        tables[name] = open_table(name_of(node), time_of(node)) if call is None else open_changes(call)
        node.replace(_renamed(node, name))
    _shorten(tree, qualified)
    _name_values(tree)
    _name_columns(tree)
    query = tree.sql(dialect="duckdb")
    return _in_duckdb(query, tables) if chosen == "duckdb" else _in_polars(query, tables)


def _with_named_changes(text: str) -> tuple[str, dict[str, ChangeCall]]:
    """Return a query with names in place of calls of `table_changes`, and the calls by these names."""
    pieces, place, calls = list[str](), 0, dict[str, ChangeCall]()
    for call in change_calls(Reader(text)):
        name = f"_delta_changes_{len(calls)}"
        pieces += [text[place : call.start], name]
        place, calls[name] = call.end, call
    return "".join([*pieces, text[place:]]), calls


def _as_select(text: str) -> str:
    """Return `TABLE name` and `VALUES ...` as the SELECT that they mean; any other query unchanged."""
    reader = Reader(text)
    if reader.accept("TABLE"):
        return f"SELECT * FROM {text[reader.token.start :]}"
    rows = rows_of_values(SqlText(text))
    if rows is None:
        return text
    names = ", ".join(f"col{number + 1}" for number in range(len(rows[0])))
    return f"SELECT * FROM {text} AS _values({names})"


def choose_engine(engine: Engine | None) -> Engine:
    """Return the engine of queries: the one asked for, or the first that is installed."""
    if engine not in (None, "duckdb", "polars"):
        raise InvalidOptionError(f"engine is 'duckdb', 'polars' or None, found {engine!r}.", option="engine")
    wanted: tuple[Engine, ...] = ("duckdb", "polars") if engine is None else (engine,)
    for one in wanted:
        if find_spec(one) is not None:
            return one
    raise MissingDependencyError(
        f"Queries without Spark need {' or '.join(wanted)}, which {'is' if engine else 'are'} not installed: "
        f"pip install {wanted[0]}{'' if engine else ', or pip install polars'}."
    )


# ------------------------------------------------------------------------------------------------ names in queries
def _renamed(node: exp.Table, name: str) -> exp.Table:
    """Return the reference under another name, with its last part as the alias if it has none."""
    renamed = node.copy()
    renamed.set("this", exp.to_identifier(name))
    for argument in ("db", "catalog", "version"):
        renamed.set(argument, None)
    if not node.alias:
        renamed.set("alias", exp.TableAlias(this=exp.to_identifier(node.name, quoted=True)))
    return renamed


def _shorten(tree: Any, qualified: Collection[tuple[str, ...]]) -> None:
    """Leave the last part of the tables that qualify columns, as in `main.sales.t.id`; other parts are members."""
    for column in tree.find_all(exp.Column):
        parts = column.parts
        names = _folded(parts)
        for length in range(len(names) - 1, 1, -1):
            if any(name[-length:] == names[:length] for name in qualified):
                kept = [*reversed(parts[length - 1 :]), None, None, None]
                for argument, part in zip(("this", "table", "db", "catalog"), kept, strict=False):
                    column.set(argument, part)
                break


def _folded(parts: Iterable[Any]) -> tuple[str, ...]:
    return tuple(part.name.casefold() for part in parts)


def _name_values(tree: Any) -> None:
    """Name the columns of inline tables `col1`, `col2`, ... as Spark does: DuckDB begins with `col0`."""
    for number, values in enumerate(tree.find_all(exp.Values)):
        alias = values.args.get("alias")
        if alias is not None and alias.columns:
            continue
        table = exp.to_identifier(f"_values_{number}") if alias is None else alias.this.copy()
        width = len(values.expressions[0].expressions)
        columns = [exp.to_identifier(f"col{place + 1}") for place in range(width)]
        values.set("alias", exp.TableAlias(this=table, columns=columns))


def _name_columns(tree: Any) -> None:
    """Give columns without a name the ones that Spark gives them: `count(1)`, `sum(id)`, `(id + 1)`."""
    for place, found in enumerate(tree.selects):
        if found.output_name or found.is_star:
            continue
        name = "count(1)" if found.sql() == "COUNT(*)" else found.sql("spark", normalize_functions="lower")
        name = f"{keyword_of(found)}()" if keyword_of(found) else name
        if isinstance(found, exp.Binary):
            name = f"({name})"
        expressions = tree.selects
        expressions[place].replace(exp.alias_(found.copy(), name, quoted=True))


# ------------------------------------------------------------------------------------------------------- engines
def _in_duckdb(query: str, tables: Mapping[str, Readable]) -> pa.RecordBatchReader:
    import duckdb

    connection = duckdb.connect(":memory:")
    try:
        connection.execute("SET python_enable_replacements = false")  # a name is a table, not a variable of Python
        connection.execute("SET TimeZone = 'UTC'")
        for name, table in tables.items():
            table.to_duckdb(connection).create_view(name)
        connection.execute("SET enable_external_access = false")  # nor a file
        found = connection.sql(query)
        wide = [place for place, data_type in enumerate(found.types) if str(data_type) == "HUGEINT"]
        return _narrowed(_reader(found), wide, connection)
    except duckdb.Error as error:
        raise _failed("DuckDB", error) from None


def _reader(relation: Any) -> pa.RecordBatchReader:
    read = getattr(relation, "to_arrow_reader", None)  # an older DuckDB has another name
    return relation.fetch_arrow_reader() if read is None else read()


def _narrowed(reader: pa.RecordBatchReader, wide: list[int], connection: Any) -> pa.RecordBatchReader:
    """Return the rows with sums of integers as 64-bit integers, which they are in Spark."""
    schema = reader.schema
    for place in wide:
        schema = schema.set(place, schema.field(place).with_type(pa.int64()))

    def batches() -> Iterator[pa.RecordBatch]:
        import duckdb

        try:
            for batch in reader:
                yield batch.cast(schema) if wide else batch
        except (duckdb.Error, OSError) as error:
            raise _failed("DuckDB", error) from None
        finally:
            connection.close()

    return pa.RecordBatchReader.from_batches(schema, batches())


def _in_polars(query: str, tables: Mapping[str, Readable]) -> pa.RecordBatchReader:
    import polars as pl

    context: Any = pl.SQLContext(frames={name: table.to_polars() for name, table in tables.items()})
    try:
        found: pa.Table = context.execute(query, eager=True).to_arrow()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise _failed("Polars", error) from None
    return found.to_reader()


def _failed(engine: str, error: Exception) -> Exception:
    """Return the error of a table that the engine passes on, or the engine's own."""
    found = from_text(str(error))
    if found is not None:
        return found
    text = str(error).strip() or type(error).__name__
    return InvalidOperationError(f"{engine} cannot run the query: {text}", error_class="DELTA_QUERY_FAILED")
