"""Whether a write is optimized: whether it makes few, large files, even if it takes longer."""

from __future__ import annotations

from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.protocol.properties import AUTO_OPTIMIZE, OPTIMIZE_WRITE
from pyspark_delta.write.options import WriteOptions


def asks_for_optimized_write(
    options: WriteOptions, configuration: TableConfiguration, session: bool | None = None
) -> bool | None:
    """Return what the option, the setting of the session and the table say, in this order; None if none says anything.

    delta-spark has the same order.
    """
    properties = configuration.properties
    for said in (options.optimize_write, session, OPTIMIZE_WRITE.of(properties), AUTO_OPTIMIZE.of(properties)):
        if said is not None:
            return said
    return None
