"""The table that a statement changes, at one version: its candidate files, and how rows are read and written."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.columns import FILE_FIELDS
from pyspark_delta.actions.model import Metadata, Protocol
from pyspark_delta.changes.configuration_ranges import cdf_enabled
from pyspark_delta.data.reader import partition_text
from pyspark_delta.data.writer import WriteContext
from pyspark_delta.engines.cost import DEFAULT, CostModel
from pyspark_delta.engines.tasks import TaskRunner
from pyspark_delta.expressions.exact import exact_condition, inexact_reason, names_of_table
from pyspark_delta.expressions.sql import parse_predicate
from pyspark_delta.expressions.tree import Expression
from pyspark_delta.features import Feature, is_active
from pyspark_delta.protocol.clustering import clustering_paths
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import ReadSet
from pyspark_delta.scan.file_source import FileSource, file_source
from pyspark_delta.scan.matches import MatchedFiles, match_files, possible_files
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.transaction.write_plan import FileOptions, write_context
from pyspark_delta.write.options import WriteOptions
from pyspark_delta.write.written import has_row_ids

Condition: TypeAlias = Any
"""SQL text, or an expression that the session's engine knows: a Column of PySpark."""

_CURRENT_TIME = re.compile(r"\b(?:curdate|current_date|current_timestamp|localtimestamp|now)\b", re.IGNORECASE)

FILE, ROW = "__pyspark_delta_file", "__pyspark_delta_row"
"""Columns of the rows of a target: the number of the file among those that are read, and the position in it."""

_ALL = tuple(f.name for f in FILE_FIELDS)


@dataclass(frozen=True, slots=True)
class RowCondition:
    """A valid condition on the rows of a table: as the caller gave it, and as SQL text.

    `reads` is what subqueries in it read from the table itself.
    """

    given: Condition
    text: str
    reads: ReadSet = field(default_factory=ReadSet)


@dataclass(frozen=True, slots=True)
class Candidates:
    """Files that may hold rows for which a condition is true, with all columns of `actions.columns`.

    Every row of the files `fully_matched` meets the condition. The commit depends on `reads`.
    """

    fully_matched: pa.Table
    partially_matched: pa.Table
    reads: ReadSet

    def reading(self, reads: ReadSet) -> Candidates:
        """Return the same files for a commit that depends on other reads too."""
        return replace(self, reads=self.reads.union(reads))

    @property
    def all(self) -> pa.Table:
        """All candidate files."""
        return pa.concat_tables([self.fully_matched, self.partially_matched]).combine_chunks()


