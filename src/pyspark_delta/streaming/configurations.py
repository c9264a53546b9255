"""The protocol and metadata of a table at each version that a stream passes."""

from __future__ import annotations

from pyspark_delta.changes.configuration_ranges import ConfigurationRange, Declared, configuration_ranges, evolved
from pyspark_delta.changes.versions import VersionRange
from pyspark_delta.errors import CorruptLogError, VersionNotFoundError
from pyspark_delta.protocol.configuration import TableConfiguration
from pyspark_delta.snapshot import Snapshot


class Configurations:
    """The configurations of the versions from a known one on. Commits are passed in order."""

    def __init__(self, start: Snapshot) -> None:
        self._start = start
        self._ranges: list[ConfigurationRange] = [ConfigurationRange(start.version + 1, start.configuration)]
        self._next = start.version + 1  # the version after those that are known

    def of(self, commit: Declared) -> TableConfiguration:
        """Return the configuration at the version of a commit."""
        if not self._ranges[0].first <= commit.version <= self._next:
            self._ranges, self._next = [ConfigurationRange(commit.version, self._opened(commit))], commit.version + 1
        if commit.version == self._next:
            self._next += 1
            before = self._ranges[-1].configuration
            if commit.protocol is not None or commit.metadata is not None:
                self._ranges.append(ConfigurationRange(commit.version, evolved(before, commit)))
        return next(one.configuration for one in reversed(self._ranges) if one.first <= commit.version)

    def _opened(self, commit: Declared) -> TableConfiguration:
        declared = [commit] if commit.protocol is not None or commit.metadata is not None else []
        versions = VersionRange(commit.version, commit.version)
        try:
            return configuration_ranges(self._start, versions, declared)[-1].configuration
        except (VersionNotFoundError, CorruptLogError):  # earlier commits were removed by log clean-up
            return evolved(self._start.configuration, commit)
