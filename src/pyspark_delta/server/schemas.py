"""The JSON schemas of requests and responses, for the OpenAPI description."""

from __future__ import annotations

from typing import Any

from pyspark_delta.catalog.unity.limits import NAME_PATTERN as NEW_NAME_PATTERN
from pyspark_delta.server.fields import LARGEST
from pyspark_delta.server.fields import NAME as NAME_PATTERN
from pyspark_delta.server.updates import ACTIONS, REQUIREMENTS

Schema = dict[str, Any]


def closed(required: dict[str, Schema], **optional: Schema) -> Schema:
    """Return the schema of an object with these members; others are ignored."""
    schema: Schema = {"type": "object", "properties": {**required, **optional}}
    return {**schema, "required": list(required)} if required else schema


def many(items: Schema, least: int = 0) -> Schema:
    """Return a list."""
    return {"type": "array", "items": items, **({"minItems": least} if least else {})}


def page(key: str, items: Schema) -> Schema:
    """Return a page of a list."""
    return closed({key: many(items)}, next_page_token={"type": ["string", "null"]})


def whole(least: int) -> Schema:
    """Return a whole number of 64 bits."""
    return {"type": "integer", "format": "int64", "minimum": least, "maximum": LARGEST}


TEXT: Schema = {"type": "string"}
BOOLEAN: Schema = {"type": "boolean"}
NAME: Schema = {"type": "string", "pattern": NAME_PATTERN}
NEW_NAME: Schema = {"type": "string", "pattern": NEW_NAME_PATTERN}
OBJECT: Schema = {"type": "object"}
PROPERTIES: Schema = {"type": "object", "additionalProperties": TEXT}
OPTIONAL_TEXTS: Schema = {"type": "object", "additionalProperties": {"type": ["string", "null"]}}
TABLE_TYPE: Schema = {"type": "string", "enum": ["MANAGED", "EXTERNAL"]}
OPERATION: Schema = {"type": "string", "enum": ["READ", "READ_WRITE"]}

# ------------------------------------------------------------------------------------------------- the Delta API
_FIELD = closed(
    {"name": TEXT, "type": {"type": ["string", "object"]}, "nullable": BOOLEAN, "metadata": OBJECT},
)
COLUMNS = closed({"type": {"const": "struct"}, "fields": many(_FIELD)})
PROTOCOL = closed(
    {"min-reader-version": whole(1), "min-writer-version": whole(1)},
    **{"reader-features": many(TEXT), "writer-features": many(TEXT)},
)
COMMIT = closed(
    {
        "version": whole(1),
        "timestamp": whole(1),
        "file-name": TEXT,
        "file-size": whole(1),
        "file-modification-timestamp": whole(1),
    },
)
DOMAINS = closed(
    {},
    **{
        "delta.clustering": closed({"clusteringColumns": many(many(TEXT))}),
        "delta.rowTracking": closed({"rowIdHighWaterMark": whole(-1)}),
    },
)
CONFIG = closed({"endpoints": many(TEXT), "protocol-version": TEXT})
CREDENTIALS = closed(
    {
        "storage-credentials": many(
            closed(
                {"prefix": TEXT, "operation": OPERATION, "config": PROPERTIES},
                **{"expiration-time-ms": {**whole(0), "type": ["integer", "null"]}},
            )
        )
    }
)
CREATE_STAGING_TABLE = closed({"name": NEW_NAME})
STAGING_TABLE = closed(
    {
        "table-id": {"type": "string", "format": "uuid"},
        "table-type": {"const": "MANAGED"},
        "location": TEXT,
        **CREDENTIALS["properties"],
        "required-protocol": PROTOCOL,
        "required-properties": OPTIONAL_TEXTS,
    },
    **{
        "suggested-protocol": closed({}, **{"reader-features": many(TEXT), "writer-features": many(TEXT)}),
        "suggested-properties": OPTIONAL_TEXTS,
    },
)
CREATE_TABLE = closed(
    {
        "name": NEW_NAME,
        "location": TEXT,
        "table-type": TABLE_TYPE,
        "columns": COLUMNS,
        "protocol": PROTOCOL,
        "properties": PROPERTIES,
        "last-commit-timestamp-ms": whole(0),
    },
    comment=TEXT,
    **{"partition-columns": many(TEXT), "domain-metadata": DOMAINS},
)
TABLE = closed(
    {
        "metadata": closed(
            {
                "etag": TEXT,
                "table-type": TABLE_TYPE,
                "table-uuid": {"type": "string", "format": "uuid"},
                "location": TEXT,
                "created-time": whole(0),
                "updated-time": whole(0),
                "columns": COLUMNS,
                "properties": PROPERTIES,
            },
            **{"partition-columns": many(TEXT)},
        )
    },
    commits=many(COMMIT),
    **{"latest-table-version": whole(0)},
)


