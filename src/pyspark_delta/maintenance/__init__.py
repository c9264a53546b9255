"""Looking after tables: restoring versions, deleting files that no version needs."""
