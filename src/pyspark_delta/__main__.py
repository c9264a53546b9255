"""`python -m pyspark_delta` is the command `pyspark-delta`, also where the folder of scripts is not on the PATH."""

from pyspark_delta.cli import main

main()
