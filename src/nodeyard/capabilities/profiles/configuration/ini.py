"""INI text as oslo.config reads it, checked and never rewritten.

    [section]                 a header has its line to itself
    option = value            or `option: value`; quotes around a value are taken off
      further value           indented: goes on with the value above, until an empty line or one that is not indented
    # comment                 or `;`; at the beginning of the line only

`check` takes any text and never raises. A fault is what oslo.config would refuse to start on, or would read as
something that nobody means; a warning is what it accepts and what is likely a mistake. Messages quote no values: an
option may hold a password, and messages go into statuses and events.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

_LINE_END = re.compile(r"\r\n|\r|\n")
_QUOTES = ('"', "'")
_HEADER = re.compile(r"\[[A-Za-z][\w.:/-]*\]")
_MOST_QUOTED = 60
_DEFAULT: Final = "DEFAULT"
_LOST: Final = ""
"""The section below a header that is at fault."""

EMPTY: Final = (
    "the configuration is empty; if it was meant to have contents, indent them deeper than the key that they belong to"
)
ONLY_COMMENTS: Final = (
    "the configuration has comments and no [section]; if there was more, indent it deeper than the key it belongs to"
)
NO_SECTION: Final = "the configuration has no [section] header, so that none of its options is ever read"


@dataclass(frozen=True)
class Fault:
    line: int
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}"


@dataclass(frozen=True)
class Option:
    """One option as it was set, and where."""

    section: str
    name: str
    value: str
    line: int


@dataclass(frozen=True)
class Checked:
    sections: Mapping[str, Mapping[str, Sequence[str]]]
    """Values by section and option, as they are spelt, in their order. Of what is at fault nothing is in here."""
    faults: tuple[Fault, ...] = ()
    warnings: tuple[Fault, ...] = ()
    options: tuple[Option, ...] = ()
    """The same, one by one, with their lines."""


def check(text: str) -> Checked:
    reader = _Reader()
    for number, line in enumerate(_LINE_END.split(text), start=1):
        reader.read(number, line.rstrip())
    reader.close()
    return reader.checked()


def normal_section(name: str) -> str:
    """Sections that differ in case alone are the same, except for [DEFAULT], which has no other spelling."""
    return name if name == _DEFAULT else name.lower()


def quoted(text: str) -> str:
    return repr(shortened(text))


def shortened(text: str) -> str:
    """As much of a text as a message bears."""
    return text if len(text) <= _MOST_QUOTED else f"{text[:_MOST_QUOTED]}..."


class _Reader:
    """What has been read of a text so far."""

    def __init__(self) -> None:
        self._headers: dict[str, None] = {}
        self._options: list[Option] = []
        self._faults: list[Fault] = []
        self._warnings: list[Fault] = []
        self._first_lines: dict[tuple[str, str], int] = {}
        self._section: str | None = None
        self._open: Option | None = None
        self._further: list[str] = []
        """Lines that go on with its value."""
        self._is_skipping = False
        """Whether further indented lines belong to one that is at fault already."""
        self._is_stray_told = False
        self._has_comments = False

    def read(self, number: int, line: str) -> None:
        if not line:
            self.close()
        elif line[0] in " \t":
            self._indented(number, line)
        else:
            self.close()
            self._unindented(number, line)

    def close(self) -> None:
        """The value that was being read is complete."""
        if self._open is not None and self._open.section:
            self._options.append(replace(self._open, value="\n".join([self._open.value, *self._further])))
        self._open = None
        self._further = []
        self._is_skipping = False

    def checked(self) -> Checked:
        sections: dict[str, dict[str, list[str]]] = {header: {} for header in self._headers}
        for option in self._options:
            sections[option.section].setdefault(option.name, []).append(option.value)
        warnings = [*self._emptiness(), *self._warnings]
        return Checked(sections, tuple(self._faults), tuple(warnings), tuple(self._options))

    def _emptiness(self) -> list[Fault]:
        if self._headers:
            return []
        if self._faults:
            return [Fault(1, NO_SECTION)]
        return [Fault(1, ONLY_COMMENTS if self._has_comments else EMPTY)]

    def _unindented(self, number: int, line: str) -> None:
        if line[0] == "[":
            self._header(number, line)
        elif line[0] in "#;":
            self._has_comments = True
        else:
            self._assignment(number, line)

    def _indented(self, number: int, line: str) -> None:
        content = line.lstrip()
        if "\t" in line.removesuffix(content):
            self._fault(number, "is indented with a tab; use spaces")
        elif self._open is not None:
            self._continuation(number, content, self._open)
        elif not self._is_skipping:
            self._fault(
                number,
                "is indented, but there is no option above that it could go on with; take the spaces away",
            )

    def _continuation(self, number: int, content: str, opened: Option) -> None:
        looks_like = "a comment" if content[0] in "#;" else "a section header" if _HEADER.fullmatch(content) else ""
        if looks_like:
            self._warn(
                number,
                f"looks like {looks_like}, but is indented and so becomes part of the value of option "
                f"{quoted(opened.name)} in line {opened.line}; take the spaces away",
            )
        self._further.append(content)

    def _header(self, number: int, line: str) -> None:
        name = line[1:-1]
        if not line.endswith("]"):
            after = line.rpartition("]")[2].strip() if "]" in line else ""
            remedy = "put what follows the ']' on a line of its own" if after else "end it with ']'"
            self._fault(number, f"a section header has its line to itself, as [section]; {remedy}")
        elif not name.strip():
            self._fault(number, "a section header without a name; write it as [section]")
        elif name != name.strip() or "[" in name or "]" in name:
            self._fault(number, f"a section named {quoted(name)} is never read; write the header as [section]")
        else:
            self._section = name
            self._headers.setdefault(name)
            return
        self._section = _LOST

    def _assignment(self, number: int, line: str) -> None:
        name, separator, value = _split(line)
        if not separator:
            self._fault(
                number,
                f"{quoted(line.split()[0])} begins a line that is neither a [section] header nor a comment "
                "nor `option = value`",
            )
        elif not name:
            self._fault(number, f"an option without a name before the {separator!r}")
        elif self._section is None:
            self._stray(number, name)
        else:
            self._repeated(number, name)
            self._open = Option(self._section, name, _unquoted(value), number)

    def _stray(self, number: int, name: str) -> None:
        """Told once: what follows up to the first header has the same fault."""
        if not self._is_stray_told:
            self._fault(number, f"option {quoted(name)} stands before the first [section] header; put one above it")
        self._is_stray_told = self._is_skipping = True

    def _repeated(self, number: int, name: str) -> None:
        section = self._section
        if not section:
            return
        first = self._first_lines.setdefault((normal_section(section), name), number)
        if first != number:
            self._warn(
                number,
                f"option {quoted(name)} of section {quoted(section)} is set already in line {first}; "
                "unless it takes several values, the last one counts",
            )

    def _fault(self, number: int, message: str) -> None:
        self._faults.append(Fault(number, message))
        self._is_skipping = True

    def _warn(self, number: int, message: str) -> None:
        self._warnings.append(Fault(number, message))


def _split(line: str) -> tuple[str, str, str]:
    """At the first of `=` and `:`; without a separator where there is none."""
    ends = [at for at in (line.find("="), line.find(":")) if at >= 0]
    if not ends:
        return line, "", ""
    at = min(ends)
    return line[:at].strip(), line[at], line[at + 1 :].strip()


def _unquoted(value: str) -> str:
    return value[1:-1] if value.startswith(_QUOTES) and value[0] == value[-1] else value
