"""Every relative link and anchor of the pages resolves, in the repository's browser and on the site."""

import pytest
from tools import doc_pages

PAGES = doc_pages.pages()


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(doc_pages.ROOT)) for page in PAGES])
def test_links_of_the_page_resolve(page):
    targets = [each for each in doc_pages.links(page.read_text()) if not doc_pages.is_external(each)]
    assert {each: found for each in targets if (found := doc_pages.problem(page, each))} == {}


def test_all_pages_are_read():
    names = {page.relative_to(doc_pages.ROOT).as_posix() for page in PAGES}
    assert {"README.md", "CHANGELOG.md", "docs/spares.md", "charts/nodeyard/README.md", "testbed/README.md"} <= names


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("[a](b.md#c) and ![d](e.png)", ["b.md#c", "e.png"]),
        ('[![a](b.png)](c.md "title")', ["b.png", "c.md"]),
        ("[a]: b.md\n", ["b.md"]),
        ('<p><img alt="a" src="b.png"></p>', ["b.png"]),
        ("`[a](b.md)` and\n```\n[c](d.md)\n```\n<!-- [e](f.md) -->", []),
    ],
)
def test_links_are_found(text, targets):
    assert doc_pages.links(text) == targets


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("other.md", ""),
        ("other.md#a-heading-with-code--more", ""),
        ("#here", ""),
        ("missing.md", "does not exist"),
        ("folder", "names a directory: link a file in it"),
        ("../../outside.md", "leaves the repository"),
        ("other.md#missing", "has no heading with the anchor missing, or two"),
        ("other.md#twice", "has no heading with the anchor twice, or two"),
    ],
)
def test_problems_are_named(tmp_path, monkeypatch, target, problem):
    monkeypatch.setattr(doc_pages, "ROOT", tmp_path)
    (tmp_path / "folder").mkdir()
    (page := tmp_path / "page.md").write_text("# Here\n")
    (tmp_path / "other.md").write_text("## A heading, with `code` & more\n# Twice\n## Twice\n```\n# Missing\n```\n")
    assert doc_pages.problem(page, target) == problem
