"""The rename of libhdfs, which PyArrow does not offer without replacing the target."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Mapping

_SUFFIX = "dylib" if sys.platform == "darwin" else "so"


class LibHdfs:
    """A connection of libhdfs to one file system. PyArrow must have loaded libhdfs and its JVM before."""

    def __init__(self, host: str, port: int, settings: Mapping[str, str]) -> None:
        self._library = _load()
        builder = self._library.hdfsNewBuilder()
        # libhdfs keeps pointers to these texts until it connects.
        name_node, texts = host.encode(), [(name.encode(), value.encode()) for name, value in settings.items()]
        self._library.hdfsBuilderSetNameNode(builder, name_node)
        self._library.hdfsBuilderSetNameNodePort(builder, port)
        for name, value in texts:
            self._library.hdfsBuilderConfSetStr(builder, name, value)
        self._system = self._library.hdfsBuilderConnect(builder)
        if not self._system:
            raise OSError(ctypes.get_errno(), f"libhdfs cannot connect to {host}")

    def rename(self, source: str, target: str) -> None:
        """Rename a file. Raises OSError, also if `target` exists."""
        if self._library.hdfsRename(self._system, source.encode(), target.encode()) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), target)


def _load() -> ctypes.CDLL:
    """Load libhdfs from where PyArrow loads it."""
    home = os.environ.get("HADOOP_HOME")
    folders = [os.environ.get("ARROW_LIBHDFS_DIR"), f"{home}/lib/native" if home else None]
    names = [f"{folder}/libhdfs.{_SUFFIX}" for folder in folders if folder]
    name = next(filter(os.path.exists, names), f"libhdfs.{_SUFFIX}")
    library = ctypes.CDLL(name, use_errno=True)
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    library.hdfsNewBuilder.restype = pointer
    library.hdfsBuilderSetNameNode.argtypes = [pointer, text]
    library.hdfsBuilderSetNameNodePort.argtypes = [pointer, ctypes.c_uint16]
    library.hdfsBuilderConfSetStr.argtypes = [pointer, text, text]
    library.hdfsBuilderConnect.argtypes = [pointer]
    library.hdfsBuilderConnect.restype = pointer
    library.hdfsRename.argtypes = [pointer, text, text]
    return library
