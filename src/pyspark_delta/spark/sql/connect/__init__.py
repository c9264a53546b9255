"""SQL of Spark Connect sessions: the client reads statements about Delta tables, and carries them out itself.

The server knows neither the tables at paths nor the catalogs that this process is connected to. Queries get their
tables as DataFrames, spliced into the text; everything else becomes calls of methods.
"""
