"""A rename that never replaces: put-if-absent for file systems without hard links (FAT, some network shares)."""

from __future__ import annotations

import ctypes
import errno
import os
import sys

_AT_FDCWD = -100
_RENAME_NOREPLACE = 1  # Linux, renameat2(2)
_RENAME_EXCL = 4  # macOS, renamex_np(2)


def rename_exclusive(source: str, target: str) -> None:
    """Rename atomically. Raises FileExistsError if `target` exists, OSError(ENOTSUP) if that is not supported."""
    result = _call(os.fsencode(source), os.fsencode(target))
    if result == 0:
        return
    if result in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP):
        raise OSError(
            errno.ENOTSUP,
            "this file system can neither hard-link nor rename without replacing, so two writers could overwrite "
            "each other's commit; keep the table on another file system",
            target,
        )
    raise OSError(result, os.strerror(result), target)


def _call(source: bytes, target: bytes) -> int:
    """Return the error number of the system call, 0 for success."""
    library = ctypes.CDLL(None, use_errno=True)
    try:
        if sys.platform == "darwin":
            failed = library.renamex_np(source, target, ctypes.c_uint(_RENAME_EXCL))
        else:
            failed = library.renameat2(_AT_FDCWD, source, _AT_FDCWD, target, ctypes.c_uint(_RENAME_NOREPLACE))
    except AttributeError:
        return errno.ENOSYS
    return ctypes.get_errno() if failed else 0
