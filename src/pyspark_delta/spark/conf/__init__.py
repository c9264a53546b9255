"""Settings and state of a session. These modules import no other package of `pyspark_delta.spark`."""
