"""The clustering columns of a table, from its metadata domain `delta.clustering` (Clustered Table; C349, C350)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import orjson

from pyspark_delta.actions.model import DomainMetadata

DOMAIN = "delta.clustering"


def clustering_paths(
    domains: Mapping[str, DomainMetadata], changes: Iterable[DomainMetadata] = ()
) -> tuple[tuple[str, ...], ...]:
    """Return the physical paths of the clustering columns, from the domains of a table and changes to them.

    None if the domain is missing or malformed: clustering is never required to read or write rows.
    """
    domain = {**domains, **{change.domain: change for change in changes}}.get(DOMAIN)
    if domain is None or domain.removed:
        return ()
    try:
        columns = orjson.loads(domain.configuration).get("clusteringColumns", [])
    except (ValueError, AttributeError):
        return ()
    return tuple(tuple(c) if isinstance(c, list) else (c,) for c in columns if isinstance(c, list | str))
