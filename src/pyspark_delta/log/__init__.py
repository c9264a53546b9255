"""The transaction log: commits, checkpoints, version checksums, reconciliation, cleanup and history."""