def _update(action: str, required: dict[str, Schema]) -> Schema:
    assert action in ACTIONS
    return closed({"action": {"const": action}, **required})


UPDATE = {
    "oneOf": [
        _update("add-commit", {"commit": COMMIT}),
        _update("set-latest-backfilled-version", {"latest-published-version": whole(0)}),
        _update("set-properties", {"updates": PROPERTIES}),
        _update("remove-properties", {"removals": many(TEXT)}),
        _update("set-columns", {"columns": COLUMNS}),
        _update("set-partition-columns", {"partition-columns": many(TEXT)}),
        _update("set-table-comment", {"comment": TEXT}),
        _update("set-protocol", {"protocol": PROTOCOL}),
        _update("set-domain-metadata", {"updates": DOMAINS}),
        _update("remove-domain-metadata", {"domains": many(TEXT)}),
        _update(
            "update-metadata-snapshot-version",
            {"last-commit-version": whole(0), "last-commit-timestamp-ms": whole(0)},
        ),
    ]
}
REQUIREMENT = {
    "oneOf": [
        closed({"type": {"const": REQUIREMENTS[0]}, "uuid": TEXT}),
        closed({"type": {"const": REQUIREMENTS[1]}, "etag": TEXT}),
    ]
}
UPDATE_TABLE = closed({"requirements": many(REQUIREMENT, 1), "updates": many(UPDATE, 1)})
RENAME_TABLE = closed({"new-name": NEW_NAME})
METRICS = closed({"table-id": TEXT}, report=OBJECT)
ERROR = closed({"error": closed({"message": TEXT, "type": TEXT, "code": {"type": "integer"}})})

# ----------------------------------------------------------------------------------------- the older operations
_DESCRIBED = {"comment": {"type": ["string", "null"]}, "properties": PROPERTIES}
CATALOG = closed({"name": TEXT, **_DESCRIBED})
CREATE_CATALOG = closed({"name": NEW_NAME})
SCHEMA = closed({"name": TEXT, "catalog_name": TEXT, "full_name": TEXT, **_DESCRIBED})
CREATE_SCHEMA = closed({"name": NEW_NAME, "catalog_name": NAME})
LEGACY_NAMED_TABLE = closed({"name": NEW_NAME, "catalog_name": NAME, "schema_name": NAME})
LEGACY_STAGING_TABLE = closed(
    {"name": TEXT, "catalog_name": TEXT, "schema_name": TEXT, "id": TEXT, "staging_location": TEXT}
)
LEGACY_COLUMN = closed(
    {"name": TEXT, "type_json": TEXT},
    type_text=TEXT,
    type_name=TEXT,
    position={"type": "integer", "minimum": 0},
    nullable=BOOLEAN,
    partition_index={"type": "integer", "minimum": 0},
    comment=TEXT,
)
LEGACY_CREATE_TABLE = closed(
    {
        **LEGACY_NAMED_TABLE["properties"],
        "table_type": TABLE_TYPE,
        "data_source_format": {"const": "DELTA"},
        "storage_location": TEXT,
    },
    columns=many(LEGACY_COLUMN),
    properties=PROPERTIES,
    comment=TEXT,
)
LEGACY_TABLE = closed(
    {
        "name": TEXT,
        "catalog_name": TEXT,
        "schema_name": TEXT,
        "table_type": TABLE_TYPE,
        "data_source_format": {"const": "DELTA"},
        "columns": many(LEGACY_COLUMN),
        "storage_location": TEXT,
        "properties": PROPERTIES,
        "table_id": TEXT,
    },
    comment=TEXT,
    created_at=whole(0),
    updated_at=whole(0),
)
LEGACY_COMMIT = closed(
    {
        "version": whole(1),
        "timestamp": whole(1),
        "file_name": TEXT,
        "file_size": whole(1),
        "file_modification_timestamp": whole(1),
    },
)
_ADDRESS = {"table_id": TEXT, "table_uri": TEXT}
LEGACY_GET_COMMITS = closed({**_ADDRESS, "start_version": whole(0)}, end_version=whole(0))
LEGACY_COMMITS = closed({"commits": many(LEGACY_COMMIT), "latest_table_version": whole(0)})
LEGACY_COMMIT_REQUEST = closed(
    _ADDRESS,
    commit_info=LEGACY_COMMIT,
    latest_backfilled_version=whole(0),
    metadata=closed(
        {},
        description=TEXT,
        properties=closed({}, properties=PROPERTIES),
        schema=closed({}, columns=many(LEGACY_COLUMN)),
    ),
)
LEGACY_CREDENTIALS_REQUEST = closed({"table_id": TEXT, "operation": OPERATION})
LEGACY_ERROR = closed({"error_code": TEXT, "message": TEXT})
