"""A PostgreSQL server in a directory of its own: on a socket, without network."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

USER = "tests"
START_SECONDS = 300  # a busy machine may take minutes; pg_ctl waits for one by default


def installed() -> str | None:
    """The program that controls servers: of the newest version that Debian has installed, or in the search path."""
    found = Path("/usr/lib/postgresql").glob("*/bin/pg_ctl")
    newest = max(found, key=lambda path: int(path.parts[4]) if path.parts[4].isdecimal() else 0, default=None)
    return str(newest) if newest is not None else shutil.which("pg_ctl")


@contextmanager
def server(program: str, settings: str = "") -> Iterator[str]:
    """A server while the block runs: the directory of its socket. `settings` are options of `postgres`."""
    folder = Path(tempfile.mkdtemp(prefix="pg-"))  # short: the path of a socket has at most 107 characters
    user = _user()
    data, log = str(folder / "data"), str(folder / "log")
    options = f"{settings} -c listen_addresses='' -c unix_socket_directories={folder} -c max_connections=100"
    try:
        if user:
            os.chown(folder, user["user"], user["group"])
        make = [str(Path(program).with_name("initdb")), "--pgdata", data, "--username", USER, "--auth", "trust"]
        _run([*make, "--no-sync", "--encoding", "UTF8", "--locale", "C"], folder, user)
        start = ["start", "--wait", "--timeout", str(START_SECONDS)]
        _run([program, *start, "--pgdata", data, "--log", log, "--options", options], folder, user)
        try:
            yield str(folder)
        finally:
            _run([program, "stop", "--mode", "immediate", "--pgdata", data], folder, user)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _user() -> dict[str, Any]:
    """Who runs the server: it refuses to be run by root."""
    if os.geteuid() != 0:
        return {}
    try:
        entry = pwd.getpwnam("postgres")
    except KeyError:
        entry = pwd.getpwnam("nobody")
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _run(command: list[str], folder: Path, user: dict[str, Any]) -> None:
    """Run a program; its output goes to a file, because the server would hold a pipe open."""
    with tempfile.TemporaryFile() as output:
        done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output, **user)
        if done.returncode:
            output.seek(0)
            log = (folder / "log").read_text() if (folder / "log").exists() else ""
            raise RuntimeError(f"{command[0]} failed:\n{output.read().decode()}\n{log}")
