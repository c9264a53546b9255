"""All workloads, in the order in which they run."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

from benchmarks.model import FULL, Scale, Workload

MODULES = {
    "B1": "b01_open",
    "B2": "b02_live_files",
    "B3": "b03_plan_by_partition",
    "B4": "b04_plan_by_stats",
    "B5": "b05_all_stats",
    "B6": "b06_json_replay",
    "B7": "b07_update",
    "B8": "b08_time_travel",
    "B9": "b09_checkpoint",
    "B10": "b10_commit",
    "B11": "b11_many_writers",
    "B12": "b12_scan",
    "B13": "b13_deletion_vectors",
    "B14": "b14_append",
    "B15": "b15_delete",
    "B16": "b16_update",
    "B17": "b17_merge",
    "B19": "b19_zorder",
    "B20": "b20_count",
    "B21": "b21_change_feed",
    "B23": "b23_log_cleanup",
    "B25": "b25_catalog_commits",
    "B26": "b26_import",
    "B27": "b27_compaction",
    "B28": "b28_vacuum",
    "B29": "b29_restore",
    "B30": "b30_convert",
    "B31": "b31_clone",
    "B32": "b32_tpch",
    "B33": "b33_statements",
    "B34": "b34_stream_source",
    "B35": "b35_stream_sink",
    "B36": "b36_first_batch",
}


def load(workload: str, scale: Scale) -> Workload:
    """The workload of that id at a scale; goals are for full sizes. Raises KeyError for an unknown id."""
    made: Workload = import_module(f"benchmarks.workloads.{MODULES[workload]}").workload(scale)
    if scale == FULL:
        return made
    return replace(made, variants=tuple(replace(variant, goals=()) for variant in made.variants))
