"""The grammar of Delta's own statements, and the entry `parse`, which leaves all other texts to Spark's grammar."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Literal

from pyspark_delta.errors import SqlSyntaxError
from pyspark_delta.parser.arguments import Arguments
from pyspark_delta.parser.clauses import at_time_travel, properties, time_travel
from pyspark_delta.parser.reader import Reader
from pyspark_delta.parser.statements import (
    AddConstraint,
    BeginTransaction,
    Clone,
    ClusterBy,
    CommitTransaction,
    ConvertToDelta,
    DeltaStatement,
    DescribeDetail,
    DescribeHistory,
    DropConstraint,
    DropFeature,
    FsckRepair,
    Generate,
    Optimize,
    ReorgPurge,
    ReorgUpgradeUniform,
    Restore,
    RollbackTransaction,
    SyncIdentity,
    Undo,
    Vacuum,
)
from pyspark_delta.parser.tokens import Kind
from pyspark_delta.parser.values import Path, SqlText, TableName, TableReference

_SPACE = r"(?:\s|--(?:\\\n|[^\r\n])*+)"
# Only these texts are read as tokens: others are decided by a search or two, in a microsecond.
_CANDIDATE = re.compile(
    rf"{_SPACE}*+(?:/\*|(?:VACUUM|OPTIMIZE|REORG|RESTORE|UNDO|CONVERT|GENERATE|FSCK|COMMIT|ROLLBACK)\b"
    rf"|BEGIN{_SPACE}++(?:/\*|TRANSACTION\b)"
    rf"|DESC(?:RIBE)?{_SPACE}++(?:/\*|DETAIL\b|HISTORY\b)"
    rf"|(?P<alter>ALTER)\b|(?P<clone>CREATE|REPLACE)\b)",
    re.IGNORECASE,
)
_IN_ALTER = re.compile(r"\b(?:CONSTRAINT|FEATURE|CLUSTER|SYNC)\b", re.IGNORECASE)
_IN_CLONE = re.compile(r"\bCLONE\b", re.IGNORECASE)


def parse(text: str, arguments: Arguments = None) -> DeltaStatement | None:
    """Return a statement of Delta's own grammar; None if the first words are not those of one.

    `arguments` are the values of parameters. A text that is not Delta's costs a few microseconds. Raises SqlSyntaxError
    for a text that begins as Delta's and goes on otherwise, InvalidOperationError for a parameter without an argument,
    and InvalidOptionError for an argument that has no literal.
    """
    candidate = _CANDIDATE.match(text)
    if candidate is None:
        return None
    if candidate["alter"] and not _IN_ALTER.search(text, candidate.end()):
        return None
    if candidate["clone"] and not _IN_CLONE.search(text, candidate.end()):
        return None
    reader = Reader(text)
    word = str(reader.token.value)
    if word not in _STATEMENTS or not _is_delta(word, reader):
        return None
    reader.bind(arguments)
    reader.accept(word)
    statement = _STATEMENTS[word](reader)
    reader.end()
    return statement


# ------------------------------------------------------------------------------------------- whose statement it is
def _is_delta(word: str, reader: Reader) -> bool:
    """Return True if a statement that begins with this word is Delta's."""
    reader.accept(word)
    try:
        match word:
            case "BEGIN":
                return reader.accept("TRANSACTION")
            case "DESC" | "DESCRIBE":
                return _is_describe(reader)
            case "CREATE" | "REPLACE":
                return _is_clone(word, reader)
            case "ALTER":
                return reader.accept("TABLE") and reader.skip_table_name() and _is_alter(reader)
    except SqlSyntaxError:  # Spark's grammar has the better message
        return False
    return True


def _is_describe(reader: Reader) -> bool:
    """Return True unless the table itself is named DETAIL or HISTORY."""
    if not (reader.accept("DETAIL") or reader.accept("HISTORY")):
        return False
    return not (reader.ended or reader.at(".") or reader.at("AS", "JSON") or reader.at("PARTITION", "("))


def _is_clone(word: str, reader: Reader) -> bool:
    if word == "CREATE":
        reader.accept("OR", "REPLACE")
    if not reader.accept("TABLE"):
        return False
    reader.accept("IF", "NOT", "EXISTS")
    return reader.skip_table_name() and (reader.at("CLONE") or reader.at("SHALLOW") or reader.at("DEEP"))


