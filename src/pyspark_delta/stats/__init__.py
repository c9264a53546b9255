"""Per-file statistics: collected from written files, and parsed from the log."""
