"""Object stores (S3, Google Cloud Storage, Azure) through obstore: one conditional request makes a commit.

`write_if_absent` is a PUT with the condition that the key does not exist. The client repeats requests whose response
was lost, so a writer can find its own file: after FileAlreadyExistsError, the caller compares the winner with its own
content. Needs the `cloud` extra, which local tables do not import.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from pyspark_delta.errors import (
    FileAlreadyExistsError,
    FileNotFoundInStoreError,
    InvalidOptionError,
    MissingDependencyError,
    PermissionDeniedError,
    StorageError,
    StoreThrottledError,
    UnsupportedTableError,
)
from pyspark_delta.storage.contract import FileStatus
from pyspark_delta.storage.credentials import ClientCredentials, CredentialSource
from pyspark_delta.storage.object_file import ObjectInput, ObjectOutput
from pyspark_delta.storage.object_tree import list_directories, list_in_ranges
from pyspark_delta.storage.options import CREDENTIAL_SETTINGS, ClientOptions, client_options
from pyspark_delta.storage.paths import canonical_scheme

_NO_BUCKET = re.compile(r"NoSuchBucket|ContainerNotFound|The specified bucket does not exist")
_REFUSED = re.compile(r"status code: 40[13]\b")  # listings report these without a class of their own
_THROTTLED = re.compile(r"status code: (429|503)\b|SlowDown|TooManyRequests|ServerBusy")
_LAST = "\U0010ffff"
_LIST_CHUNK = 1_000
_DELETE_CHUNK = 1_000
_LARGEST_COPY = 5 << 30  # bytes that S3 copies in one request
_COPIED_AT_ONCE = 16 << 20  # bytes


class ObjectStorage:
    """An `ObjectStore` on one bucket or container; `options` as in `storage.options`.

    If there is a `source`, its options override these, and are requested when the store is used.
    """

    def __init__(
        self, scheme: str, authority: str, options: Mapping[str, str], source: CredentialSource | None = None
    ) -> None:
        self._scheme = scheme
        self._kind = canonical_scheme(scheme)
        self._authority = authority
        self._options = dict(options)
        self._prefix = f"{scheme}://{authority}/"
        self._source = source
        self._resolved = client_options(self._kind, authority, options)
        self._obstore = _import_obstore()

    def __repr__(self) -> str:
        return f"ObjectStorage({self._prefix!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        given = {} if self._source is None else self._source.current().options
        return (ObjectStorage, (self._scheme, self._authority, {**self._options, **given}))

    @cached_property
    def _client(self) -> Any:
        stores = self._obstore.store
        container = self._authority.partition("@")[0]
        config, http, given = self._configured()
        try:
            match self._kind:
                case "s3":
                    return stores.S3Store(container, config=config, client_options=http, **given)
                case "gs":
                    return stores.GCSStore(container, config=config, client_options=http, **given)
            return stores.AzureStore(container, config=config, client_options=http, **given)
        except (self._obstore.exceptions.BaseError, ValueError) as error:
            raise InvalidOptionError(
                f"The storage options are not valid for '{self._prefix}': {_first_line(error)} "
                "Use the names of the object store (AWS_ACCESS_KEY_ID, aws_endpoint, ...) or of Hadoop (fs.s3a.*).",
                location=self._prefix,
            ) from error

    def _configured(self) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """Return settings of the store and of HTTP, and a credential provider if the settings hold no credentials."""
        resolved = self._resolved
        if self._source is not None:
            credentials = self._source.current()
            resolved = client_options(self._kind, self._authority, {**self._options, **credentials.options})
            if credentials.expires_at is not None:
                config = {key: value for key, value in resolved.store.items() if key not in CREDENTIAL_SETTINGS}
                return (
                    config,
                    resolved.http,
                    {"credential_provider": ClientCredentials(self._source, self._to_fields)},
                )
        if resolved.oauth_token:  # the client gets it from a function, not from its settings
            token = {**_fields(self._kind, resolved), "expires_at": None}
            return resolved.store, resolved.http, {"credential_provider": lambda: token}
        return resolved.store, resolved.http, {}

    def _to_fields(self, options: Mapping[str, str]) -> dict[str, Any]:
        return _fields(self._kind, client_options(self._kind, self._authority, options))

    # ------------------------------------------------------------------------------------------------- reading
    def read(self, path: str, byte_range: tuple[int, int] | None = None) -> bytes:
        key = self._key(path)
        if byte_range is not None:
            return self._read_range(path, key, *byte_range)
        with self._translated("read", path):
            return bytes(self._obstore.get(self._client, key).bytes())

    def _read_range(self, path: str, key: str, start: int, end: int) -> bytes:
        try:
            with self._translated("read", path):
                return bytes(self._obstore.get_range(self._client, key, start=start, end=end))
        except FileNotFoundInStoreError:
            raise
        except StorageError:
            # An empty range, and one after the end of the file, are errors over HTTP.
            if end > start and start < self.status(path).size:
                raise
            return b""

    def status(self, path: str) -> FileStatus:
        with self._translated("read", path):
            return _status(path, self._obstore.head(self._client, self._key(path)))

    def list_from(self, start: str) -> Iterator[FileStatus]:
        directory = self._key(start[: start.rfind("/") + 1])
        first = self._key(start)
        if self._kind not in ("s3", "gs"):
            # Azure cannot begin a listing at a name, and does not guarantee UTF-8 order.
            files = [found for found, below in self._list(start, directory, first, None) if not below]
            yield from sorted(files, key=lambda status: status.path)
            return
        offset = _just_before(directory, first[len(directory) :])
        while offset != "":
            remaining, offset = self._list(start, directory, first, offset), ""
            for found, below in remaining:
                if below and below >= first:
                    offset = below + _LAST  # skips the sub-directory without listing it
                    break
                if not below:
                    yield found

    def list_tree(
        self, directory: str, skips: Callable[[str], bool], boundaries: Sequence[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        prefix = self._key(f"{directory}/")

        def list_after(offset: str | None) -> Iterator[Sequence[Mapping[str, Any]]]:
            with self._translated("list", directory):
                yield from self._obstore.list(self._client, prefix or None, offset=offset, chunk_size=_LIST_CHUNK)

        def list_directory(key: str) -> tuple[Sequence[Mapping[str, Any]], Sequence[str]]:
            with self._translated("list", directory):
                found = self._obstore.list_with_delimiter(self._client, key or None)
                return found["objects"], found["common_prefixes"]

        if self._kind in ("s3", "gs"):
            return list_in_ranges(list_after, prefix, skips, boundaries)
        return list_directories(list_directory, prefix, skips)

    def _list(self, start: str, directory: str, first: str, offset: str | None) -> Iterator[tuple[FileStatus, str]]:
        """Yield the files from `first` on, each with the key of its sub-directory, empty if it is in none."""
        with self._translated("list", start):
            chunks = self._obstore.list(self._client, directory or None, offset=offset, chunk_size=_LIST_CHUNK)
            for found in itertools.chain.from_iterable(chunks):
                key = found["path"]
                below, slash, _ = key[len(directory) :].partition("/")
                if key > directory and key >= first:
                    yield _status(self._prefix + key, found), f"{directory}{below}/" if slash else ""

    def open_input(self, path: str) -> ObjectInput:
        key = self._key(path)
        size = self.status(path).size

        def fetch(start: int, end: int) -> memoryview:
            with self._translated("read", path):
                return memoryview(self._obstore.get_range(self._client, key, start=start, end=end))

        return ObjectInput(fetch, size)

    # ------------------------------------------------------------------------------------------------- writing
    def open_output(self, path: str) -> ObjectOutput:
        with self._translated("write", path):
            writer = self._obstore.open_writer(self._client, self._key(path))
        return ObjectOutput(writer, lambda: self._translated("write", path))

    def write(self, path: str, data: bytes) -> None:
        with self._translated("write", path):
            self._obstore.put(self._client, self._key(path), data)

    def write_if_absent(self, path: str, data: bytes) -> None:
        if self._resolved.locking_provider not in ("", "none"):
            raise UnsupportedTableError(
                f"Cannot write '{path}': the option AWS_S3_LOCKING_PROVIDER requires writers of this table to use a "
                "lock table, which pyspark-delta does not support. Configure every writer to use conditional PUT, and "
                "remove the option.",
                location=path,
            )
        with self._translated("write", path):
            self._obstore.put(self._client, self._key(path), data, mode="create", use_multipart=False)

    def copy(self, source: str, target: str) -> None:
        if self._kind == "s3" and self.status(source).size > _LARGEST_COPY:
            with self.open_input(source) as file, self.open_output(target) as sink:
                while block := file.read(_COPIED_AT_ONCE):
                    sink.write(block)
            return
        with self._translated("read", source):
            self._obstore.copy(self._client, self._key(source), self._key(target))

    def delete(self, paths: Iterable[str]) -> None:
        remaining = iter(paths)
        while chunk := list(itertools.islice(remaining, _DELETE_CHUNK)):
            try:
                with self._translated("delete", chunk[0]):
                    self._obstore.delete(self._client, [self._key(path) for path in chunk])
            except FileNotFoundInStoreError:
                self._delete_each(chunk)

    def delete_directory(self, path: str) -> None:
        with self._translated("list", path):
            found = self._obstore.list(self._client, f"{self._key(path)}/", chunk_size=_LIST_CHUNK)
            for chunk in found:
                self.delete(self._prefix + file["path"] for file in chunk)

    def _delete_each(self, paths: list[str]) -> None:
        for path in paths:
            with contextlib.suppress(FileNotFoundInStoreError), self._translated("delete", path):
                self._obstore.delete(self._client, self._key(path))

    # -------------------------------------------------------------------------------------------------- errors
    def _key(self, path: str) -> str:
        if not path.startswith(self._prefix):
            raise StorageError(f"The file '{path}' is not in '{self._prefix}'.", path=path)
        return path[len(self._prefix) :]

    @contextlib.contextmanager
    def _translated(self, action: str, path: str) -> Iterator[None]:
        """Convert obstore's errors to the StorageError for `path`."""
        try:
            yield
        except (self._obstore.exceptions.BaseError, OSError, ValueError) as error:
            raise self._translate(action, path, error) from error

    def _translate(self, action: str, path: str, error: Exception) -> StorageError:
        errors = self._obstore.exceptions
        text = str(error)
        if isinstance(error, errors.AlreadyExistsError | errors.PreconditionError):
            return FileAlreadyExistsError(f"The file '{path}' already exists.", path=path)
        if isinstance(error, errors.PermissionDeniedError | errors.UnauthenticatedError) or _REFUSED.search(text):
            return PermissionDeniedError(
                f"No permission to {action} '{path}'. Check the credentials in the storage options or the "
                f"environment, and the policy of the bucket. ({_first_line(error)})",
                path=path,
            )
        if _NO_BUCKET.search(text):
            return StorageError(
                f"Cannot {action} '{path}': the bucket or container '{self._authority}' does not exist.", path=path
            )
        if isinstance(error, FileNotFoundError):
            return FileNotFoundInStoreError(f"The file '{path}' does not exist.", path=path)
        kind = StoreThrottledError if _THROTTLED.search(text) else StorageError
        return kind(f"Cannot {action} '{path}': {_first_line(error)}", path=path)


