"""The scripts of packaging: what makes a release unready, an archive wrong, and a licence unfit."""

from __future__ import annotations

import json
import tarfile
import zipfile
from datetime import date
from email.message import Message
from pathlib import Path

import pytest
from tests.unit.scripts.test_scripts import script

package = script("package")
release = script("release")
licences = script("licences")

TODAY = date(2026, 12, 1)
READY = "# Changes\n\n## Unreleased\n\n## 1.2.0 - 2026-11-30\n\n- A change.\n\n## 1.1.0 - 2026-10-01\n\n- Older.\n"


@pytest.mark.parametrize(
    ("text", "version"),
    [('__version__ = "1.2.3"\n', "1.2.3"), ('__version__ = "1.2.3rc1"\n', "1.2.3rc1"), ('__version__ = "1.2"\n', "")],
)
def test_the_version_of_a_release(text: str, version: str) -> None:
    assert release.version_in(text) == version


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (READY, None),
        (READY.replace("## Unreleased\n", "## Unreleased\n\n- New.\n"), "unreleased"),
        (READY.replace("1.2.0", "1.3.0"), "no changes of version 1.2.0"),
        (READY.replace("2026-11-30", "2026-12-02"), "to come"),
        (READY.replace(" - 2026-11-30", ""), "no day"),
        (READY.replace("- A change.", ""), "lists no change"),
    ],
)
def test_a_changelog_that_is_not_ready(changes: str, says: str | None) -> None:
    problems = list(release.changelog_problems(changes, "1.2.0", TODAY))
    assert len(problems) == (says is not None)
    assert says is None or says in problems[0]


def test_a_tree_that_is_not_ready() -> None:
    assert list(release.tree_problems("", ["v1.1.0"], "1.2.0")) == []
    assert "commit" in next(release.tree_problems(" M file", [], "1.2.0"))
    assert "exists" in next(release.tree_problems("", ["v1.2.0"], "1.2.0"))
    assert "no version" in next(release.tree_problems("", [], ""))


def archives(folder: Path, *, extra: str | None = None, without: str | None = None) -> tuple[Path, Path]:
    """A wheel and an sdist with the tracked files, but one, and one more."""
    wheel, sdist = folder / "p.whl", folder / "p.tar.gz"
    names = {*package.tracked_files()} - {without} | ({extra} if extra else set())
    metadata = ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in (*(name.removeprefix("src/") for name in names), *(f"p-1.dist-info/{name}" for name in metadata)):
            archive.writestr(name, "")
    with tarfile.open(sdist, "w:gz") as archive:
        for name in (*names, *package.IN_SDIST, "PKG-INFO"):
            archive.addfile(tarfile.TarInfo(f"p-1/{name}"))
    return wheel, sdist


def test_archives_hold_the_tracked_files_alone(tmp_path: Path) -> None:
    package.check_content(*archives(tmp_path))
    with pytest.raises(package.Failure, match=r"wheel lacks \[\].*secret\.env"):
        package.check_content(*archives(tmp_path, extra="src/pyspark_delta/secret.env"))
    with pytest.raises(package.Failure, match=r"wheel lacks \['pyspark_delta/py\.typed'\]"):
        package.check_content(*archives(tmp_path, without="src/pyspark_delta/py.typed"))


@pytest.mark.parametrize(
    ("expression", "fits"),
    [
        ("MIT", True),
        ("MIT OR GPL-3.0-only", True),
        ("MIT AND GPL-3.0-only", False),
        ("MPL-2.0 AND (Apache-2.0 OR MIT)", False),
        ("BSD-3-Clause AND 0BSD", True),
        ("", False),
        ("Some licence of ours", False),
        ("Apache-2.0 WITH LLVM-exception", False),
    ],
)
def test_which_licences_fit(expression: str, fits: bool) -> None:
    assert licences.is_permissive(expression) is fits


def test_licences_are_read_from_any_form_of_metadata() -> None:
    def facts(**lines: str) -> Message:
        message = Message()
        for name, value in lines.items():
            message[name.replace("_", "-")] = value
        return message

    assert licences.licence_of(facts(License_Expression="MIT OR ISC", License="x")) == "MIT OR ISC"
    assert licences.licence_of(facts(Classifier="License :: OSI Approved :: MIT License")) == "MIT"
    assert licences.licence_of(facts(License="Apache License 2.0\n\nlong text")) == "Apache-2.0"
    assert licences.licence_of(facts(Name="x")) == ""


def test_an_unfit_licence_fails_and_the_bill_names_every_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bill = tmp_path / "sbom.json"
    assert licences.main(["--sbom", str(bill)]) == 0
    document = json.loads(bill.read_text())
    references = {component["bom-ref"] for component in document["components"]}
    names = {component["name"] for component in document["components"]}
    assert names >= {"pyarrow", "numpy", "orjson", "sqlglot", "pyroaring", "starlette", "httpcore"}
    assert {ref for entry in document["dependencies"] for ref in entry["dependsOn"]} <= references
    assert "pytest" not in names
    monkeypatch.delitem(licences.EXCEPTIONS, "orjson")
    assert licences.main([]) == 1
    assert "orjson" in capsys.readouterr().err
