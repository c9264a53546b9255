"""The write pipeline: options, the rows that a write replaces, the table as the write leaves it, and its draft."""
