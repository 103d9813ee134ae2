"""Go's regular expressions, on Python's engine.

A CRD's `pattern` is in the syntax of Go's regexp package. Python reads most of it alike, but not all: `$` there is the
very end, \\s has other members, a flag may stand in the middle, and lookahead and backreference do not exist. The
pattern is read as Go reads it, with Go's errors, and written anew for `re`. Nobody asks what a group matched, so groups
capture nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache

from nodeyard.schema.runes import PERL, POSIX, Ranges, class_text, complement, unicode_class

_MOST_COPIES = 1000
_REPEAT = re.compile(r"\{(0|[1-9][0-9]*)(?:(,)(0|[1-9][0-9]*)?)?\}")
_CONTROLS = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
# The long s and the Kelvin sign: in either case they are s and k, hence no members of a class that lacks those.
_FOLD_TO_ASCII: Ranges = ((0x17F, 0x17F), (0x212A, 0x212A))
_HEX = re.compile(r"x(?:\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{2}))")


class PatternError(ValueError):
    """A pattern that Go's regexp package refuses, in its words."""

    def __init__(self, problem: str, fragment: str) -> None:
        super().__init__(f"error parsing regexp: {problem}: `{fragment}`")


@lru_cache(maxsize=4096)
def compile_pattern(source: str) -> re.Pattern[str]:
    """Ready to `search`; raises PatternError where Go would refuse to compile."""
    return re.compile(_Reader(source).read())


def check_pattern(source: str) -> None:
    """Raises PatternError where Go would refuse to compile; nothing is made that could run."""
    _Reader(source).read()


@dataclass(frozen=True, slots=True)
class _Flags:
    fold: bool = False
    multiline: bool = False
    dot_newline: bool = False


@dataclass(slots=True)
class _Atom:
    """Something a repetition can follow, and how many copies of its innermost part it already makes."""

    text: str
    copies: int = 1


@dataclass(slots=True)
class _Group:
    """An open parenthesis: what was read in it, and the flags to go back to at its end."""

    flags: _Flags
    branches: list[str] = field(default_factory=list)
    atoms: list[_Atom] = field(default_factory=list)
    copies: int = 1

    def close_branch(self) -> None:
        self.branches.append("".join(atom.text for atom in self.atoms))
        self.copies = max([self.copies, *(atom.copies for atom in self.atoms)])
        self.atoms = []

    def close(self) -> _Atom:
        self.close_branch()
        return _Atom(f"(?:{'|'.join(self.branches)})", self.copies)


