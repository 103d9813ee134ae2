"""Reads the repository's Markdown pages: their headings, links and code blocks, as its browser shows them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("docs", "charts", "examples", "testbed")
_FENCE = re.compile(
    r"^(?P<indent> *)(?P<fence>```+)(?P<language>[\w-]*)[^\n]*\n(?P<text>.*?)^ *(?P=fence) *$", re.M | re.S
)
_COMMENT = re.compile(r"<!--.*?-->", re.S)
_CODE = re.compile(r"(`+)(?!`)(?:(?!\n\n).)+?(?<!`)\1(?!`)", re.S)
_HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.M)
_INLINE_LINK = re.compile(r"\]\(\s*<?([^\s)>]*)>?(?:\s+\"[^\"]*\")?\s*\)")
_REFERENCE = re.compile(r"^ {0,3}\[[^\]^]+\]: +<?(\S+?)>?(?: |$)", re.M)
_ATTRIBUTE = re.compile(r"<(?:a|img|source)\b[^>]*?\b(?:href|src|srcset)=\"([^\"]*)\"")


@dataclass(frozen=True)
class Block:
    """A fenced code block."""

    line: int
    language: str
    text: str
    comment: str
    """The HTML comment in the line before it, without its marks; empty if there is none."""


def pages() -> list[Path]:
    """Return the pages that the repository keeps for readers."""
    found = [*ROOT.glob("*.md"), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.md"))]
    return sorted(path for path in found if not any(part.startswith(".") for part in path.relative_to(ROOT).parts))


def blocks(text: str) -> Iterator[Block]:
    for found in _FENCE.finditer(text):
        before = text[: found.start()].rstrip("\n").rpartition("\n")[2].strip()
        comment = before.removeprefix("<!--").removesuffix("-->").strip() if before.startswith("<!--") else ""
        indent = len(found["indent"])
        lines = [line[indent:] if not line[:indent].strip() else line for line in found["text"].splitlines(True)]
        yield Block(text.count("\n", 0, found.start()) + 1, found["language"], "".join(lines), comment)


def links(text: str) -> list[str]:
    """Return the targets of all links and images."""
    prose = _CODE.sub("`code`", _COMMENT.sub("", _FENCE.sub("", text)))
    return [target for pattern in (_INLINE_LINK, _REFERENCE, _ATTRIBUTE) for target in pattern.findall(prose)]


def slug(heading: str, separator: str = "-") -> str:
    """Return the anchor of a heading without formatting, made as GitHub and GitLab make it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", separator)


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors of a page, without those of headings that occur twice: these differ between browsers."""
    text = _COMMENT.sub("", _FENCE.sub("", page.read_text()))
    titles = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in _HEADING.findall(text)]
    counts = Counter(slug(re.sub(r"[`*]", "", title)) for title in titles)
    named = re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text)
    return frozenset([*(anchor for anchor, count in counts.items() if count == 1), *named])


def is_external(target: str) -> bool:
    return re.match(r"[a-z][a-z0-9+.-]*:", target) is not None


def resolve(page: Path, target: str) -> Path:
    """Return the file that a relative link names."""
    path = target.partition("#")[0]
    return (page.parent / path).resolve() if path else page


def problem(page: Path, target: str) -> str:
    """Return what is wrong with a relative link; empty if it works in the repository's browser and on the site."""
    file = resolve(page, target)
    if not file.is_relative_to(ROOT):
        return "leaves the repository"
    if not file.is_file():
        return "names a directory: link a file in it" if file.is_dir() else "does not exist"
    anchor = target.partition("#")[2]
    if anchor and file.suffix == ".md" and anchor not in anchors(file):
        return f"has no heading with the anchor {anchor}, or two"
    return ""
