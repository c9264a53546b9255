"""Where deletion vectors are stored: framed in files, or as text in the log (C257-C270, C276-C280).

A file is one version byte, then per vector, big-endian: the size of the bitmap, the bitmap, its CRC-32. The offset in
a descriptor points at the size.
"""

from __future__ import annotations

import struct
import uuid
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyroaring import BitMap64

from pyspark_delta.actions.model import DeletionVectorDescriptor
from pyspark_delta.deletion_vectors import z85
from pyspark_delta.deletion_vectors.bitmap import deserialize, serialize
from pyspark_delta.errors import DeletionVectorError, FileNotFoundInStoreError
from pyspark_delta.storage import ObjectStore
from pyspark_delta.storage.paths import join, resolve_file

StoreFor = Callable[[str], ObjectStore]

FILE_VERSION = 1
_FIRST_OFFSET = 1
_FRAME = 8  # the size before a bitmap and the checksum after it
UUID_LENGTH = 20
_MAX_GAP = 1 << 20  # closer vectors of one file are fetched in one request


def deletion_vector_path(table_location: str, descriptor: DeletionVectorDescriptor) -> str | None:
    """Return the location of the file that holds the vector, None for an inline one (C267)."""
    text = descriptor.path_or_inline_dv
    match descriptor.storage_type:
        case "i":
            return None
        case "p":
            return resolve_file(table_location, text)
        case "u":
            prefix, encoded = text[:-UUID_LENGTH], text[-UUID_LENGTH:]
            if len(encoded) != UUID_LENGTH or ".." in prefix.split("/"):
                raise DeletionVectorError(f"The deletion vector path '{text}' does not end in an encoded UUID.")
            try:
                identifier = uuid.UUID(bytes=z85.decode(encoded))
            except ValueError as error:
                raise DeletionVectorError(f"The deletion vector path '{text}' is not Z85: {error}.") from None
            return join(table_location, *([prefix] if prefix else []), _file_name(identifier))
        case other:
            raise DeletionVectorError(
                f"The storage type '{other}' of a deletion vector is not known; it must be u, i or p (C257).",
                storage_type=other,
            )


def read_deletion_vector(
    store_for: StoreFor, table_location: str, descriptor: DeletionVectorDescriptor, *, data_file: str = ""
) -> BitMap64:
    """Return the deleted row indexes of one data file (`data_file` is for messages).

    Raises DeletionVectorError if the vector is missing, damaged, or does not match its descriptor.
    """
    return read_deletion_vectors(store_for, table_location, [descriptor], data_files=[data_file])[0]


def read_deletion_vectors(
    store_for: StoreFor,
    table_location: str,
    descriptors: Sequence[DeletionVectorDescriptor],
    *,
    data_files: Sequence[str] | None = None,
) -> list[BitMap64]:
    """Return the vectors of many data files, in order; adjacent ones in a file are fetched together."""
    found: dict[int, BitMap64] = {}
    stored: dict[str, list[_Stored]] = {}
    for position, descriptor in enumerate(descriptors):
        name = data_files[position] if data_files else ""
        path = deletion_vector_path(table_location, descriptor)
        if path is None:
            where = _where("inline deletion vector", table_location, name)
            found[position] = _checked(_inline_bytes(descriptor, where), descriptor, where)
        else:
            where = _where(f"deletion vector file '{path}'", table_location, name)
            stored.setdefault(path, []).append(_Stored(position, descriptor, where))
    for path, wanted in stored.items():
        for group in _neighbours(wanted):
            found.update(_read_group(store_for, path, group))
    return [found[position] for position in range(len(descriptors))]


def encode_inline(bitmap: BitMap64) -> DeletionVectorDescriptor:
    """Return the descriptor that holds the vector itself."""
    data = serialize(bitmap)
    return DeletionVectorDescriptor(
        storage_type="i", path_or_inline_dv=z85.encode(data), size_in_bytes=len(data), cardinality=len(bitmap)
    )


def write_deletion_vectors(
    store: ObjectStore, table_location: str, bitmaps: Sequence[BitMap64], *, prefix: str = ""
) -> list[DeletionVectorDescriptor]:
    """Write the vectors to one new file below the table (C278) and return their descriptors, in order."""
    identifier = uuid.uuid4()
    content, spans = encode_file(bitmaps)
    store.write_if_absent(join(table_location, *([prefix] if prefix else []), _file_name(identifier)), content)
    name = prefix + z85.encode(identifier.bytes)
    return [
        DeletionVectorDescriptor(
            storage_type="u", path_or_inline_dv=name, offset=offset, size_in_bytes=size, cardinality=len(bitmap)
        )
        for bitmap, (offset, size) in zip(bitmaps, spans, strict=True)
    ]


