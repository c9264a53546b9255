"""Data files: reading and writing rows with Arrow, partitions, casts, variants and statistics."""
