"""Reading and writing the paths of file actions, which are URIs, relative to the table or absolute.

Reading: percent-escapes are decoded once (C138), everything else is literal, and the result is a *location*
(`storage.contract`). Writing: the same characters stay literal as in Hadoop's `Path.toUri`, so that paths written by
this package and by delta-spark are equal as text.
"""

from __future__ import annotations

import os
import re
import unicodedata
from urllib.parse import unquote_to_bytes

from pyspark_delta.errors import CorruptLogError, InvalidOperationError, UnsupportedTableError

LOCAL_SCHEME = "file"
SUPPORTED_SCHEMES = ("file", "s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "memory")
HADOOP_SCHEMES = frozenset(
    {
        *("hdfs", "webhdfs", "swebhdfs", "viewfs", "ofs", "o3fs"),
        *("dbfs", "wasb", "wasbs", "adl", "oss", "obs", "cosn", "oci", "cos", "alluxio"),
    }
)
"""The schemes of Hadoop's file systems for which this package has no store of its own. They may have no authority."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):")
_ABSOLUTE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:/")
_ALIASES = {"s3a": "s3", "s3n": "s3", "azure": "az"}
_HADOOP_SCHEMES = {"s3": "s3a"}
_UNUSUAL = re.compile(r"//|(?:^|/)\.{1,2}(?:/|$)|\0|/$")
# java.net.URI: unreserved and reserved characters that a path may contain unescaped, and the separators.
_LITERAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-!.~'()*:@&=+$,;/")
_PLAIN = re.compile(r"[A-Za-z0-9_\-!.~'()*:@&=+$,;/]*")


# --------------------------------------------------------------------------------------- the parts of a location
def split(location: str) -> tuple[str, str, str]:
    """Return scheme, authority and path of a location; `("file", "", path)` for a local one."""
    if location.startswith("/"):
        return LOCAL_SCHEME, "", location
    scheme, _, rest = location.partition("://")
    authority, slash, key = rest.partition("/")
    return scheme, authority, slash + key


def canonical_scheme(scheme: str) -> str:
    """Return the normalized scheme of locations: `s3` for `s3a`, `az` for `azure`."""
    return _ALIASES.get(scheme, scheme)


def is_absolute(path: str) -> bool:
    """Return True for a path from the root of a file system, and for a URL."""
    return _ABSOLUTE.match(path) is not None


def join(location: str, *names: str) -> str:
    """Return the location of `names` below `location`."""
    return "/".join((location.rstrip("/"), *names))


def file_name(location: str) -> str:
    """Return the last segment of a location."""
    return location.rpartition("/")[2]


def parent(location: str) -> str:
    """Return the directory that holds `location`; a root is its own parent."""
    scheme, authority, path = split(location)
    above = path.rstrip("/").rpartition("/")[0]
    if scheme == LOCAL_SCHEME:
        return above or "/"
    return f"{scheme}://{authority}{above}"


# ---------------------------------------------------------------------------------------------- reading the log
def decode(raw: str) -> str:
    """Decode the percent-escapes of a path; a '%' that begins no escape is literal.

    Raises CorruptLogError if the escaped bytes are not UTF-8.
    """
    if "%" not in raw:
        return raw
    try:
        return unquote_to_bytes(raw).decode("utf-8")
    except UnicodeDecodeError as error:
        raise CorruptLogError(
            f"The path '{raw}' in the log is not valid: its percent-escapes do not form UTF-8 text. "
            "Repair the commit that wrote it.",
            path=raw,
        ) from error


def resolve_file(table_location: str, raw_path: str) -> str:
    """Return the location of a path in the log of the table (C138, C153, C260).

    A path without a scheme that begins with '/' lies on the table's own file system. Raises CorruptLogError for a path
    that is empty, contains '..' or a NUL character, or has a scheme but is not absolute.
    """
    if "%" not in raw_path and ":" not in raw_path and not _UNUSUAL.search(raw_path) and raw_path:
        if raw_path[0] != "/":
            return f"{table_location.rstrip('/')}/{raw_path}"
        return _root(table_location) + raw_path
    match = _SCHEME.match(raw_path)
    if match is None:
        path = _clean(decode(raw_path), raw_path)
        return _root(table_location) + path if path.startswith("/") else join(table_location, path)
    return _absolute(match.group(1).lower(), raw_path[match.end() :], raw_path)


def _absolute(scheme: str, rest: str, raw: str) -> str:
    authority = ""
    if rest.startswith("//"):
        authority, slash, key = rest[2:].partition("/")
        rest = slash + key
    path = _clean(decode(rest), raw)
    if not path.startswith("/"):
        raise CorruptLogError(f"The path '{raw}' in the log has a scheme but is not absolute.", path=raw)
    if scheme == LOCAL_SCHEME:
        if authority not in ("", "localhost"):
            raise CorruptLogError(f"The path '{raw}' in the log names another host, '{authority}'.", path=raw)
        return path
    if not authority and scheme not in HADOOP_SCHEMES:
        raise CorruptLogError(f"The path '{raw}' in the log names no bucket or container.", path=raw)
    return f"{canonical_scheme(scheme)}://{authority}{path}"


def _root(location: str) -> str:
    scheme, authority, _ = split(location)
    return "" if scheme == LOCAL_SCHEME else f"{scheme}://{authority}"


def _clean(path: str, raw: str) -> str:
    """Return a path without empty and '.' segments. Raises CorruptLogError for '..', a NUL character or no name."""
    if "\0" in path:
        raise CorruptLogError(f"The path {raw!r} in the log contains a NUL character.", path=raw)
    segments = [segment for segment in path.split("/") if segment not in ("", ".")]
    if ".." in segments:
        raise CorruptLogError(
            f"The path '{raw}' in the log climbs out of its directory with '..', which the protocol does not allow. "
            "Do not trust this table until you know its origin.",
            path=raw,
        )
    if not segments:
        raise CorruptLogError(f"The path '{raw}' in the log names no file.", path=raw)
    return ("/" if path.startswith("/") else "") + "/".join(segments)


# ---------------------------------------------------------------------------------------------- writing the log
def encode_path(relative: str) -> str:
    """Return the text of a decoded path for `add.path`, as Hadoop's `Path.toUri` writes it.

    A ':' in the first segment of a relative path is escaped, because a URI parser would take the text before it for a
    scheme, and Java would refuse the rest.
    """
    first, slash, rest = relative.partition("/")
    return _quote(first).replace(":", "%3A") + slash + _quote(rest)


def to_uri(location: str) -> str:
    """Return the location as a percent-encoded URI: `file:///dir/a%20b`, `s3://bucket/key`."""
    scheme, authority, path = split(location)
    return f"{scheme}://{authority}{_quote(path)}"


def to_absolute_path(location: str) -> str:
    """Return the text of a location outside of the table for `add.path`, as Hadoop writes it: `file:/dir/a%20b`."""
    scheme, authority, path = split(location)
    if scheme == LOCAL_SCHEME:
        return f"file:{_quote(path)}"
    return f"{_HADOOP_SCHEMES.get(scheme, scheme)}://{authority}{_quote(path)}"


def to_hadoop(location: str) -> str:
    """Return the text from which Hadoop's `new Path(text)` makes this location: nothing encoded, and `s3a` for `s3`."""
    scheme, authority, path = split(location)
    if scheme == LOCAL_SCHEME:
        return f"file:{path}"
    return f"{_HADOOP_SCHEMES.get(scheme, scheme)}://{authority}{path}"


def _quote(path: str) -> str:
    if _PLAIN.fullmatch(path):
        return path
    return "".join(character if _is_literal(character) else _escape(character) for character in path)


def _is_literal(character: str) -> bool:
    # java.net.URI leaves non-ASCII text unchanged, except for spaces and control characters.
    if character < "\x80":
        return character in _LITERAL
    return unicodedata.category(character) not in ("Zs", "Zl", "Zp", "Cc")


def _escape(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogateescape"))


# ------------------------------------------------------------------------------------------------ what users give
def normalize_location(text: str | os.PathLike[str]) -> str:
    """Return the location of a user's path or URI; a relative path starts from the working directory.

    URIs are literal, as in Hadoop; a `file:` URI is decoded if its literal path does not exist while its decoded path
    does. '~' is not expanded. Raises InvalidOperationError, UnsupportedTableError (scheme).
    """
    given = os.fspath(text)
    if not given or "\0" in given:
        raise InvalidOperationError(f"The path {given!r} of the table is empty or contains a NUL character.")
    match = _SCHEME.match(given) if isinstance(text, str) else None
    if match is None or not given.startswith("/", match.end()):
        return _local(given)
    scheme, rest = match.group(1).lower(), given[match.end() :]
    require_supported(scheme, given)
    authority = ""
    if rest.startswith("//"):
        authority, slash, key = rest[2:].partition("/")
        rest = slash + key
    if scheme == LOCAL_SCHEME:
        return _local_uri(given, authority, rest)
    if not authority and scheme not in HADOOP_SCHEMES:
        raise InvalidOperationError(f"The location '{given}' names no bucket or container.", location=given)
    path = os.path.normpath("/" + rest).lstrip("/")
    return f"{canonical_scheme(scheme)}://{authority}" + (f"/{path}" if path else "")


def require_supported(scheme: str, location: str) -> None:
    """Raise UnsupportedTableError for a scheme that no store serves."""
    if scheme not in SUPPORTED_SCHEMES and scheme not in _ALIASES and scheme not in HADOOP_SCHEMES:
        raise UnsupportedTableError(
            f"Cannot open '{location}': the scheme '{scheme}' is not supported. Supported are a local path, file:, "
            "s3:// (s3a://), gs://, az://, abfss://, and hdfs:// and other file systems of Hadoop: "
            f"{', '.join(sorted(HADOOP_SCHEMES - {'hdfs'}))}.",
            location=location,
            scheme=scheme,
        )


def _local(path: str) -> str:
    # POSIX distinguishes two leading slashes from one; a location does not.
    return "/" + os.path.abspath(path).lstrip("/")


def _local_uri(given: str, authority: str, path: str) -> str:
    if authority not in ("", "localhost") or not path:
        raise InvalidOperationError(
            f"The location '{given}' is not a local path: write file:///directory, or the bare path.", location=given
        )
    literal = _local(path)
    if "%" in path and not os.path.lexists(literal):
        decoded = _local(unquote_to_bytes(path).decode("utf-8", "replace").replace("\0", "\ufffd"))
        if os.path.lexists(decoded):
            return decoded
    return literal
