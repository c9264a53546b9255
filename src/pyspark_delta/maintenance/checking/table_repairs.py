"""Repairs that are commits: what new writers must know is corrected, or references to files are removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from pyspark_delta.actions.columns import FILE_FIELDS, TOMBSTONE_FIELDS
from pyspark_delta.actions.model import DomainMetadata
from pyspark_delta.ddl.change import TableChange, commit_change
from pyspark_delta.ddl.identity import commit_marks
from pyspark_delta.ddl.row_ids import number_files
from pyspark_delta.expressions.tree import Column
from pyspark_delta.features import Feature, supported_features, unsupported_in_use
from pyspark_delta.features.support import check_removable, check_writable
from pyspark_delta.log.reconciliation import file_keys
from pyspark_delta.log.request import FileRequest
from pyspark_delta.maintenance.checking.declaration import OF_SCHEMA, ROW_TRACKING, column_exists
from pyspark_delta.maintenance.checking.live_files import hashes
from pyspark_delta.maintenance.checking.source_copies import restore_from_source
from pyspark_delta.maintenance.missing_files import missing_files
from pyspark_delta.maintenance.recommitting import commit_again
from pyspark_delta.protocol.clustering import DOMAIN as CLUSTERING
from pyspark_delta.protocol.clustering import clustering_paths
from pyspark_delta.protocol.draft import CommitDraft, Operation, ReadSet
from pyspark_delta.protocol.properties import COLUMN_MAPPING_MAX_ID
from pyspark_delta.schema.column_ids import all_ids
from pyspark_delta.schema.column_mapping import mapping_mode, physical_field, physical_schema
from pyspark_delta.schema.declaration_keys import IDENTITY_STEP
from pyspark_delta.schema.types import BOOLEAN, LONG
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.stats.parse import parse_stats
from pyspark_delta.stats.texts import with_member
from pyspark_delta.transaction.attempts import commit_draft
from pyspark_delta.transaction.base import state_of
from pyspark_delta.transaction.protocol_upgrade import with_features

_FILE = tuple(field.name for field in FILE_FIELDS)
_REMOVED = tuple(field.name for field in TOMBSTONE_FIELDS if field.name in _FILE)
_NUM_RECORDS, _TIGHT = Column(("numRecords",), LONG), Column(("tightBounds",), BOOLEAN)


# ------------------------------------------------------------------------------------------------------- declaration
def raise_max_column_id(snapshot: Snapshot, engine_info: str) -> bool:
    """Set the largest column id to the largest one in use (C244)."""
    metadata = snapshot.metadata
    largest = max([COLUMN_MAPPING_MAX_ID.of(snapshot.properties), *all_ids(snapshot.schema)])
    properties = {**metadata.configuration, COLUMN_MAPPING_MAX_ID.name: str(largest)}
    if properties == dict(metadata.configuration):
        return False
    draft = CommitDraft(
        operation=Operation("REPAIR", {"repair": "max-column-id"}),
        metadata=replace(metadata, configuration=properties),
        data_change=False,
        engine_info=engine_info,
    )
    commit_draft(draft, state_of(snapshot))
    return True


def sync_identity(snapshot: Snapshot, engine_info: str) -> bool:
    """Advance high-water marks of identity columns to the values in files, as SYNC IDENTITY does (C397)."""
    mode = mapping_mode(snapshot.configuration)
    fields = {field.name: field for field in snapshot.schema if field.metadata.get(IDENTITY_STEP)}
    leaves = tuple(
        Column(
            ("maxValues" if field.metadata[IDENTITY_STEP] > 0 else "minValues", physical_field(field, mode).name), LONG
        )
        for field in fields.values()
    )
    marks: dict[str, int] = {}
    for batch in snapshot.statistics(leaves, ("path",)):
        for column, (name, field) in zip(batch.columns[1:], fields.items(), strict=True):
            ascends = field.metadata[IDENTITY_STEP] > 0
            found = (pc.max if ascends else pc.min)(column).as_py()
            if found is not None:
                marks[name] = found if name not in marks else (max if ascends else min)(marks[name], found)
    return commit_marks(snapshot, marks, engine_info)


def advance_row_id_mark(snapshot: Snapshot, engine_info: str) -> bool:
    """Advance the high-water mark of row ids to the highest id in use (C334)."""
    highest = -1
    for batch in snapshot.statistics((_NUM_RECORDS,), ("path", "base_row_id")):
        base, records = batch.column(1), pc.fill_null(batch.column(2), 1)
        found = pc.max(pc.add(base, pc.subtract(records, 1))).as_py()
        highest = max(highest, -1 if found is None else found)
    if highest < 0:
        return False
    mark = DomainMetadata(domain=ROW_TRACKING, configuration=orjson.dumps({"rowIdHighWaterMark": highest}).decode())
    draft = CommitDraft(
        operation=Operation("REPAIR", {"repair": "row-id-mark"}),
        domains=(mark,),
        data_change=False,
        reads=ReadSet(whole_table=True),
        engine_info=engine_info,
    )
    commit_draft(draft, state_of(snapshot))
    return True


def keep_existing_clustering(snapshot: Snapshot, engine_info: str) -> bool:
    """Declare only the clustering columns that the table has (C349)."""
    schema = physical_schema(snapshot.schema, mapping_mode(snapshot.configuration))
    paths = clustering_paths(snapshot.domains())
    existing = [list(path) for path in paths if column_exists(schema, path)]
    if len(existing) == len(paths):
        return False
    columns = DomainMetadata(domain=CLUSTERING, configuration=orjson.dumps({"clusteringColumns": existing}).decode())
    draft = CommitDraft(
        operation=Operation("REPAIR", {"repair": "clustering-columns"}),
        domains=(columns,),
        data_change=False,
        engine_info=engine_info,
    )
    commit_draft(draft, state_of(snapshot))
    return True


def assign_row_ids(snapshot: Snapshot, engine_info: str) -> bool:
    """Assign row ids to the files that have none, as a backfill does; other ids stay (C325)."""
    check_writable(snapshot.configuration, snapshot.location)
    return number_files(snapshot, engine_info=engine_info).version > snapshot.version


def add_required_features(snapshot: Snapshot, engine_info: str) -> bool:
    """Add the features that types of the schema and domains need, and those that supported ones require (C227).

    Readers and writers without these features fail on such a table anyway.
    """
    protocol = snapshot.configuration.protocol
    used = [f.name for f in unsupported_in_use(snapshot.configuration) if f.declaration_check == OF_SCHEMA]
    if snapshot.domains():
        used.append(Feature.DOMAIN_METADATA)
    needed = with_features(protocol, (*supported_features(snapshot.configuration), *used))
    if needed == protocol:
        return False
    draft = CommitDraft(
        operation=Operation("REPAIR", {"repair": "required-features"}),
        protocol=needed,
        data_change=False,
        engine_info=engine_info,
    )
    commit_draft(draft, state_of(snapshot))
    return True


def add_features(snapshot: Snapshot, engine_info: str) -> bool:
    """Add the features that schema, properties or files use, and those that supported ones require (C227)."""
    configuration = snapshot.configuration
    used = [feature.name for feature in unsupported_in_use(configuration)]
    used += supported_features(configuration)
    vectors = (batch.column("deletion_vector") for batch in snapshot.read_files(FileRequest(("deletion_vector",))))
    if any(len(column) > column.null_count for column in vectors):
        used.append(Feature.DELETION_VECTORS)
    protocol = with_features(configuration.protocol, used)
    if protocol == configuration.protocol:
        return False
    change = TableChange(
        operation=Operation("REPAIR", {"repair": "features"}), metadata=snapshot.metadata, features=tuple(used)
    )
    commit_change(change, snapshot, complying=tuple(used), engine_info=engine_info)
    return True


# -------------------------------------------------------------------------------------------------------------- files
def widen_statistics(snapshot: Snapshot, engine_info: str) -> bool:
    """Mark the bounds of files with deletion vectors as wide (C413). Their rows stay the same."""
    found = []
    for batch in snapshot.read_files(FileRequest(_FILE)):
        tight = pc.fill_null(parse_stats(batch.column("stats"), [_TIGHT]).column(0), True)
        chosen = pc.and_(
            pc.and_(tight, pc.is_valid(batch.column("stats"))), pc.is_valid(batch.column("deletion_vector"))
        )
        if chosen.true_count:
            found.append(batch.filter(chosen))
    files = pa.Table.from_batches(found, pa.schema(FILE_FIELDS)) if found else None
    if files is None:
        return False

    def widened(part: pa.Table) -> pa.Table:
        texts = [with_member(text, ("tightBounds",), "false") for text in part["stats"].to_pylist()]
        return part.set_column(part.column_names.index("stats"), "stats", pa.array(texts, pa.string()))

    draft = CommitDraft(operation=Operation("COMPUTE STATS", {"tightBounds": False}), engine_info=engine_info)
    commit_again(snapshot, files, widened, draft)
    return True


def remove_missing(snapshot: Snapshot, engine_info: str) -> bool:
    """Remove files that do not exist from the table, as FSCK does. Their rows are lost already.

    Files that the source of a deep clone still has are copied back instead.
    """
    check_writable(snapshot.configuration, snapshot.location)
    check_removable(snapshot.configuration, "FSCK")
    lost = missing_files(snapshot, snapshot.files(_REMOVED))
    lost, restored = restore_from_source(snapshot, lost)
    if not lost.num_rows:
        return restored
    return _remove(snapshot, lost, "FSCK", engine_info)


def remove_files(snapshot: Snapshot, paths: Sequence[str], engine_info: str) -> bool:
    """Remove some files from the table, given by their paths in the log, as FSCK does."""
    check_writable(snapshot.configuration, snapshot.location)
    check_removable(snapshot.configuration, "FSCK")
    files = snapshot.files(_REMOVED)
    files = files.filter(pc.is_in(files["path"], value_set=pa.array(paths, pa.string())))
    return bool(files.num_rows) and _remove(snapshot, files, "FSCK", engine_info)


def remove_duplicates(snapshot: Snapshot, engine_info: str) -> bool:
    """Of files that are live twice, keep the one with more deleted rows: the later one (C279)."""
    check_writable(snapshot.configuration, snapshot.location)
    files = snapshot.files(_REMOVED)
    paths = hashes(file_keys(files["path"].combine_chunks(), None, snapshot.location))
    vectors = files["deletion_vector"].combine_chunks()
    deleted = np.asarray(pc.fill_null(pc.struct_field(vectors, "cardinality"), 0))
    order = np.lexsort((-deleted, paths))
    repeated = np.zeros(len(paths), np.bool_)
    repeated[order[1:]] = paths[order][1:] == paths[order][:-1]
    if not repeated.any():
        return False
    return _remove(snapshot, files.filter(pa.array(repeated)), "FSCK", engine_info)


def _remove(snapshot: Snapshot, files: pa.Table, operation: str, engine_info: str) -> bool:
    draft = CommitDraft(
        operation=Operation(operation, {}, {"numRemovedFiles": files.num_rows}),
        removes=files,
        reads=ReadSet(paths=frozenset(files["path"].to_pylist())),
        engine_info=engine_info,
    )
    commit_draft(draft, state_of(snapshot))
    return True
