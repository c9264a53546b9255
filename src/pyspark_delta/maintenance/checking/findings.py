"""Findings: what a check says about a table, as frozen values. Their number is bounded, whatever the table holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias, get_args

import pyarrow as pa

from pyspark_delta.display import counted, html_rows
from pyspark_delta.maintenance.checking.catalogue import CHECKS, Check, Severity

CheckLevel: TypeAlias = Literal["log", "list", "footer", "data"]
LEVELS: tuple[CheckLevel, ...] = get_args(CheckLevel)
"""How much is read: the log; a listing too; footers of data files and deletion vectors too; all rows too."""

MOST = 100
"""Findings of one check that are kept; more are only counted."""

_LONGEST = 400  # characters of a message: names in a log may have any length

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("severity", pa.string()),
        pa.field("rule", pa.string()),
        pa.field("version", pa.int64()),
        pa.field("line", pa.int64()),
        pa.field("file", pa.string()),
        pa.field("message", pa.string()),
        pa.field("advice", pa.string()),
        pa.field("repair", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a table, or worth knowing.

    `id` names the check, `rule` the rows of the conformance checklist. `version`, `line` and `file` say where; they are
    None where they do not apply. `message` is one sentence, `advice` says what to do, and `repair` names the repair
    that removes the finding, or is empty.
    """

    id: str
    severity: Severity
    rule: str
    message: str
    advice: str
    version: int | None = None
    line: int | None = None
    file: str | None = None
    repair: str = ""

    def __str__(self) -> str:
        return f"{self.id} {self.severity}: {self.message} {self.advice}"

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as names and values, for JSON."""
        return {**asdict(self), "severity": str(self.severity)}


@dataclass(frozen=True, repr=False)
class CheckResult:
    """What a check found: `findings`, errors first, and how much was checked.

    `omitted` counts the findings beyond the first hundred of each check, by its id. `skipped` says what could not be
    checked and why, one sentence each. `version` is the newest version; None if the log has none that can be read.
    """

    location: str
    level: CheckLevel
    version: int | None
    findings: tuple[Finding, ...]
    omitted: Mapping[str, int] = field(default_factory=dict, hash=False)
    skipped: tuple[str, ...] = ()
    commits: int = 0
    files: int = 0

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that make readers fail or return wrong rows."""
        return self._of(Severity.ERROR)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that break a rule, or will cause a failure soon."""
        return self._of(Severity.WARNING)

    @property
    def infos(self) -> tuple[Finding, ...]:
        """The findings that are worth knowing."""
        return self._of(Severity.INFO)

    def _of(self, severity: Severity) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.severity is severity)

    def ids(self) -> tuple[str, ...]:
        """Return the ids of the checks that found something, sorted."""
        return tuple(sorted({finding.id for finding in self.findings}))

    def as_table(self) -> pa.Table:
        """Return one row for each finding: id, severity, rule, version, line, file, message, advice, repair."""
        return pa.Table.from_pylist([finding.as_dict() for finding in self.findings], SCHEMA)

    def facts(self) -> dict[str, object]:
        """Return the numbers of the check as names and values."""
        return {
            "location": self.location,
            "version": self.version,
            "level": self.level,
            "commits": self.commits,
            "files": self.files,
            "errors": len(self.errors),
            "warnings": len(self.warnings),
            "infos": len(self.infos),
            "omitted": sum(self.omitted.values()),
        }

    def __bool__(self) -> bool:
        """True if nothing was found that is an error."""
        return not self.errors

    def __repr__(self) -> str:
        return (
            f"CheckResult({self.location!r}, {len(self.errors)} errors, {len(self.warnings)} warnings, "
            f"{len(self.infos)} infos)"
        )

    def __str__(self) -> str:
        version = "no readable version" if self.version is None else f"version {self.version}"
        head = f"Checked '{self.location}' at level '{self.level}', {version}: "
        head += f"{counted(self.commits, 'commit')}, {counted(self.files, 'live file')}"
        lines = [head, *(f"  {finding}" for finding in self.findings)]
        lines += [f"  {id_}: and {number:,} more" for id_, number in sorted(self.omitted.items())]
        lines += [f"  not checked: {reason}" for reason in self.skipped]
        if not self.findings:
            lines.append("  nothing was found")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [(f.id, f.severity, f.message, f.advice) for f in self.findings]
        return html_rows(repr(self), ("id", "severity", "finding", "what to do"), rows)


class Findings:
    """The findings of one run, as checks add them: only of the chosen checks, and a bounded number of each."""

    def __init__(self, wanted: Collection[str], since: int | None = None) -> None:
        self._wanted = frozenset(wanted)
        self._since = since
        self._found: list[Finding] = []
        self._counts: Counter[str] = Counter()
        self.skipped: dict[str, None] = {}

    def wants(self, *ids: str) -> bool:
        """Return True if one of these checks is to run."""
        return not self._wanted.isdisjoint(ids)

    def add(
        self,
        id_: str,
        message: str,
        *,
        version: int | None = None,
        line: int | None = None,
        file: str | None = None,
        severity: Severity | None = None,
        advice: str | None = None,
        repair: str | None = None,
    ) -> None:
        """Add a finding; severity, advice and repair are those of the check, unless given."""
        if id_ not in self._wanted or (version is not None and self._since is not None and version <= self._since):
            return
        self._counts[id_] += 1
        if self._counts[id_] > MOST:
            return
        check: Check = CHECKS[id_]
        self._found.append(
            Finding(
                id_,
                severity or check.severity,
                check.rule,
                _shortened(message),
                check.advice if advice is None else advice,
                version,
                line,
                None if file is None else _shortened(file),
                check.repair if repair is None else repair,
            )
        )

    def add_rows(self, id_: str, rows: int, problems: Iterator[tuple[str, str]], **where: Any) -> None:
        """Add a finding for each of `rows` files; only as many files and messages are drawn as are kept."""
        kept = max(0, min(rows, MOST - self._counts[id_]))
        for _, (file, message) in zip(range(kept), problems, strict=False):
            self.add(id_, message, file=file, **where)
        if id_ in self._wanted:
            self._counts[id_] += rows - kept

    def skip(self, reason: str) -> None:
        """Note what could not be checked."""
        self.skipped[_shortened(reason)] = None

    def sorted(self) -> tuple[Finding, ...]:
        """Return the findings: errors first, then by id, in the order in which they were found."""
        order = list(Severity)
        return tuple(sorted(self._found, key=lambda f: (order.index(f.severity), f.id)))

    def omitted(self) -> dict[str, int]:
        """Return how many findings of each check were only counted."""
        return {id_: number - MOST for id_, number in self._counts.items() if number > MOST}


def _shortened(text: str) -> str:
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
