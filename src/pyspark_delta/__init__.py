"""Delta Lake for PySpark in pure Python."""