def encode_file(bitmaps: Sequence[BitMap64]) -> tuple[bytes, list[tuple[int, int]]]:
    """Return the content of a deletion vector file, and the offset and size of each vector in it (C276, C277)."""
    parts, spans, offset = [bytes([FILE_VERSION])], [], _FIRST_OFFSET
    for bitmap in bitmaps:
        data = serialize(bitmap)
        parts += [struct.pack(">i", len(data)), data, struct.pack(">I", zlib.crc32(data))]
        spans.append((offset, len(data)))
        offset += len(data) + _FRAME
    return b"".join(parts), spans


@dataclass(frozen=True, slots=True)
class _Stored:
    """A requested vector in a file: its position in the request, and its description for messages."""

    position: int
    descriptor: DeletionVectorDescriptor
    where: str

    @property
    def start(self) -> int:
        # Byte 0 is the version, so a missing offset or 0 can only mean the first vector.
        return self.descriptor.offset or _FIRST_OFFSET

    @property
    def end(self) -> int:
        return self.start + self.descriptor.size_in_bytes + _FRAME


def _where(what: str, table_location: str, data_file: str) -> str:
    of_file = f" of data file '{data_file}'" if data_file else ""
    return f"{what}{of_file} in table '{table_location}'"


def _file_name(identifier: uuid.UUID) -> str:
    return f"deletion_vector_{identifier}.bin"


def _inline_bytes(descriptor: DeletionVectorDescriptor, where: str) -> bytes:
    try:
        data = z85.decode(descriptor.path_or_inline_dv)
    except ValueError as error:
        raise DeletionVectorError(f"The {where} is not Z85 text: {error}.") from None
    if not len(data) - 4 < descriptor.size_in_bytes <= len(data):
        raise DeletionVectorError(
            f"The {where} holds {len(data)} bytes, but its descriptor says {descriptor.size_in_bytes}."
        )
    return data[: descriptor.size_in_bytes]


def _neighbours(wanted: list[_Stored]) -> list[list[_Stored]]:
    groups: list[list[_Stored]] = []
    reached = 0
    for one in sorted(wanted, key=lambda w: w.start):
        if one.start < 0 or one.descriptor.size_in_bytes < 0:
            raise DeletionVectorError(f"The {one.where} has a negative offset or size in its descriptor.")
        if not groups or one.start - reached > _MAX_GAP:
            groups.append([])
            reached = one.end
        groups[-1].append(one)
        reached = max(reached, one.end)
    return groups


def _read_group(store_for: StoreFor, path: str, group: list[_Stored]) -> dict[int, BitMap64]:
    # The version byte is included if it is close.
    start = 0 if group[0].start <= _MAX_GAP else group[0].start
    end = max(one.end for one in group)
    try:
        content = store_for(path).read(path, (start, end))
    except FileNotFoundInStoreError:
        raise DeletionVectorError(
            f"The {group[0].where} does not exist. Without it the deleted rows are unknown; "
            "restore the file, or restore the table to a version before it.",
            path=path,
        ) from None
    if start == 0 and content[:1] != bytes([FILE_VERSION]):
        raise DeletionVectorError(
            f"The {group[0].where} does not begin with the format version {FILE_VERSION}: found {content[:1].hex()!r}.",
            path=path,
        )
    return {
        one.position: _checked(_framed(content, one, start, path), one.descriptor, one.where, path) for one in group
    }


def _framed(content: bytes, one: _Stored, start: int, path: str) -> bytes:
    """Return the bitmap of one frame after checking the size and the checksum around it (C277)."""
    size = one.descriptor.size_in_bytes
    frame = content[one.start - start : one.end - start]
    if len(frame) < size + _FRAME:
        raise DeletionVectorError(f"The {one.where} ends inside the vector at offset {one.start}.", path=path)
    (stored_size,) = struct.unpack_from(">i", frame)
    if stored_size != size:
        raise DeletionVectorError(
            f"The {one.where} has {stored_size} bytes at offset {one.start}, but the descriptor says {size}.",
            path=path,
        )
    data = frame[4 : 4 + size]
    (checksum,) = struct.unpack_from(">I", frame, 4 + size)
    if checksum != zlib.crc32(data):
        raise DeletionVectorError(
            f"The {one.where} is damaged: the checksum of the vector at offset {one.start} does not match.", path=path
        )
    return data


def _checked(data: bytes, descriptor: DeletionVectorDescriptor, where: str, path: str = "") -> BitMap64:
    bitmap = deserialize(data, where=where)
    if len(bitmap) != descriptor.cardinality:
        raise DeletionVectorError(
            f"The {where} contains {len(bitmap)} rows, but its descriptor says {descriptor.cardinality}.",
            path=path,
            cardinality=len(bitmap),
        )
    return bitmap