@dataclass(frozen=True)
class Target:
    """A table at one version, as a statement sees it; `alias` is the name of the table in its conditions.

    `evolved` is what the table declares after the statement and the changes that its commit makes first, if that
    differs. Rows are read in this schema: null in new columns. `options` and `file_options` say how rows are written.
    `time_zone` applies to times without one. `tasks` run outside of this process, if there are some. `client` is what
    runs the statement, as commits name it, such as `PySpark/4.3.0`. With `in_transaction`, the commit may have
    more statements.
    """

    snapshot: Snapshot
    alias: str | None = None
    evolved: TableConfiguration | None = None
    options: WriteOptions = field(default_factory=WriteOptions)
    file_options: FileOptions = field(default_factory=FileOptions)
    time_zone: str = "UTC"
    cost: CostModel = DEFAULT
    tasks: TaskRunner | None = None
    client: str = ""
    in_transaction: bool = False
    has_one_clock: ClassVar[bool] = True
    """True if what compares rows with the current time has the same moment as what skips files by it."""

    @property
    def configuration(self) -> TableConfiguration:
        """What the table declares after the statement, except for high-water marks of identity columns."""
        return self.evolved or self.snapshot.configuration

    @property
    def metadata(self) -> Metadata | None:
        """The metadata, if the statement changes the schema."""
        unchanged = self.configuration.metadata == self.snapshot.configuration.metadata
        return None if unchanged else self.configuration.metadata

    @property
    def protocol(self) -> Protocol | None:
        """The protocol, if a new column needs another one."""
        unchanged = self.configuration.protocol == self.snapshot.configuration.protocol
        return None if unchanged else self.configuration.protocol

    @property
    def uses_vectors(self) -> bool:
        """True if rows are deleted by deletion vectors; False if their files are rewritten (C252)."""
        return is_active(self.configuration, Feature.DELETION_VECTORS)

    @property
    def has_feed(self) -> bool:
        """True if commits record which rows change."""
        return cdf_enabled(self.configuration)

    @property
    def has_row_ids(self) -> bool:
        """True if rows keep their ids."""
        return has_row_ids(self.configuration)

    @cached_property
    def context(self) -> WriteContext:
        """How rows are written to files of the table."""
        clustering = clustering_paths(self.snapshot.domains(), ())
        options = replace(self.file_options, storage_options=self.snapshot.storage_options)
        return write_context(self.snapshot.location, self.configuration, options, clustering=clustering)

    @property
    def source(self) -> FileSource:
        """The table of its files."""
        return replace(file_source(self.snapshot), configuration=self.configuration)

    # ---------------------------------------------------------------------------------------------------- files
    def predicate(self, condition: str) -> Expression:
        """Return the part of the condition by which files can be skipped."""
        if self.has_one_clock and _CURRENT_TIME.search(condition):
            exact = self.exact_condition(condition)
            if exact is not None:
                return exact
        return parse_predicate(condition, self.snapshot.schema, on_opaque="keep", time_zone=self.time_zone)

    def exact_condition(self, condition: str) -> Expression | None:
        """Return a valid condition as Arrow computes it; None if Arrow does not compute it exactly."""
        schema = self.configuration.schema
        return exact_condition(condition, schema, names_of_table(schema, self.alias), self.time_zone)

    def inexact_reason(self, condition: str) -> str:
        """Return why Arrow does not compute a condition exactly."""
        schema = self.configuration.schema
        return inexact_reason(condition, schema, names_of_table(schema, self.alias), self.time_zone)

    def candidates(self, condition: RowCondition | None) -> Candidates:
        """Return the files that may hold rows for which a condition is true; all files if there is none.

        The commit depends on these files, and on what subqueries in the condition read.
        """
        if condition is None:
            files = self.snapshot.files(_ALL)
            return Candidates(files, files.slice(0, 0), ReadSet(whole_table=True))
        predicate = self.predicate(condition.text)
        found: MatchedFiles = match_files(self.snapshot, predicate, _ALL, time_zone=self.time_zone)
        paths = frozenset(found.partially_matched["path"].to_pylist())
        reads = ReadSet(predicates=(predicate,), paths=paths, time_zone=self.time_zone)
        return Candidates(found.fully_matched, found.partially_matched, reads).reading(condition.reads)

    def read_candidates(self, predicate: Expression | None) -> Candidates:
        """Return the same files for a statement that reads the rows of all of them; none counts as fully matched."""
        if predicate is None:
            files, reads = self.snapshot.files(_ALL), ReadSet(whole_table=True)
        else:
            files = possible_files(self.snapshot, predicate, _ALL, time_zone=self.time_zone)
            reads = ReadSet(predicates=(predicate,), time_zone=self.time_zone)
        return Candidates(files.slice(0, 0), files, replace(reads, paths=frozenset(files["path"].to_pylist())))


def by_partition(files: pa.Table, context: WriteContext) -> pa.Table:
    """Return the files with those of a table partition adjacent, so that a task has one file open at a time."""
    if not context.partition_names:
        return files
    # By number: Arrow treats a name that begins with a dot as a path.
    keys = pa.table({str(i): partition_text(files, name) for i, name in enumerate(context.partition_names)})
    return files.take(pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in keys.column_names]))
