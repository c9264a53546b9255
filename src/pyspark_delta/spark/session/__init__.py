"""Sessions that speak Delta: `enable`, and the PySpark classes that it wraps."""