def _is_alter(reader: Reader) -> bool:
    if reader.accept("ADD", "CONSTRAINT"):  # keys are Spark's
        return reader.ended or reader.peek().value not in ("PRIMARY", "FOREIGN", "UNIQUE")
    if reader.accept("DROP", "CONSTRAINT"):
        reader.accept("IF", "EXISTS")
        return reader.ended or reader.peek().value not in ("RESTRICT", "CASCADE")
    if reader.at("DROP", "FEATURE") or reader.at("CLUSTER", "BY"):
        return True
    if reader.accept("ALTER") or reader.accept("CHANGE"):
        reader.accept("COLUMN")
        reader.path()
        return reader.at("SYNC")
    return False


# -------------------------------------------------------------------------------------------------- the statements
def _vacuum(reader: Reader) -> Vacuum:
    table = reader.table()
    mode: Literal["FULL", "LITE"] | None = None
    inventory: TableName | SqlText | None = None
    retain: int | Decimal | None = None
    dry_run = False
    while not reader.ended:
        if mode is None and reader.at_any("FULL", "LITE"):
            mode = "FULL" if reader.choose("FULL", "LITE") == "FULL" else "LITE"
        elif inventory is None and reader.accept("USING"):
            reader.expect("INVENTORY")
            inventory = reader.bracketed("a query") if reader.at("(") else reader.table_name()
        elif retain is None and reader.accept("RETAIN"):
            retain = reader.number("a number of hours")
            reader.expect("HOURS")
        elif not dry_run and reader.accept("DRY"):
            reader.expect("RUN")
            dry_run = True
        else:
            reader.fail(_vacuum_clauses(mode, inventory, retain, dry_run))
    return Vacuum(table, mode, inventory, retain, dry_run)


def _vacuum_clauses(mode: object, inventory: object, retain: object, dry_run: bool) -> str:
    """Return the clauses that a VACUUM does not have yet."""
    clauses = (
        ("FULL or LITE", mode),
        ("USING INVENTORY", inventory),
        ("RETAIN", retain),
        ("DRY RUN", dry_run or None),
    )
    return ", ".join([name for name, value in clauses if value is None] + ["the end of the statement"])


def _describe(reader: Reader) -> DescribeDetail | DescribeHistory:
    if reader.choose("DETAIL", "HISTORY") == "DETAIL":
        return DescribeDetail(reader.table())
    table = reader.table()
    return DescribeHistory(table, reader.integer("a number of versions") if reader.accept("LIMIT") else None)


def _optimize(reader: Reader) -> Optimize:
    table = reader.table()
    full = reader.accept("FULL")
    where: SqlText | None = None
    zorder_by: tuple[Path, ...] = ()
    if reader.accept("WHERE"):
        where = reader.cut("a predicate", lambda at: at.at("ZORDER", "BY"))
    if reader.accept("ZORDER"):
        reader.expect("BY")
        zorder_by = reader.bracketed_paths() if reader.at("(") else reader.paths()
    return Optimize(table, full, where, zorder_by)


def _reorg(reader: Reader) -> ReorgPurge | ReorgUpgradeUniform:
    reader.expect("TABLE")
    table = reader.table_name()
    where = reader.cut("a predicate", lambda at: at.at("APPLY", "(")) if reader.accept("WHERE") else None
    reader.expect("APPLY", "(")
    if where is not None or not reader.accept("UPGRADE"):
        reader.expect("PURGE", ")")
        return ReorgPurge(table, where)
    reader.expect("UNIFORM", "(", "ICEBERG_COMPAT_VERSION", "=")
    version = reader.integer("a number")
    reader.expect(")", ")")
    return ReorgUpgradeUniform(table, version)


def _restore(reader: Reader) -> Restore:
    start = reader.index
    if reader.accept("TABLE") and at_time_travel(reader):
        reader.index = start  # the table is named TABLE
    table = reader.table_name()
    reader.accept("TO")
    return Restore(table, time_travel(reader))


def _undo(reader: Reader) -> Undo:
    return Undo(reader.table())


