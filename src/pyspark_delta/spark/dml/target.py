"""The table that a statement changes, at one version: which of its files concern it, and their rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from pyspark_delta.actions.columns import FILE_FIELDS
from pyspark_delta.actions.model import Metadata, Protocol
from pyspark_delta.changes.eras import keeps_changes
from pyspark_delta.data.writer import WriteContext
from pyspark_delta.expressions.exact import exact_condition, names_of_table
from pyspark_delta.expressions.sql import parse_predicate
from pyspark_delta.expressions.tree import Expression
from pyspark_delta.features import Feature, is_active
from pyspark_delta.features.support import check_writable
from pyspark_delta.protocol.clustering import clustering_paths
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.draft import ReadSet
from pyspark_delta.scan.matches import MatchedFiles, match_files, possible_files
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.spark.column_text import text_on
from pyspark_delta.spark.read import read_files, session_time_zone
from pyspark_delta.spark.scan.frames import FileSource
from pyspark_delta.spark.schemas import empty_frame, to_spark
from pyspark_delta.spark.write.options import WriteOptions
from pyspark_delta.spark.write.rows_written import has_row_ids
from pyspark_delta.spark.write.session_defaults import file_options, with_session_defaults
from pyspark_delta.transaction.write_plan import write_context

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

Condition: TypeAlias = "Column | str"

FILE, ROW = "__pyspark_delta_file", "__pyspark_delta_row"
"""Columns of the rows of a target: the number of the file among those that are read, and the position in it."""

_ALL = tuple(f.name for f in FILE_FIELDS)


@dataclass(frozen=True, slots=True)
class Candidates:
    """Files that may hold rows that a condition is true for, with all columns of `actions.columns`.

    Every row of the files `inside` meets the condition. `reads` is what looking at them makes the commit depend on.
    """

    inside: pa.Table
    partly: pa.Table
    reads: ReadSet

    @property
    def all(self) -> pa.Table:
        """Both."""
        return pa.concat_tables([self.inside, self.partly]).combine_chunks()


@dataclass(frozen=True)
class Target:
    """A table at one version, as a statement sees it; `alias` is the name of the table in its conditions.

    Where the statement, or what its commit does before it, changes what the table declares, `evolved` is that. Rows are
    read in the schema after it: null in columns that are new.
    """

    spark: SparkSession
    snapshot: Snapshot
    alias: str | None = None
    evolved: TableConfiguration | None = None

    @classmethod
    def of(
        cls,
        spark: SparkSession,
        snapshot: Snapshot,
        alias: str | None = None,
        declared: TableConfiguration | None = None,
    ) -> Target:
        """The target of a statement; `declared` is what its commit declares before it, where that differs.

        Raises UnsupportedFeatureError for a table that cannot be written to.
        """
        check_writable(declared or snapshot.configuration, snapshot.location)
        return cls(spark, snapshot, alias, declared)

    @property
    def configuration(self) -> TableConfiguration:
        """What the table declares once the statement is committed, but for marks of identity columns."""
        return self.evolved or self.snapshot.configuration

    @property
    def metadata(self) -> Metadata | None:
        """The metadata, where the statement changes the schema."""
        unchanged = self.configuration.metadata == self.snapshot.configuration.metadata
        return None if unchanged else self.configuration.metadata

    @property
    def protocol(self) -> Protocol | None:
        """The protocol, where a new column needs another one."""
        unchanged = self.configuration.protocol == self.snapshot.configuration.protocol
        return None if unchanged else self.configuration.protocol

    @property
    def uses_vectors(self) -> bool:
        """Whether rows are deleted by deletion vectors, or their files written anew (C252)."""
        return is_active(self.configuration, Feature.DELETION_VECTORS)

    @property
    def has_feed(self) -> bool:
        """Whether commits record which rows change."""
        return keeps_changes(self.configuration)

    @property
    def has_row_ids(self) -> bool:
        """Whether rows keep their ids."""
        return has_row_ids(self.configuration)

    @cached_property
    def options(self) -> WriteOptions:
        """What the session says about writes."""
        return with_session_defaults(self.spark, WriteOptions())

    @cached_property
    def context(self) -> WriteContext:
        """How rows become files of the table."""
        files = file_options(self.spark, self.configuration, self.options)
        clustering = clustering_paths(self.snapshot.domains(), ())
        return write_context(self.snapshot.location, self.configuration, files, clustering=clustering)

    @cached_property
    def time_zone(self) -> str:
        """The time zone of the session."""
        return session_time_zone(self.spark)

    # ----------------------------------------------------------------------------------------------- conditions
    def empty(self) -> DataFrame:
        """No rows, of the table's schema and under its name: to ask Spark about conditions."""
        return self._named(self._no_rows)

    @cached_property
    def _no_rows(self) -> DataFrame:
        return empty_frame(self.spark, to_spark(self.configuration.schema))

    def text(self, condition: Condition) -> str:
        """The condition, which may call the table by its alias, in SQL. Raises as `text_on`."""
        return condition if isinstance(condition, str) else text_on(self.empty(), condition)

    def predicate(self, condition: Condition) -> Expression:
        """The condition as far as files can be skipped by it."""
        return parse_predicate(self.text(condition), self.snapshot.schema, on_opaque="keep", time_zone=self.time_zone)

    def exact_condition(self, condition: Condition) -> Expression | None:
        """A condition that `check_condition` has passed, as Arrow computes it; None where that is left to Spark."""
        schema = self.configuration.schema
        return exact_condition(self.text(condition), schema, names_of_table(schema, self.alias), self.time_zone)

    def candidates(self, predicate: Expression | None) -> Candidates:
        """The files that may hold rows that a condition is true for; all where it is None."""
        if predicate is None:
            files = self.snapshot.files(_ALL)
            return Candidates(files, files.slice(0, 0), ReadSet(whole_table=True))
        found: MatchedFiles = match_files(self.snapshot, predicate, _ALL, time_zone=self.time_zone)
        paths = frozenset(found.partly["path"].to_pylist())
        return Candidates(
            found.inside, found.partly, ReadSet(predicates=(predicate,), paths=paths, time_zone=self.time_zone)
        )

    def read_candidates(self, predicate: Expression | None) -> Candidates:
        """The same, where the rows of all those files are looked at; none are taken to be inside."""
        if predicate is None:
            files, reads = self.snapshot.files(_ALL), ReadSet(whole_table=True)
        else:
            files = possible_files(self.snapshot, predicate, _ALL, time_zone=self.time_zone)
            reads = ReadSet(predicates=(predicate,), time_zone=self.time_zone)
        return Candidates(files.slice(0, 0), files, replace(reads, paths=frozenset(files["path"].to_pylist())))

    # ----------------------------------------------------------------------------------------------------- rows
    def rows(self, files: pa.Table) -> DataFrame:
        """The rows of some files, under the name of the table, with `FILE` and `ROW`.

        Where rows have ids, `_row_id` and `_row_commit_version` come before them.
        """
        frame = read_files(
            self.spark,
            self.source,
            files,
            row_tracking=self.has_row_ids,
            file_number=FILE,
            row_index=ROW,
        )
        return self._named(frame)

    @property
    def source(self) -> FileSource:
        """What its files belong to."""
        snapshot = self.snapshot
        return FileSource(snapshot.location, self.configuration, snapshot.storage_options, snapshot.version)

    def _named(self, frame: DataFrame) -> DataFrame:
        return frame if self.alias is None else frame.alias(self.alias)
