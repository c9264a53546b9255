"""The pages of the documentation site, before mkdocs makes HTML of them; that happens in CI (`make site`)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.unit.scripts.test_scripts import script

references = script("references")
site = script("site")
ROOT = Path(__file__).parents[3]


def test_generated_pages_are_those_of_the_code() -> None:
    """After a change of errors or properties: `make references`."""
    assert references.main(["--check"]) == 0


def test_every_error_has_a_remedy_and_no_other_has() -> None:
    assert {found.__name__ for found in references.classes()} == set(references.REMEDIES)


def test_every_public_name_has_a_page() -> None:
    assert site.missing_names() == set()


def test_every_page_is_in_the_navigation_and_its_links_lead_to_pages() -> None:
    pages = dict(site.sources())
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    assert set(re.findall(r"[\w/-]+\.md", navigation)) == set(pages)
    assert "(../" not in pages["index.md"], "links out of the site"


def test_links_are_those_of_the_site() -> None:
    places = {"docs/a.md": "a.md", "docs/developers/b.md": "developers/b.md", "README.md": "readme.md"}
    text = "[R](../README.md#install) [b](developers/b.md) [code](../pyproject.toml) [w](https://x.y/z.md) `[n](n.md)`"
    assert site.relinked(text.rpartition(" ")[0], "docs/a.md", places) == (
        "[R](readme.md#install) [b](developers/b.md) code [w](https://x.y/z.md)"
    )
    assert site.relinked("[a](../a.md)", "docs/developers/b.md", places) == "[a](../a.md)"
    assert site.relinked("```\n[a](no.md)\n```\n", "docs/a.md", places) == "```\n[a](no.md)\n```\n"
    with pytest.raises(FileNotFoundError, match=r"docs/a\.md has a link to gone\.md"):
        site.relinked("[a](gone.md)", "docs/a.md", places)
