"""Hadoop's client in a JVM on this machine: its file systems, and the transfer of bytes to and from it.

py4j sends bytes as text in Base64, at some 10 MB/s. Large blocks therefore go through a local file, which Python and
the JVM both see: 10 MB take 50 ms to read instead of 1.2 s.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark_delta.lru import LruCache
from pyspark_delta.spark.hadoop.statuses import ListedPath, parse_statuses

_BY_MESSAGE = 1 << 18  # bytes up to which py4j is as fast as a file
_BUFFER = 1 << 16
_KEPT = 64
_FS = "org.apache.hadoop.fs"


class HadoopClient:
    """Hadoop's client in the JVM of a py4j gateway. `configuration` is Hadoop's configuration in that JVM."""

    opened = False
    """True once a client of this process has opened a file system."""

    def __init__(self, gateway: Any, configuration: Any) -> None:
        self._gateway = gateway
        self._jvm = gateway.jvm
        self.configuration = configuration
        self._classes: LruCache[str, Any] = LruCache(_KEPT)
        self._systems: LruCache[tuple[str, tuple[tuple[str, str], ...]], HadoopFileSystem] = LruCache(_KEPT)

    def file_system(self, root: str, options: Mapping[str, str]) -> HadoopFileSystem:
        """Return the file system of a root such as `hdfs://host:8020/`, with these settings above the configuration's.

        Raises the exceptions of py4j.
        """
        key = (root, tuple(sorted(options.items())))
        return self._systems.get_or_make(key, lambda: self._open(root, options))

    def _open(self, root: str, options: Mapping[str, str]) -> HadoopFileSystem:
        HadoopClient.opened = True
        uri = self._jvm.java.net.URI(root)
        if not options:  # Hadoop keeps one file system for each root and user, which Spark uses too
            system = self.new(f"{_FS}.FileSystem").get(uri, self.configuration)
            return HadoopFileSystem(self, system, self.configuration)
        configuration = self.new("org.apache.hadoop.conf.Configuration")(self.configuration)
        for name, value in options.items():
            configuration.set(name, value)
        system = self.new(f"{_FS}.FileSystem").newInstance(uri, configuration)
        return HadoopFileSystem(self, system, configuration)

    def home_directory(self, root: str) -> str:
        """Return the directory of the user on the file system of a root."""
        return str(self.file_system(root, {}).home_directory())

    def new(self, name: str) -> Any:
        """Return a class as py4j represents it."""
        return self._classes.get_or_make(name, lambda: getattr(self._jvm, name))

    def path(self, location: str) -> Any:
        """Return a location as Hadoop's `Path`."""
        return self.new(f"{_FS}.Path")(location)

    def array_of(self, name: str, values: Any, length: int) -> Any:
        """Return a Java array of the class `name` with the values of another array."""
        array = self._gateway.new_array(self.new(name), length)
        self.new("java.lang.System").arraycopy(values, 0, array, 0, length)
        return array

    def rename_option(self, name: str) -> Any:
        """Return an array with one of Hadoop's `Options.Rename`."""
        option = self.new(f"{_FS}.Options$Rename")
        array = self._gateway.new_array(option, 1)
        array[0] = option.valueOf(name)
        return array

    # ------------------------------------------------------------------------------------------------- transfer
    def receive(self, stream: Any, size: int) -> bytes:
        """Return the next `size` bytes of an input stream, fewer at its end."""
        if size <= _BY_MESSAGE:
            return bytes(stream.readNBytes(size))
        with _local_file() as name:
            limited = self.new("org.apache.hadoop.util.LimitInputStream")(stream, size)
            sink = self.new("java.io.FileOutputStream")(name)
            try:
                self.new("org.apache.hadoop.io.IOUtils").copyBytes(limited, sink, _BUFFER, False)
            finally:
                sink.close()
            with open(name, "rb") as file:
                return file.read()

    def send(self, stream: Any, data: bytes) -> None:
        """Write bytes to an output stream."""
        if len(data) <= _BY_MESSAGE:
            stream.write(data)
            return
        with _local_file() as name:
            with open(name, "wb") as file:
                file.write(data)
            source = self.new("java.io.FileInputStream")(name)
            try:
                self.new("org.apache.hadoop.io.IOUtils").copyBytes(source, stream, _BUFFER, False)
            finally:
                source.close()


