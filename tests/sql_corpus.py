"""Statements of Delta's own grammar: texts, the values that they mean, and their prefixes that are statements too."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

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
from pyspark_delta.parser.values import SqlText, TableName, TablePath, TimestampAsOf, VersionAsOf


class Case(NamedTuple):
    """A text, its value, and the beginnings of the text that are statements of their own.

    `only_here` says why delta-spark refuses the text; empty if it accepts it.
    """

    text: str
    value: DeltaStatement
    legal: tuple[str, ...] = ()
    only_here: str = ""


T = TableName(("t",))
P = TableName(("delta", "/data/t"))
TEXT = "delta-spark's grammar has a version in quotes, but its parser fails on the quotes"
NESTED = "comments nest, as in Spark"
IDENTIFIER = "the clause IDENTIFIER, as in Spark"
DEEP = "deep clones are not in the open-source delta-spark"
OURS = "delta-spark has no such statement"

VACUUMS = [
    Case("VACUUM t", Vacuum(T)),
    Case("vacuum '/data/t'", Vacuum(TablePath("/data/t"))),
    Case('VACUUM "/data/it\'s"', Vacuum(TablePath("/data/it's"))),
    Case("VACUUM '/a\\'b'", Vacuum(TablePath("/a'b"))),
    Case("VACUUM '/a''b'", Vacuum(TablePath("/a'b"))),
    Case("VACUUM r'/a\\b'", Vacuum(TablePath("/a\\b")), only_here="raw strings, as in Spark"),
    Case("VACUUM delta.`/data/t`;", Vacuum(P), ("VACUUM delta", "VACUUM delta.`/data/t`")),
    Case(
        "VACUUM delta . `/a``b` ; ;",
        Vacuum(TableName(("delta", "/a`b"))),
        ("VACUUM delta", "VACUUM delta . `/a``b`", "VACUUM delta . `/a``b` ;"),
    ),
    Case("VACUUM main.sales.`o.r`", Vacuum(TableName(("main", "sales", "o.r"))), ("VACUUM main", "VACUUM main.sales")),
    Case("VACUUM IDENTIFIER('a.`b c`')", Vacuum(TableName(("a", "b c"))), ("VACUUM IDENTIFIER",), IDENTIFIER),
    Case("VACUUM t LITE", Vacuum(T, "LITE"), ("VACUUM t",)),
    Case("VACUUM t FULL DRY RUN", Vacuum(T, "FULL", dry_run=True), ("VACUUM t", "VACUUM t FULL")),
    Case("VACUUM t RETAIN 7 HOURS", Vacuum(T, retain_hours=7), ("VACUUM t",)),
    Case("VACUUM t RETAIN 0.5 HOURS", Vacuum(T, retain_hours=Decimal("0.5")), ("VACUUM t",)),
    Case("VACUUM t RETAIN -1 HOURS", Vacuum(T, retain_hours=-1), ("VACUUM t",)),
    Case(
        "VACUUM t DRY RUN RETAIN 7 HOURS LITE",
        Vacuum(T, "LITE", retain_hours=7, dry_run=True),
        ("VACUUM t", "VACUUM t DRY RUN", "VACUUM t DRY RUN RETAIN 7 HOURS"),
    ),
    Case(
        "VACUUM t USING INVENTORY a.b RETAIN 7 HOURS",
        Vacuum(T, inventory=TableName(("a", "b")), retain_hours=7),
        ("VACUUM t", "VACUUM t USING INVENTORY a", "VACUUM t USING INVENTORY a.b"),
    ),
    Case(
        "VACUUM t USING INVENTORY (SELECT path, ')' AS x, (1) FROM i /* ( */) DRY RUN",
        Vacuum(T, inventory=SqlText("SELECT path, ')' AS x, (1) FROM i"), dry_run=True),
        ("VACUUM t", "VACUUM t USING INVENTORY (SELECT path, ')' AS x, (1) FROM i /* ( */)"),
    ),
    Case("VACUUM\n\tt -- table\nRETAIN/**/1 HOURS", Vacuum(T, retain_hours=1), ("VACUUM\n\tt",)),
    Case("/* a /* b */ c */ VACUUM t", Vacuum(T), only_here=NESTED),
    Case("-- first\nVACUUM t -- last", Vacuum(T)),
    Case("VACUUM vacuum", Vacuum(TableName(("vacuum",)))),
    Case("VACUUM retain RETAIN 1 HOURS", Vacuum(TableName(("retain",)), retain_hours=1), ("VACUUM retain",)),
    Case("VACUUM dry DRY RUN", Vacuum(TableName(("dry",)), dry_run=True), ("VACUUM dry",)),
    Case("VACUUM full FULL", Vacuum(TableName(("full",)), "FULL"), ("VACUUM full",)),
    Case("VACUUM 1a", Vacuum(TableName(("1a",)))),
]
DESCRIBES = [
    Case("DESCRIBE DETAIL t", DescribeDetail(T)),
    Case("desc detail '/data/t'", DescribeDetail(TablePath("/data/t"))),
    Case("DESC DETAIL delta.`/data/t`", DescribeDetail(P), ("DESC DETAIL delta",)),
    Case("DESCRIBE DETAIL detail", DescribeDetail(TableName(("detail",)))),
    Case("DESCRIBE HISTORY t", DescribeHistory(T)),
    Case("DESC HISTORY t LIMIT 2", DescribeHistory(T, 2), ("DESC HISTORY t",)),
    Case(
        "DESCRIBE /* x */ HISTORY '/data/t' LIMIT 10;",
        DescribeHistory(TablePath("/data/t"), 10),
        ("DESCRIBE /* x */ HISTORY '/data/t'", "DESCRIBE /* x */ HISTORY '/data/t' LIMIT 10"),
    ),
    Case("DESCRIBE HISTORY limit LIMIT 1", DescribeHistory(TableName(("limit",)), 1), ("DESCRIBE HISTORY limit",)),
]
OPTIMIZES = [
    Case("OPTIMIZE t", Optimize(T)),
    Case("optimize '/data/t' FULL", Optimize(TablePath("/data/t"), True), ("optimize '/data/t'",)),
    Case(
        "OPTIMIZE t WHERE a = 1 AND b IN ('ZORDER BY', \"x\")",
        Optimize(T, where=SqlText("a = 1 AND b IN ('ZORDER BY', \"x\")")),
        (
            "OPTIMIZE t",
            "OPTIMIZE t WHERE a",
            "OPTIMIZE t WHERE a =",
            "OPTIMIZE t WHERE a = 1",
            "OPTIMIZE t WHERE a = 1 AND",
            "OPTIMIZE t WHERE a = 1 AND b",
            "OPTIMIZE t WHERE a = 1 AND b IN",
        ),
    ),
    Case(
        "OPTIMIZE t WHERE d = 1 ZORDER BY a, b.c",
        Optimize(T, where=SqlText("d = 1"), zorder_by=(("a",), ("b", "c"))),
        (
            "OPTIMIZE t",
            "OPTIMIZE t WHERE d",
            "OPTIMIZE t WHERE d =",
            "OPTIMIZE t WHERE d = 1",
            "OPTIMIZE t WHERE d = 1 ZORDER",
            "OPTIMIZE t WHERE d = 1 ZORDER BY a",
            "OPTIMIZE t WHERE d = 1 ZORDER BY a, b",
        ),
    ),
    Case("OPTIMIZE t ZORDER BY (`a b`, zorder)", Optimize(T, zorder_by=(("a b",), ("zorder",))), ("OPTIMIZE t",)),
    Case(
        "OPTIMIZE optimize ZORDER BY by",
        Optimize(TableName(("optimize",)), zorder_by=(("by",),)),
        ("OPTIMIZE optimize",),
    ),
]
REORGS = [
    Case("REORG TABLE t APPLY (PURGE)", ReorgPurge(T)),
    Case("REORG TABLE delta.`/data/t` WHERE d > '1' APPLY (PURGE)", ReorgPurge(P, SqlText("d > '1'"))),
    Case("REORG TABLE apply APPLY (PURGE)", ReorgPurge(TableName(("apply",)))),
    Case(
        "REORG TABLE t APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))",
        ReorgUpgradeUniform(T, 2),
    ),
]
RESTORES = [
    Case("RESTORE t TO VERSION AS OF 3", Restore(T, VersionAsOf(3))),
    Case("RESTORE TABLE t VERSION AS OF '3'", Restore(T, VersionAsOf(3)), only_here=TEXT),
    Case("RESTORE TABLE a.b FOR SYSTEM_VERSION AS OF 0", Restore(TableName(("a", "b")), VersionAsOf(0))),
    Case("RESTORE delta.`/data/t` TO TIMESTAMP AS OF '2026-01-01'", Restore(P, TimestampAsOf("2026-01-01"))),
    Case("RESTORE t FOR SYSTEM_TIME AS OF '2026-01-01 01:02:03'", Restore(T, TimestampAsOf("2026-01-01 01:02:03"))),
    Case("RESTORE table VERSION AS OF 1", Restore(TableName(("table",)), VersionAsOf(1))),
    Case("RESTORE TABLE TO VERSION AS OF 1", Restore(TableName(("TO",)), VersionAsOf(1))),
]
COPIES = [
    Case(
        "CONVERT TO DELTA parquet.`/data/p`",
        ConvertToDelta(TableName(("parquet", "/data/p"))),
        ("CONVERT TO DELTA parquet",),
    ),
    Case(
        "convert to delta a.b NO STATISTICS",
        ConvertToDelta(TableName(("a", "b")), False),
        ("convert to delta a", "convert to delta a.b"),
    ),
    Case(
        "CONVERT TO DELTA parquet.`/p` NO STATISTICS PARTITIONED BY (day DATE, p decimal(3, 1))",
        ConvertToDelta(TableName(("parquet", "/p")), False, SqlText("day DATE, p decimal(3, 1)")),
        ("CONVERT TO DELTA parquet", "CONVERT TO DELTA parquet.`/p`", "CONVERT TO DELTA parquet.`/p` NO STATISTICS"),
    ),
    Case(
        "GENERATE symlink_format_manifest FOR TABLE delta.`/data/t`",
        Generate("symlink_format_manifest", P),
        ("GENERATE symlink_format_manifest FOR TABLE delta",),
    ),
    Case("GENERATE for FOR TABLE table", Generate("for", TableName(("table",)))),
    Case("CREATE TABLE c SHALLOW CLONE t", Clone(TableName(("c",)), T)),
    Case(
        "CREATE TABLE IF NOT EXISTS c SHALLOW CLONE delta.`/data/t`",
        Clone(TableName(("c",)), P, if_not_exists=True),
        ("CREATE TABLE IF NOT EXISTS c SHALLOW CLONE delta",),
    ),
    Case(
        "CREATE OR REPLACE TABLE c SHALLOW CLONE t VERSION AS OF 2",
        Clone(TableName(("c",)), T, time=VersionAsOf(2), replaces=True),
        ("CREATE OR REPLACE TABLE c SHALLOW CLONE t",),
    ),
    Case(
        "REPLACE TABLE c SHALLOW CLONE t TIMESTAMP AS OF '2026-01-01' LOCATION '/x'",
        Clone(TableName(("c",)), T, time=TimestampAsOf("2026-01-01"), creates=False, replaces=True, location="/x"),
        ("REPLACE TABLE c SHALLOW CLONE t", "REPLACE TABLE c SHALLOW CLONE t TIMESTAMP AS OF '2026-01-01'"),
    ),
    Case(
        "CREATE TABLE c SHALLOW CLONE t TBLPROPERTIES ('a.b' = '1', delta.c = true, d 3) LOCATION '/x'",
        Clone(TableName(("c",)), T, properties=(("a.b", "1"), ("delta.c", "true"), ("d", "3")), location="/x"),
        (
            "CREATE TABLE c SHALLOW CLONE t",
            "CREATE TABLE c SHALLOW CLONE t TBLPROPERTIES ('a.b' = '1', delta.c = true, d 3)",
        ),
    ),
    Case("CREATE TABLE c DEEP CLONE t", Clone(TableName(("c",)), T, shallow=False), (), DEEP),
    Case("CREATE OR REPLACE TABLE c CLONE t", Clone(TableName(("c",)), T, shallow=False, replaces=True), (), DEEP),
]
ALTERS = [
    Case("ALTER TABLE t ADD CONSTRAINT c CHECK (a > (1))", AddConstraint(T, "c", SqlText("a > (1)"))),
    Case(
        "alter table delta.`/data/t` add constraint `c d` check (a IN ('(', ')'))",
        AddConstraint(P, "c d", SqlText("a IN ('(', ')')")),
    ),
    Case("ALTER TABLE t DROP CONSTRAINT c", DropConstraint(T, "c")),
    Case(
        "ALTER TABLE t DROP CONSTRAINT IF EXISTS check",
        DropConstraint(T, "check", True),
        ("ALTER TABLE t DROP CONSTRAINT IF",),
    ),
    Case("ALTER TABLE t DROP FEATURE deletionVectors", DropFeature(T, "deletionVectors")),
    Case(
        "ALTER TABLE t DROP FEATURE 'v2Checkpoint' TRUNCATE HISTORY",
        DropFeature(T, "v2Checkpoint", True),
        ("ALTER TABLE t DROP FEATURE 'v2Checkpoint'",),
    ),
    Case("ALTER TABLE t CLUSTER BY (a, b.c)", ClusterBy(T, (("a",), ("b", "c")))),
    Case("ALTER TABLE t CLUSTER BY NONE", ClusterBy(T)),
    Case("ALTER TABLE t ALTER COLUMN id SYNC IDENTITY", SyncIdentity(T, ("id",))),
    Case("ALTER TABLE t CHANGE a.b SYNC IDENTITY", SyncIdentity(T, ("a", "b"))),
]
EXTENSIONS = [
    Case("FSCK REPAIR TABLE t", FsckRepair(T), (), OURS),
    Case(
        "FSCK REPAIR TABLE '/data/t' DRY RUN",
        FsckRepair(TablePath("/data/t"), True),
        ("FSCK REPAIR TABLE '/data/t'",),
        OURS,
    ),
    Case("UNDO t", Undo(T), (), OURS),
    Case("UNDO delta.`/data/t`", Undo(P), ("UNDO delta",), OURS),
    Case("BEGIN TRANSACTION;", BeginTransaction(), ("BEGIN TRANSACTION",), OURS),
    Case("commit transaction", CommitTransaction(), ("commit",), OURS),
    Case("ROLLBACK -- all of it\n", RollbackTransaction(), (), OURS),
]
CASES = [*VACUUMS, *DESCRIBES, *OPTIMIZES, *REORGS, *RESTORES, *COPIES, *ALTERS, *EXTENSIONS]

# Text -> the error's position, counted from 0 in the whole text, and what was expected there.
REFUSED = {
    "VACUUM t RETAIN 7": (17, "expected HOURS after RETAIN 7"),
    "VACUUM t RETAIN x HOURS": (16, "expected a number of hours after t RETAIN"),
    "VACUUM t LITE FULL": (14, "expected USING INVENTORY, RETAIN, DRY RUN, the end of the statement"),
    "VACUUM t RETAIN 1 HOURS RETAIN 2 HOURS": (24, "expected FULL or LITE, USING INVENTORY, DRY RUN"),
    "VACUUM t USING INVENTORY ()": (26, "expected a query"),
    "VACUUM t USING INVENTORY (SELECT (1)": (36, "expected )"),
    "VACUUM t, u": (8, "expected FULL or LITE"),
    "VACUUM ``": (7, "expected the name of a table"),
    "VACUUM 'abc": (7, "expected the closing ' of a string"),
    "VACUUM t /* never closed": (9, "expected */, the end of a comment"),
    "VACUUM `t": (7, "expected the closing ` of a name"),
    "DESCRIBE HISTORY t LIMIT -1": (25, "expected a number of versions after t LIMIT"),
    "DESCRIBE DETAIL t u": (18, "expected the end of the statement"),
    "OPTIMIZE t WHERE": (16, "expected a predicate after t WHERE"),
    "OPTIMIZE t WHERE ZORDER BY a": (17, "expected a predicate"),
    "OPTIMIZE t WHERE (a = 1": (23, "expected )"),
    "OPTIMIZE t WHERE a = 1)": (22, "expected the end of the statement"),
    "OPTIMIZE t WHERE f(a]": (20, "expected )"),
    "OPTIMIZE t ZORDER BY (a": (23, "expected )"),
    "OPTIMIZE t ZORDER BY a,": (23, "expected the name of a column"),
    "REORG t APPLY (PURGE)": (6, "expected TABLE"),
    "REORG TABLE t APPLY (DELETE)": (21, "expected PURGE"),
    "RESTORE t TO 3": (13, "expected VERSION or SYSTEM_VERSION or TIMESTAMP or SYSTEM_TIME after t TO"),
    "RESTORE t VERSION AS OF x": (24, "expected the number of a version"),
    "RESTORE t VERSION AS OF 1.5": (24, "expected the number of a version"),
    "RESTORE t TIMESTAMP AS OF 3": (26, "expected a timestamp in quotes"),
    "CONVERT TO PARQUET t": (11, "expected DELTA"),
    "CONVERT TO DELTA t PARTITIONED BY ()": (35, "expected columns with their types"),
    "GENERATE m FOR t": (15, "expected TABLE"),
    "CREATE TABLE c SHALLOW CLONE": (28, "expected the name of a table after SHALLOW CLONE"),
    "CREATE TABLE c SHALLOW CLONE t TBLPROPERTIES (a = b)": (50, "expected a string, a number, TRUE or FALSE"),
    "ALTER TABLE t ADD CONSTRAINT c (a > 1)": (31, "expected CHECK after CONSTRAINT c"),
    "ALTER TABLE t ADD CONSTRAINT c CHECK a > 1": (37, "expected ("),
    "ALTER TABLE t DROP FEATURE f TRUNCATE": (37, "expected HISTORY"),
    "ALTER TABLE t CLUSTER BY a": (25, "expected ("),
    "ALTER TABLE t ALTER COLUMN c SYNC": (33, "expected IDENTITY"),
    "FSCK TABLE t": (5, "expected REPAIR"),
    "COMMIT WORK": (7, "expected the end of the statement"),
    "BEGIN TRANSACTION t": (18, "expected the end of the statement"),
    "UNDO": (4, "expected the name of a table or a path in quotes after UNDO"),
}

# Texts that Spark's grammar judges.
NOT_DELTAS = [
    "",
    "  -- nothing",
    "SELECT * FROM t",
    "SELECT 'VACUUM t'",
    "vacuumed t",
    "DESCRIBE t",
    "DESCRIBE DETAIL",
    "DESCRIBE detail;",
    "DESC history",
    "DESCRIBE history.t",
    "DESCRIBE TABLE detail",
    "DESCRIBE detail AS JSON",
    "DESCRIBE history PARTITION (a = 1)",
    "CREATE TABLE t (a INT) USING delta",
    "CREATE TABLE t (clone INT)",
    "CREATE TABLE clone AS SELECT 1",
    "REPLACE TABLE t AS SELECT 'clone'",
    "CREATE VIEW v AS SELECT 1 AS clone",
    "ALTER TABLE t ADD COLUMN constraint INT",
    "ALTER TABLE t ADD CONSTRAINT k PRIMARY KEY (a)",
    "ALTER TABLE t DROP CONSTRAINT c CASCADE",
    "ALTER TABLE t ALTER COLUMN sync DROP NOT NULL",
    "ALTER TABLE t ALTER COLUMN c COMMENT 'sync'",
    "ALTER VIEW v AS SELECT 1 AS feature",
    "ALTER TABLE 'unclosed CONSTRAINT",
    "DELETE FROM t",
    "MERGE INTO t USING s ON a = b WHEN MATCHED THEN DELETE",
]

# Texts of REFUSED that delta-spark accepts, and why it does.
UNBALANCED = "delta-spark finds brackets that do not match when it runs the statement"
ACCEPTED_BY_SPARK = {
    "VACUUM t USING INVENTORY (SELECT (1)": UNBALANCED,
    "VACUUM ``": "delta-spark finds the empty name when it runs the statement",
    "OPTIMIZE t WHERE ZORDER BY a": "delta-spark takes ZORDER for the predicate, and fails on it when it runs",
    "OPTIMIZE t WHERE (a = 1": UNBALANCED,
    "OPTIMIZE t WHERE a = 1)": UNBALANCED,
    "OPTIMIZE t WHERE f(a]": UNBALANCED,
}
