"""Sessions that can use Delta: `enable`, and the PySpark classes that it wraps."""
