"""The clustering columns of a table: what its metadata domain `delta.clustering` says (Clustered Table; C349, C350)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import orjson

from pyspark_delta.actions.model import DomainMetadata

DOMAIN = "delta.clustering"


def clustering_paths(
    domains: Mapping[str, DomainMetadata], changes: Iterable[DomainMetadata] = ()
) -> tuple[tuple[str, ...], ...]:
    """The physical paths of the clustering columns, by domains that a table has and changes to them.

    None for a domain that is not there or says something else: clustering is never needed to read or write rows.
    """
    domain = {**domains, **{change.domain: change for change in changes}}.get(DOMAIN)
    if domain is None or domain.removed:
        return ()
    try:
        columns = orjson.loads(domain.configuration).get("clusteringColumns", [])
    except (ValueError, AttributeError):
        return ()
    return tuple(tuple(c) if isinstance(c, list) else (c,) for c in columns if isinstance(c, list | str))