class HadoopFileSystem:
    """One file system of a client. Paths are locations; every method raises the exceptions of py4j."""

    def __init__(self, client: HadoopClient, system: Any, configuration: Any) -> None:
        self.client, self._system, self._configuration = client, system, configuration
        self._uri = system.getUri()

    def home_directory(self) -> str:
        """Return the directory of the user."""
        return str(self._system.getHomeDirectory().toString())

    def setting(self, name: str) -> str:
        """Return a setting of the file system's configuration; empty if it has none."""
        return self._configuration.get(name) or ""

    def open(self, location: str) -> Any:
        """Return an input stream."""
        return self._system.open(self.client.path(location))

    def create(self, location: str) -> Any:
        """Create a file, with its directories, and return its output stream."""
        return self._system.create(self.client.path(location), False)

    def status(self, location: str) -> ListedPath:
        """Return the status of a file or a directory."""
        one = self.client._gateway.new_array(self.client.new(f"{_FS}.FileStatus"), 1)
        one[0] = self._system.getFileStatus(self.client.path(location))
        return self._encoded(one)[0]

    def list_directory(self, location: str) -> list[ListedPath]:
        """Return what a directory holds; for a file, the file itself."""
        return self._encoded(self._system.listStatus(self.client.path(location)))

    def _encoded(self, statuses: Any) -> list[ListedPath]:
        client = self.client
        values = client.array_of("org.apache.hadoop.io.Writable", statuses, len(statuses))
        status = client.new("java.lang.Class").forName(f"{_FS}.FileStatus")
        sink = client.new("java.io.ByteArrayOutputStream")()
        writable = client.new("org.apache.hadoop.io.ArrayWritable")(status, values)
        writable.write(client.new("java.io.DataOutputStream")(sink))
        return parse_statuses(bytes(sink.toByteArray()))

    def rename(self, source: str, target: str, *, replace: bool) -> None:
        """Rename a file. Without `replace`, Hadoop's FileAlreadyExistsException says that `target` exists."""
        context = self.client.new(f"{_FS}.FileContext").getFileContext(self._uri, self._configuration)
        option = self.client.rename_option("OVERWRITE" if replace else "NONE")
        context.rename(self._qualified(source), self._qualified(target), option)

    def _qualified(self, location: str) -> Any:
        """Return a path with an authority, which `FileContext` requires and `hdfs:///directory` lacks."""
        path = self.client.path(location)
        return path if ":///" not in location else self._system.makeQualified(path)

    def scheme_behind(self, directory: str) -> str:
        """Return the scheme of the file system on which a directory lies. Creates the directory."""
        path = self.client.path(directory)
        self._system.mkdirs(path)
        return str(self._system.resolvePath(path).toUri().getScheme())

    def copy(self, source: str, target: str) -> None:
        """Copy a file inside of the JVM; `target` does not exist."""
        copy = self.client.new(f"{_FS}.FileUtil").copy
        paths = self.client.path(source), self.client.path(target)
        copy(self._system, paths[0], self._system, paths[1], False, False, self._configuration)

    def delete(self, location: str, *, recursive: bool = False) -> None:
        """Delete a file or a directory; one that does not exist is not an error."""
        self._system.delete(self.client.path(location), recursive)

    def exists(self, location: str) -> bool:
        """Return True if there is a file or a directory."""
        return bool(self._system.exists(self.client.path(location)))


def sync(stream: Any) -> None:
    """Force what was written to an output stream to the disks of the file system, where it can."""
    if stream.hasCapability("hsync"):
        stream.hsync()


@contextmanager
def _local_file() -> Iterator[str]:
    descriptor, name = tempfile.mkstemp(prefix="pyspark-delta-")
    os.close(descriptor)
    try:
        yield name
    finally:
        os.unlink(name)
