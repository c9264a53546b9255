"""The Arrow engine: runs statements if Arrow computes their conditions and values exactly as Spark does."""
