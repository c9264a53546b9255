"""CREATE TABLE LIKE: the definition of another table, without what depends on its files and its history."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark_delta.ddl.create import TableDefinition
from pyspark_delta.protocol.configuration import CATALOG_MANAGED, CLONE_OF, OF_ONE_HISTORY
from pyspark_delta.protocol.properties import COLUMN_MAPPING_MAX_ID, MATERIALIZED_ROW_ID
from pyspark_delta.schema.column_ids import MAPPING_KEYS, without_keys
from pyspark_delta.schema.declaration_keys import IDENTITY_MARK
from pyspark_delta.schema.widening import TYPE_CHANGES
from pyspark_delta.snapshot import Snapshot
from pyspark_delta.transaction.protocol_upgrade import features_of

_NOT_COPIED = frozenset((*OF_ONE_HISTORY, MATERIALIZED_ROW_ID.name, COLUMN_MAPPING_MAX_ID.name, CLONE_OF))
_FIELD_KEYS = frozenset((*MAPPING_KEYS, IDENTITY_MARK, TYPE_CHANGES))


def definition_like(source: Snapshot, properties: Mapping[str, str]) -> TableDefinition:
    """Return the definition of a new, empty table like another one; `properties` override those of the source.

    Columns, with comments, defaults, generation and identity, partitioning, clustering, properties, the comment and the
    features of the protocol are those of the source. Identity columns start again, and columns get new ids. The new
    table is not managed by a catalog because its source is.
    """
    inherited = {name: value for name, value in source.properties.items() if name not in _NOT_COPIED}
    return TableDefinition(
        schema=without_keys(source.schema, _FIELD_KEYS),
        partition_columns=tuple(source.metadata.partition_columns),
        clustering=tuple(source.clustering_paths()),
        properties={**inherited, **properties},
        description=source.metadata.description,
        features=tuple(sorted(features_of(source.protocol).difference(CATALOG_MANAGED))),
        inherited=inherited,
    )
