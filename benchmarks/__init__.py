"""Workloads with their peers in the same run: `python -m benchmarks --help`."""
