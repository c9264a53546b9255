"""What the binary sinks of all stores have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self


class Sink(ABC):
    """A file that is written once. `close` publishes it; leaving a `with` block by an exception discards it.

    It is not an `io` class, because garbage collection closes those, which would publish the file.
    """

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def flush(self) -> None:  # noqa: B027 - most sinks have nothing to do
        """Do nothing: nothing is visible before `close`."""

    @abstractmethod
    def close(self) -> None:
        """Make the file visible. Raises StorageError."""

    @abstractmethod
    def discard(self) -> None:
        """Discard the content."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()
