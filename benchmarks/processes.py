"""CPU seconds and memory of this process and those below it, a JVM for example, from /proc where there is one."""

from __future__ import annotations

import contextlib
import os
import resource
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Usage:
    """What a tree of processes has used: CPU seconds, and MiB of memory now and at most."""

    cpu_seconds: float
    resident_mib: float
    peak_mib: float


def reset_peak() -> None:
    """Let the peak begin at what is resident now (Linux)."""
    for pid in _tree():
        with contextlib.suppress(OSError):
            (_PROC / str(pid) / "clear_refs").write_text("5")


def usage() -> Usage:
    """The usage of this process and its descendants."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    cpu, resident, peak = own.ru_utime + own.ru_stime, 0.0, 0.0
    for pid in _tree():
        if pid != os.getpid():
            cpu += _cpu_seconds(pid)
        memory = _memory(pid)
        resident += memory.get("VmRSS", 0) / 1024
        peak += memory.get("VmHWM", 0) / 1024
    if not peak:
        resident = peak = own.ru_maxrss / 1024
    return Usage(cpu, resident, peak)


def _tree() -> list[int]:
    """This process and its descendants."""
    if not _PROC.exists():
        return [os.getpid()]
    children: dict[int, list[int]] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            fields = _stat(int(entry.name))
            if fields:
                children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, pending = [], [os.getpid()]
    while pending:
        pid = pending.pop()
        found.append(pid)
        pending += children.get(pid, [])
    return found


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name: state, parent, ..."""
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _cpu_seconds(pid: int) -> float:
    fields = _stat(pid)
    return sum(int(ticks) for ticks in fields[11:15]) / _TICK if fields else 0.0


def _memory(pid: int) -> dict[str, int]:
    try:
        lines = (_PROC / str(pid) / "status").read_text().splitlines()
    except OSError:
        return {}
    return {name: int(rest.split()[0]) for name, _, rest in (x.partition(":") for x in lines) if name.startswith("Vm")}
