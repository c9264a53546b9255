"""Planning a read: data skipping, and the files, columns and remaining filters of a scan."""
