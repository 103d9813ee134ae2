"""Sets of characters, as ranges of code points: what \\d, [:alpha:] and \\p{Lu} mean in a Go regular expression.

Python's `re` has its own idea of the first and no idea of the others, so every class is spelled out in ranges.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache

Ranges = tuple[tuple[int, int], ...]


def _spans(*pairs: str) -> Ranges:
    return tuple((ord(pair[0]), ord(pair[-1])) for pair in pairs)


PERL: dict[str, Ranges] = {
    "d": _spans("09"),
    "s": _spans("\t\n", "\f\r", " "),
    "w": _spans("09", "AZ", "_", "az"),
}
POSIX: dict[str, Ranges] = {
    "alnum": _spans("09", "AZ", "az"),
    "alpha": _spans("AZ", "az"),
    "ascii": _spans("\x00\x7f"),
    "blank": _spans("\t", " "),
    "cntrl": _spans("\x00\x1f", "\x7f"),
    "digit": _spans("09"),
    "graph": _spans("!~"),
    "lower": _spans("az"),
    "print": _spans(" ~"),
    "punct": _spans("!/", ":@", "[`", "{~"),
    "space": _spans("\t\r", " "),
    "upper": _spans("AZ"),
    "word": _spans("09", "AZ", "_", "az"),
    "xdigit": _spans("09", "AF", "af"),
}
_CATEGORIES = {
    "Letter": "L",
    "Uppercaseletter": "Lu",
    "Lowercaseletter": "Ll",
    "Mark": "M",
    "Number": "N",
    "Decimalnumber": "Nd",
    "Digit": "Nd",
    "Punctuation": "P",
    "Punct": "P",
    "Symbol": "S",
    "Separator": "Z",
    "Other": "C",
}
_CATEGORY = re.compile("C[cfnos]?|L[lmotu]?|M[cen]?|N[dlo]?|P[cdefios]?|S[ckmo]?|Z[lps]?")
# Scripts by how the names of their characters begin: Python knows the names, not the scripts.
_SCRIPTS = {
    "Arabic": "ARABIC ",
    "Armenian": "ARMENIAN ",
    "Cyrillic": "CYRILLIC ",
    "Devanagari": "DEVANAGARI ",
    "Georgian": "GEORGIAN ",
    "Greek": "GREEK ",
    "Han": "CJK ",
    "Hangul": "HANGUL ",
    "Hebrew": "HEBREW ",
    "Hiragana": "HIRAGANA ",
    "Katakana": "KATAKANA ",
    "Latin": "LATIN ",
    "Thai": "THAI ",
}


def complement(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Every character that is in none of these."""
    gaps: list[tuple[int, int]] = []
    start = 0
    for low, high in sorted(ranges):
        if low > start:
            gaps.append((start, low - 1))
        start = max(start, high + 1)
    if start <= sys.maxunicode:
        gaps.append((start, sys.maxunicode))
    return tuple(gaps)


@lru_cache(maxsize=64)
def unicode_class(name: str) -> Ranges | None:
    """What \\p{name} holds: a general category or a script; None when there is none of that name."""
    name = "".join(part for part in name if part not in "_- ").capitalize()
    if name == "Any":
        return ((0, sys.maxunicode),)
    if name == "Ascii":
        return POSIX["ascii"]
    if name == "Assigned":
        return complement(_where(lambda char: unicodedata.category(char) == "Cn"))
    category = _CATEGORIES.get(name, name)
    if _CATEGORY.fullmatch(category):
        return _where(lambda char: unicodedata.category(char).startswith(category))
    prefix = _SCRIPTS.get(name)
    if prefix is not None:
        return _where(lambda char: unicodedata.name(char, "").startswith(prefix))
    return None


def _where(holds: Callable[[str], bool]) -> Ranges:
    spans: list[tuple[int, int]] = []
    start = -1
    for code in range(sys.maxunicode + 1):
        if holds(chr(code)):
            if start < 0:
                start = code
        elif start >= 0:
            spans.append((start, code - 1))
            start = -1
    if start >= 0:
        spans.append((start, sys.maxunicode))
    return tuple(spans)


@lru_cache(maxsize=256)
def class_text(ranges: Ranges) -> str:
    """These characters as a class of Python's `re`."""
    spans = "".join(_char(low) if low == high else f"{_char(low)}-{_char(high)}" for low, high in ranges)
    # An empty class does not parse; nothing is neither a character nor its opposite.
    return f"[{spans}]" if spans else r"[^\x00-\U0010ffff]"


def _char(code: int) -> str:
    char = chr(code)
    if char.isascii() and char.isalnum():
        return char
    return f"\\x{code:02x}" if code < 0x100 else f"\\U{code:08x}"