def _fields(kind: str, given: ClientOptions) -> dict[str, Any]:
    """Return credentials in the form that obstore's clients expect from a credential provider."""
    match kind:
        case "s3":
            names = {
                "access_key_id": "access_key_id",
                "secret_access_key": "secret_access_key",
                "session_token": "token",
            }
            return {name: given.store[key] for key, name in names.items() if key in given.store}
        case "gs":
            return {"token": given.oauth_token}
    return {"sas_token": given.store.get("sas_key", "")}


def _import_obstore() -> Any:
    try:
        import obstore
        import obstore.exceptions
        import obstore.store
    except ImportError as error:
        raise MissingDependencyError(
            "Tables on object stores need the package obstore: pip install 'pyspark-delta[cloud]'."
        ) from error
    return obstore


def _status(path: str, found: Mapping[str, Any]) -> FileStatus:
    return FileStatus(path, found["size"], int(found["last_modified"].timestamp() * 1000))


def _just_before(directory: str, name: str) -> str | None:
    """Return the offset of a listing from `name` on: a key shortly before it, because listings begin after it."""
    kept, last = name[:-1], ord(name[-1:] or "\0")
    before = chr(max(last - 1, 0))
    if before.isprintable() and before != "/":
        return f"{directory}{kept}{before}{_LAST}"
    return None if kept in ("", ".", "..") else directory + kept


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)[:500]
