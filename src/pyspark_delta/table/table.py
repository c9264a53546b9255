"""The Spark-free entry point: open a version of a table, inspect it, and scan it into Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from os import PathLike
from typing import Any, Literal

import pyarrow as pa

from pyspark_delta.actions.model import Metadata, Protocol
from pyspark_delta.catalog.log_tail import TailFiles
from pyspark_delta.catalog.names import required_name, resolve, resolve_or_create
from pyspark_delta.ddl.properties import property_text
from pyspark_delta.display import html_facts
from pyspark_delta.errors import InvalidOperationError, InvalidOptionError
from pyspark_delta.log.history import commit_history, last_modified
from pyspark_delta.progress import ShowProgress, operation
from pyspark_delta.protocol.catalog_table import CatalogTable
from pyspark_delta.scan.statistics import statistics_table
from pyspark_delta.schema.timestamps import parse_timestamp, utc_datetime
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.snapshot.access import PUBLISHED_ONLY
from pyspark_delta.snapshot.cache import latest_snapshot
from pyspark_delta.storage import normalize_location
from pyspark_delta.table.arguments import check_arguments, check_version
from pyspark_delta.table.checking import CheckedTable
from pyspark_delta.table.clustering import ClusteredTable
from pyspark_delta.table.copying import CopyingTable
from pyspark_delta.table.creation import IfExists, create, definition
from pyspark_delta.table.features import TableOfFeatures
from pyspark_delta.table.inspecting import InspectedTable
from pyspark_delta.table.maintenance import MaintainedTable
from pyspark_delta.table.reading import ReadableTable
from pyspark_delta.table.rearranging import RearrangedTable
from pyspark_delta.table.refreshing import open_changed
from pyspark_delta.table.sources import open_rows
from pyspark_delta.table.streaming import StreamedTable
from pyspark_delta.table.upkeep import KeptTable
from pyspark_delta.table.writes import CommitInfo, Txn, WritableTable
from pyspark_delta.table.writing import Place, provenance, write
from pyspark_delta.transaction.protocol_upgrade import features_of
from pyspark_delta.write.options import parse_mode


class Table(
    ReadableTable,
    StreamedTable,
    WritableTable,
    MaintainedTable,
    RearrangedTable,
    ClusteredTable,
    CopyingTable,
    CheckedTable,
    InspectedTable,
    TableOfFeatures,
    KeptTable,
):
    """A Delta table without Spark: it shows one version, and its changes apply to the latest one.

    >>> table = Table.open("/data/flights")            # doctest: +SKIP
    >>> table.scan(columns=["origin"], where="month = 1").to_arrow()   # doctest: +SKIP
    >>> table.append([{"origin": "SFO", "month": 1}])                  # doctest: +SKIP
    """

    def __init__(self, snapshot: Snapshot, *, is_latest: bool = True) -> None:
        self._snapshot, self._is_latest = snapshot, is_latest

    @classmethod
    def open(
        cls,
        location: str | PathLike[str],
        *,
        version: int | None = None,
        timestamp: str | datetime | int | None = None,
        storage_options: Mapping[str, str] | None = None,
        published_only: bool = False,
    ) -> Table:
        """Open the latest version, or the one that `version` or `timestamp` names.

        `timestamp` is a text such as `2024-01-31` or `2024-01-31 12:00:00` (UTC unless it has a zone), a datetime
        (naive means UTC), or milliseconds since the epoch; the newest version not after it is opened. A catalog-managed
        table is opened by its name, with `for_name`. With `published_only` it can also be opened by its path, for
        reading, up to its last published commit.

        Raises TableNotFoundError, VersionNotFoundError, TimestampOutOfRangeError, UnsupportedFeatureError, and
        CorruptLogError if the log cannot be read.
        """
        if published_only:
            storage_options = {**(storage_options or {}), PUBLISHED_ONLY: "true"}
        return cls._open(normalize_location(location), version, timestamp, storage_options)

    @classmethod
    def _open(
        cls,
        location: str,
        version: int | None,
        timestamp: str | datetime | int | None,
        storage_options: Mapping[str, str] | None,
        catalog_table: CatalogTable | None = None,
        tail: TailFiles | None = None,
    ) -> Table:
        if version is not None and timestamp is not None:
            raise InvalidOptionError("Give either a version or a timestamp to travel to, not both.")
        if version is not None:
            check_version(version)
        timestamp_ms = None if timestamp is None else parse_timestamp(timestamp)
        if version is None and timestamp_ms is None:
            return cls(latest_snapshot(location, storage_options, catalog_table=catalog_table, tail=tail))
        snapshot = Snapshot.load(
            location,
            version=version,
            timestamp_ms=timestamp_ms,
            storage_options=storage_options,
            catalog_table=catalog_table,
            tail=tail,
        )
        return cls(snapshot, is_latest=False)

    @classmethod
    def _at(cls, snapshot: Snapshot) -> Table:
        return cls(snapshot)

    @classmethod
    @check_arguments
    def create(
        cls,
        location: str | PathLike[str],
        schema: Any,
        *,
        partition_by: Sequence[str] = (),
        cluster_by: Sequence[str] = (),
        properties: Mapping[str, object] | None = None,
        description: str | None = None,
        if_exists: IfExists = "error",
        storage_options: Mapping[str, str] | None = None,
    ) -> Table:
        """Create a table without rows, and open it.

        `schema` is a text of column definitions as in CREATE TABLE, such as `id BIGINT NOT NULL, day DATE GENERATED
        ALWAYS AS (CAST(at AS DATE)), at TIMESTAMP`; a mapping of names to types; a schema of PyArrow or another object
        with `__arrow_c_schema__`; or the schema of a table. `if_exists` is `error`, `ignore` (the existing table is
        opened), or `replace` (only its history stays).

        Raises TableAlreadyExistsError, and InvalidOperationError and InvalidOptionError for a wrong definition.
        """
        place = Place(normalize_location(location), dict(storage_options or {}))
        create(place, definition(schema, partition_by, cluster_by, properties, description), if_exists)
        return cls(open_changed(place.latest))

    @classmethod
    @check_arguments
    def create_for_name(
        cls,
        name: str,
        schema: Any,
        *,
        partition_by: Sequence[str] = (),
        cluster_by: Sequence[str] = (),
        properties: Mapping[str, object] | None = None,
        description: str | None = None,
        if_exists: IfExists = "error",
    ) -> Table:
        """Create a table in a connected catalog, such as `main.sales.orders`; arguments and errors as for `create`.

        The catalog chooses the location. Raises CatalogError too.
        """
        found = resolve_or_create(required_name(name))
        place = Place(found.location, found.storage_options, found.catalog_table)
        create(place, definition(schema, partition_by, cluster_by, properties, description), if_exists)
        return open_changed(lambda: cls.for_name(name))

    @classmethod
    @check_arguments
    def write(
        cls,
        location: str | PathLike[str],
        data: Any,
        *,
        mode: Literal["error", "append", "overwrite", "ignore"] = "error",
        partition_by: Sequence[str] | None = None,
        cluster_by: Sequence[str] = (),
        properties: Mapping[str, object] | None = None,
        merge_schema: bool = False,
        overwrite_schema: bool = False,
        storage_options: Mapping[str, str] | None = None,
        txn: Txn = None,
        commit_info: CommitInfo = None,
        progress: ShowProgress = None,
    ) -> Table:
        """Write rows to a table, which is created with the columns of the data if it does not exist; open it.

        `mode` is for a table that exists: `error`, `append`, `overwrite`, or `ignore`, which writes nothing. The other
        arguments and errors are as for `create`, `append` and `overwrite`.
        """
        place = Place(normalize_location(location), dict(storage_options or {}))
        options = place.options(
            merge_schema=merge_schema,
            overwrite_schema=overwrite_schema,
            partition_by=None if partition_by is None else tuple(partition_by),
            cluster_by=tuple(cluster_by),
            properties={name: property_text(name, value) for name, value in (properties or {}).items()},
            **provenance(txn, commit_info),
        )
        with operation(progress):
            write(place, open_rows(data), parse_mode(mode), options, must_exist=False)
        return cls(open_changed(place.latest))

    @classmethod
    def for_name(cls, name: str, *, version: int | None = None, timestamp: str | datetime | int | None = None) -> Table:
        """Open a table of a connected catalog, such as `main.sales.orders`; the other arguments are as for `open`.

        Raises CatalogNameNotFoundError, CatalogError, and the errors of `open`.
        """
        found = resolve(required_name(name))
        return cls._open(found.location, version, timestamp, found.storage_options, found.catalog_table, found.tail)

    def __repr__(self) -> str:
        return f"Table({self.location!r}, version={self.version})"

    def _repr_html_(self) -> str:
        return html_facts("Table", self._snapshot.configuration.shown(self.version))

    @property
    def location(self) -> str:
        """The location of the table: a path, or `scheme://authority/key`."""
        return self._snapshot.location

    @property
    def version(self) -> int:
        """The version that was opened."""
        return self._snapshot.version

    @property
    def protocol(self) -> Protocol:
        """The protocol versions and table features of this version."""
        return self._snapshot.configuration.protocol

    @property
    def metadata(self) -> Metadata:
        """The table's id, name, properties and schema text."""
        return self._snapshot.configuration.metadata

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The logical names of the partition columns."""
        return self._snapshot.configuration.partition_columns

    def refresh(self) -> Table:
        """Show the latest version from now on; return this object."""
        self._snapshot, self._is_latest = Place.of(self._snapshot).latest(), True
        return self

    def _place(self) -> Place:
        if not self._is_latest:
            raise InvalidOperationError(
                f"The table '{self.location}' was opened at version {self.version}, which cannot be changed. Open it "
                "without a version, or call refresh().",
                error_class="DELTA_UNSUPPORTED_TIME_TRAVEL",
            )
        return Place.of(self._snapshot)

    def detail(self) -> dict[str, Any]:
        """Return the columns of `DESCRIBE DETAIL`, by the same names: format, id, location, numFiles, sizeInBytes, ...

        Times are datetimes in UTC, sizes are bytes.
        """
        snapshot, metadata, protocol = self._snapshot, self.metadata, self.protocol
        return {
            "format": "delta",
            "id": metadata.id,
            "name": metadata.name,
            "description": metadata.description,
            "location": self.location,
            "createdAt": utc_datetime(metadata.created_time),
            "lastModified": utc_datetime(last_modified(snapshot)),
            "partitionColumns": list(self.partition_columns),
            "clusteringColumns": snapshot.clustering_columns(),
            "numFiles": snapshot.num_files(),
            "sizeInBytes": snapshot.size_in_bytes(),
            "properties": dict(metadata.configuration),
            "minReaderVersion": protocol.min_reader_version,
            "minWriterVersion": protocol.min_writer_version,
            "tableFeatures": sorted(features_of(protocol)),
        }

    def history(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Return the commits from this version back, newest first, by the names of `DESCRIBE HISTORY`.

        At most `limit` commits are read and returned. Fields that a commit lacks are None.
        """
        if limit is not None and limit < 0:
            raise InvalidOptionError(f"The limit of a history is a number of commits from 0 on, found {limit}.")
        return commit_history(self._snapshot, limit)

    def files(self) -> pa.Table:
        """The live data files, one row each: path and partition values as in the log, size in bytes, times in ms."""
        return self._snapshot.files(
            ("path", "partition_values", "size", "modification_time", "stats", "deletion_vector")
        )

    def stats(self) -> pa.Table:
        """Return the statistics of the live data files, typed, one row each, in no order.

        Columns: `path` as in the log; `numRecords`, the number of rows including deleted ones; `tightBounds` (false:
        the bounds may be wider than the values, C410); and the structs `minValues`, `maxValues` and `nullCount` with
        the columns of the table that can have them, by logical name and with the type in the schema. Bounds of strings
        are truncated to about 32 characters, those of timestamps to milliseconds (C412). Null means that the writer
        gave no value. Partition columns have no statistics: see `files`.

        Read from `stats_parsed` of a checkpoint that has it, and from JSON otherwise. Raises CorruptLogError.
        """
        return statistics_table(self._snapshot)