def _convert(reader: Reader) -> ConvertToDelta:
    reader.expect("TO", "DELTA")
    source = reader.table_name()
    statistics = not reader.accept("NO")
    if not statistics:
        reader.expect("STATISTICS")
    columns = None
    if reader.accept("PARTITIONED"):
        reader.expect("BY")
        columns = reader.bracketed("columns with their types")
    return ConvertToDelta(source, statistics, columns)


def _generate(reader: Reader) -> Generate:
    mode = reader.name("the mode, such as symlink_format_manifest")
    reader.expect("FOR", "TABLE")
    return Generate(mode, reader.table_name())


def _fsck(reader: Reader) -> FsckRepair:
    reader.expect("REPAIR", "TABLE")
    table = reader.table()
    dry_run = reader.accept("DRY")
    if dry_run:
        reader.expect("RUN")
    return FsckRepair(table, dry_run)


def _create_clone(reader: Reader) -> Clone:
    return _clone(reader, creates=True, replaces=reader.accept("OR", "REPLACE"))


def _replace_clone(reader: Reader) -> Clone:
    return _clone(reader, creates=False, replaces=True)


def _clone(reader: Reader, *, creates: bool, replaces: bool) -> Clone:
    reader.expect("TABLE")
    if_not_exists = not replaces and reader.accept("IF", "NOT", "EXISTS")
    target = reader.table_name()
    shallow = reader.accept("SHALLOW")
    if not shallow:
        reader.accept("DEEP")
    reader.expect("CLONE")
    return Clone(
        target,
        reader.table_name(),
        shallow=shallow,
        time=time_travel(reader) if at_time_travel(reader) else None,
        if_not_exists=if_not_exists,
        creates=creates,
        replaces=replaces,
        properties=properties(reader) if reader.accept("TBLPROPERTIES") else (),
        location=reader.string("a path in quotes") if reader.accept("LOCATION") else None,
    )


def _alter(reader: Reader) -> AddConstraint | DropConstraint | DropFeature | ClusterBy | SyncIdentity:
    reader.expect("TABLE")
    table = reader.table_name()
    if reader.accept("ADD", "CONSTRAINT"):
        name = reader.name("the name of the constraint")
        reader.expect("CHECK")
        condition = reader.bracketed("a condition")
        reader.accept("ENFORCED")
        return AddConstraint(table, name, condition)
    if reader.accept("DROP", "CONSTRAINT"):
        if_exists = reader.accept("IF", "EXISTS")
        return DropConstraint(table, reader.name("the name of the constraint"), if_exists)
    if reader.accept("DROP", "FEATURE"):
        return _drop_feature(reader, table)
    if reader.accept("CLUSTER"):
        reader.expect("BY")
        return ClusterBy(table, () if reader.accept("NONE") else reader.bracketed_paths())
    reader.choose("ALTER", "CHANGE")
    reader.accept("COLUMN")
    column = reader.path("the name of a column")
    reader.expect("SYNC", "IDENTITY")
    return SyncIdentity(table, column)


def _drop_feature(reader: Reader, table: TableReference) -> DropFeature:
    quoted = reader.token.kind is Kind.STRING
    feature = reader.string() if quoted else reader.name("the name of a feature")
    truncate = reader.accept("TRUNCATE")
    if truncate:
        reader.expect("HISTORY")
    return DropFeature(table, feature, truncate)


def _begin(reader: Reader) -> BeginTransaction:
    reader.expect("TRANSACTION")
    return BeginTransaction()


def _commit(reader: Reader) -> CommitTransaction:
    reader.accept("TRANSACTION")
    return CommitTransaction()


def _rollback(reader: Reader) -> RollbackTransaction:
    reader.accept("TRANSACTION")
    return RollbackTransaction()


_STATEMENTS: Mapping[str, Callable[[Reader], DeltaStatement]] = {
    "ALTER": _alter,
    "BEGIN": _begin,
    "COMMIT": _commit,
    "CONVERT": _convert,
    "CREATE": _create_clone,
    "DESC": _describe,
    "DESCRIBE": _describe,
    "FSCK": _fsck,
    "GENERATE": _generate,
    "OPTIMIZE": _optimize,
    "REORG": _reorg,
    "REPLACE": _replace_clone,
    "RESTORE": _restore,
    "ROLLBACK": _rollback,
    "UNDO": _undo,
    "VACUUM": _vacuum,
}
