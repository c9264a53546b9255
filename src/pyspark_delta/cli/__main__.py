"""`python -m pyspark_delta.cli` is the command `pyspark-delta`."""

from pyspark_delta.cli import main

main()
