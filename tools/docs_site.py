"""Hook of mkdocs: the site has the pages where the repository has them, so a link works in both.

python -m mkdocs build
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from tools import doc_pages
from tools.doc_pages import ROOT

_ITEM = re.compile(r"^( *)(?:[-*+]|\d+\.) ")
_LOADED = re.compile(
    r"<(?:script|img|source|iframe|video|audio|embed|object)\b[^>]*?\b(?:src|srcset|data)=\"?((?:https?:)?//[^\"\s>]+)"
    r"|<link\b(?=[^>]*\brel=\"?(?:stylesheet|icon|preload|preconnect|prefetch|dns-prefetch))[^>]*?\bhref=\"?((?:https?:)?//[^\"\s>]+)"
    r"|\burl\(\"?((?:https?:)?//[^\"\s)]+)|@import\b[^;]*?((?:https?:)?//[^\"\s)]+)"
)
_LOGO = "charts/nodeyard/icon.svg"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    names = [page.relative_to(ROOT).as_posix() for page in doc_pages.pages()]
    assert config.nav is not None
    listed = set(_leaves(config.nav))
    config.nav = _expanded(config.nav, [name for name in names if name not in listed])
    config.mdx_configs["toc"]["slugify"] = doc_pages.slug
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Replace the files of docs/ by the pages of the repository, and what they link to."""
    for file in list(files):
        if file.src_dir == config.docs_dir:
            files.remove(file)
    pages = doc_pages.pages()
    linked = {
        doc_pages.resolve(page, target)
        for page in pages
        for target in doc_pages.links(page.read_text())
        if not doc_pages.is_external(target) and not doc_pages.problem(page, target)
    }
    for path in sorted({*pages, *linked, ROOT / _LOGO}):
        files.append(File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Write lists as Python-Markdown expects them: after an empty line, and nested by four spaces."""
    lines: list[str] = []
    fenced = False
    for line in markdown.split("\n"):
        fenced ^= line.lstrip().startswith("```")
        item = None if fenced else _ITEM.match(line)
        if item and lines and lines[-1].strip() and not _in_list(lines):
            lines.append("")
        lines.append(item[1] + line if item else line)
    return "\n".join(lines)


def on_post_build(config: MkDocsConfig) -> None:
    """Fail if a page or a stylesheet loads anything from elsewhere."""
    for path in sorted(path for path in Path(config.site_dir).rglob("*") if path.suffix in (".html", ".css")):
        if found := _LOADED.search(path.read_text()):
            raise PluginError(f"{path} loads {found[0]}")


def _in_list(lines: list[str]) -> bool:
    """Tell whether the paragraph that ends here is an item of a list."""
    for line in reversed(lines):
        if _ITEM.match(line):
            return True
        if not line.startswith(" "):
            return False
    return False


def _leaves(nav: Any) -> Iterator[str]:
    match nav:
        case str():
            yield nav
        case list():
            for each in nav:
                yield from _leaves(each)
        case dict():
            yield from _leaves(list(nav.values()))


def _expanded(nav: Any, unlisted: list[str]) -> Any:
    if isinstance(nav, dict):
        return {title: _expanded(each, unlisted) for title, each in nav.items()}
    if not isinstance(nav, list):
        return nav
    expanded: list[Any] = []
    for each in nav:
        if isinstance(each, str) and each.endswith("/"):
            expanded += [name for name in unlisted if Path(name).parent == Path(each)]
        else:
            expanded.append(_expanded(each, unlisted))
    return expanded