class _Reader:
    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0
        self._flags = _Flags()
        self._groups = [_Group(self._flags)]
        self._repeat_began = -1
        """Where the repetition just read began, or -1: one cannot follow another."""
        self._special: dict[str, Callable[[], None]] = {
            "(": self._open,
            ")": self._close,
            "|": self._bar,
            "[": self._class,
            "\\": self._backslash,
            "*": self._star,
            "+": self._star,
            "?": self._star,
            "{": self._braces,
        }

    def read(self) -> str:
        while self._at < len(self._source):
            began = self._repeat_began
            char = self._source[self._at]
            special = self._special.get(char)
            if special:
                special()
            elif char in "^$.":
                self._push(self._anchor(char))
                self._at += 1
            else:
                self._literal(char)
                self._at += 1
            if self._repeat_began == began:
                self._repeat_began = -1
        if len(self._groups) > 1:
            raise PatternError("missing closing )", self._source)
        return self._groups[0].close().text

    # atoms

    def _push(self, text: str) -> None:
        self._groups[-1].atoms.append(_Atom(text))

    def _literal(self, char: str) -> None:
        text = re.escape(char)
        self._push(f"(?i:{text})" if self._flags.fold else text)

    def _set(self, ranges: Ranges) -> None:
        text = class_text(ranges)
        self._push(f"(?i:{text})" if self._flags.fold else text)

    def _anchor(self, char: str) -> str:
        if char == ".":
            return "(?s:.)" if self._flags.dot_newline else "."
        if self._flags.multiline:
            return f"(?m:{char})"
        return r"(?:\A)" if char == "^" else r"(?:\Z)"

    # groups

    def _open(self) -> None:
        if self._source.startswith("(?", self._at):
            self._perl_group()
            return
        self._groups.append(_Group(self._flags))
        self._at += 1

    def _close(self) -> None:
        if len(self._groups) == 1:
            raise PatternError("unexpected )", self._source)
        group = self._groups.pop()
        self._flags = group.flags
        self._groups[-1].atoms.append(group.close())
        self._at += 1

    def _bar(self) -> None:
        self._groups[-1].close_branch()
        self._at += 1

    def _perl_group(self) -> None:
        """`(?P<name>`, `(?<name>`, `(?:`, `(?i:` and `(?i)`."""
        rest = self._source[self._at :]
        for prefix in ("(?P<", "(?<"):
            if rest.startswith(prefix) and len(rest) > len(prefix):
                self._named_group(rest, len(prefix))
                return
        found = re.match(r"\(\?([imsU]*)(-[imsU]+)?([:)])", rest)
        if not found:
            raise PatternError("invalid or unsupported Perl syntax", _perl_prefix(rest))
        outer = self._flags
        self._flags = _switched(_switched(outer, found[1], True), found[2] or "", False)
        if found[3] == ":":
            self._groups.append(_Group(outer))
        self._at += found.end()

    def _named_group(self, rest: str, name_at: int) -> None:
        end = rest.find(">")
        if end < 0:
            raise PatternError("invalid named capture", rest)
        if not re.fullmatch(r"[A-Za-z0-9_]+", rest[name_at:end]):
            raise PatternError("invalid named capture", rest[: end + 1])
        self._groups.append(_Group(self._flags))
        self._at += end + 1

    # repetitions

    def _star(self) -> None:
        sign = self._source[self._at]
        self._repeat(sign, self._at + 1, copies=1)

    def _braces(self) -> None:
        found = _REPEAT.match(self._source, self._at)
        if not found:
            self._literal("{")
            self._at += 1
            return
        least = int(found[1])
        most = least if not found[2] else int(found[3]) if found[3] else None
        if least > _MOST_COPIES or (most is not None and (most > _MOST_COPIES or least > most)):
            raise PatternError("invalid repeat count", found[0])
        self._repeat(found[0], found.end(), copies=least if most is None else most)

    def _repeat(self, sign: str, end: int, *, copies: int) -> None:
        start = self._at
        lazy = "?" if self._source.startswith("?", end) else ""
        end += len(lazy)
        if self._repeat_began >= 0:
            raise PatternError("invalid nested repetition operator", self._source[self._repeat_began : end])
        atoms = self._groups[-1].atoms
        if not atoms:
            raise PatternError("missing argument to repetition operator", self._source[start:end])
        atom = atoms[-1]
        total = 1 if copies == 0 else atom.copies * max(copies, 1)
        if copies >= 2 and total > _MOST_COPIES:
            raise PatternError("invalid repeat count", self._source[start:end])
        atoms[-1] = _Atom(f"(?:{atom.text}){sign}{lazy}", total)
        self._repeat_began = start
        self._at = end

    # escapes

    def _backslash(self) -> None:
        kind = self._source[self._at + 1 : self._at + 2]
        anchors = {"A": r"(?:\A)", "z": r"(?:\Z)", "b": r"(?a:\b)", "B": r"(?a:(?!\b))"}
        if kind in anchors and kind:
            self._push(anchors[kind])
            self._at += 2
        elif kind == "C":
            raise PatternError("invalid escape sequence", "\\C")
        elif kind == "Q":
            text, _, _ = self._source[self._at + 2 :].partition("\\E")
            for char in text:
                self._literal(char)
            self._at = min(self._at + 4 + len(text), len(self._source))
        else:
            ranges = self._escaped_class()
            if ranges is None:
                self._literal(chr(self._escaped_char()))
            else:
                self._set(ranges)

    def _escaped_class(self) -> Ranges | None:
        """\\d and its like, \\pL and \\p{Greek}; None when something else stands here."""
        kind = self._source[self._at + 1 : self._at + 2]
        if kind and kind in "dswDSW":
            self._at += 2
            return self._signed(PERL[kind.lower()], kind.isupper())
        if kind and kind in "pP":
            return self._unicode_class(negated=kind == "P")
        return None

    def _unicode_class(self, *, negated: bool) -> Ranges:
        rest = self._source[self._at :]
        end = rest.find("}") + 1 if rest[2:3] == "{" else 3
        if not end:
            raise PatternError("invalid character class range", rest)
        name = rest[3 : end - 1] if rest[2:3] == "{" else rest[2:3]
        if name.startswith("^"):
            name, negated = name[1:], not negated
        ranges = unicode_class(name) if name else None
        if ranges is None:
            raise PatternError("invalid character class range", rest[:end])
        self._at += end
        return complement(ranges) if negated else ranges

    def _escaped_char(self) -> int:
        """\\n, \\x41, \\x{1F600}, \\101, \\. and so on."""
        rest = self._source[self._at + 1 :]
        if not rest:
            raise PatternError("trailing backslash at end of expression", "")
        octal = re.match(r"0[0-7]{0,2}|[1-7][0-7]{1,2}", rest)
        if octal:
            self._at += 1 + octal.end()
            return int(octal[0], 8)
        found = _HEX.match(rest)
        code = int(found[1] or found[2], 16) if found else -1
        if found and code <= 0x10FFFF:
            self._at += 1 + found.end()
            return code
        char = rest[0]
        if char in _CONTROLS or (char.isascii() and not char.isalnum()):
            self._at += 2
            return _CONTROLS.get(char, ord(char))
        raise PatternError("invalid escape sequence", "\\" + _bad_escape(rest))

    # classes

    def _class(self) -> None:
        start = self._at
        self._at += 1
        negated = self._source.startswith("^", self._at)
        self._at += negated
        ranges: list[tuple[int, int]] = []
        first = True
        while first or not self._source.startswith("]", self._at):
            first = False
            ranges.extend(self._class_member(start))
        self._at += 1
        self._set(complement(ranges) if negated and not self._flags.fold else tuple(ranges))
        if negated and self._flags.fold:
            # Folding comes before negation: "not a, in either case".
            atoms = self._groups[-1].atoms
            atoms[-1] = _Atom(f"(?!{atoms[-1].text})(?s:.)")

    def _class_member(self, start: int) -> Ranges:
        if self._source.startswith("[:", self._at):
            end = self._source.find(":]", self._at + 2)
            if end >= 0:
                return self._posix_class(end + 2)
        if self._source.startswith("\\", self._at):
            ranges = self._escaped_class()
            if ranges is not None:
                return ranges
        began = self._at
        low = high = self._class_char(start)
        if self._source.startswith("-", self._at) and self._source[self._at + 1 : self._at + 2] not in ("", "]"):
            self._at += 1
            high = self._class_char(start)
            if high < low:
                raise PatternError("invalid character class range", self._source[began : self._at])
        return ((low, high),)

    def _posix_class(self, end: int) -> Ranges:
        text = self._source[self._at : end]
        name = text[2:-2]
        ranges = POSIX.get(name.removeprefix("^"))
        if ranges is None:
            raise PatternError("invalid character class range", text)
        self._at = end
        return self._signed(ranges, name.startswith("^"))

    def _signed(self, ranges: Ranges, negated: bool) -> Ranges:
        if not negated:
            return ranges
        return complement(ranges + _FOLD_TO_ASCII if self._flags.fold else ranges)

    def _class_char(self, start: int) -> int:
        if self._at >= len(self._source):
            raise PatternError("missing closing ]", self._source[start:])
        if self._source[self._at] == "\\":
            return self._escaped_char()
        self._at += 1
        return ord(self._source[self._at - 1])


def _switched(flags: _Flags, letters: str, on: bool) -> _Flags:
    for letter in letters:
        if letter == "i":
            flags = replace(flags, fold=on)
        elif letter == "m":
            flags = replace(flags, multiline=on)
        elif letter == "s":
            flags = replace(flags, dot_newline=on)
    return flags


def _perl_prefix(rest: str) -> str:
    """As much of `(?...` as is read before it turns out to be nothing known."""
    sign_seen = False
    for position, char in enumerate(rest[2:], start=3):
        if char in "imsU":
            continue
        if char == "-" and not sign_seen:
            sign_seen = True
            continue
        return rest[:position]
    return rest


def _bad_escape(rest: str) -> str:
    """As much of the escape as is read before it turns out to be none."""
    if rest[0] != "x" or len(rest) == 1:
        return rest[0]
    if rest[1] != "{":
        return rest[:3]
    value = 0
    for position, char in enumerate(rest[2:], start=3):
        digit = "0123456789abcdef".find(char.lower())
        value = value * 16 + digit
        if char == "}" or digit < 0 or value > 0x10FFFF:
            return rest[:position]
    return rest
