"""Check INI text as oslo.config reads it; the text is never rewritten.

    [section]                 a header is alone on its line
    option = value            or `option: value`; quotes around a value are removed
      more of the value       indented: continues the value, until an empty line or a line without indentation
    # comment                 or `;`; only at the start of a line

`check` accepts any text and never raises. A fault is text that oslo.config rejects, or reads as something that nobody
intends. A warning is text that it accepts and that is probably a mistake. Messages quote option names, never values and
never other lines: an option may hold a password, and messages go into statuses and events.
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
"""Section below an invalid header."""

EMPTY: Final = "the configuration is empty; if it should have content, indent the content deeper than its YAML key"
ONLY_COMMENTS: Final = (
    "the configuration has only comments; if it should have more, indent the content deeper than its YAML key"
)
NO_SECTION: Final = "the configuration has no [section] header, so none of its options is read"


@dataclass(frozen=True)
class Fault:
    line: int
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}"


@dataclass(frozen=True)
class Option:
    """Assignment of an option, with its line."""

    section: str
    name: str
    value: str
    line: int


@dataclass(frozen=True)
class Checked:
    sections: Mapping[str, Mapping[str, Sequence[str]]]
    """Values by section and option, in order; invalid lines are left out."""
    faults: tuple[Fault, ...] = ()
    warnings: tuple[Fault, ...] = ()
    options: tuple[Option, ...] = ()
    """The same assignments with their lines."""


def check(text: str) -> Checked:
    reader = _Reader()
    for number, line in enumerate(_LINE_END.split(text), start=1):
        reader.read(number, line.rstrip())
    reader.close()
    return reader.checked()


def normal_section(name: str) -> str:
    """Normalise a section name: case is ignored, except for [DEFAULT]."""
    return name if name == _DEFAULT else name.lower()


def quoted(text: str) -> str:
    return repr(shortened(text))


def shortened(text: str) -> str:
    """Truncate a text for a message."""
    return text if len(text) <= _MOST_QUOTED else f"{text[:_MOST_QUOTED]}..."


class _Reader:
    """State of the line reader."""

    def __init__(self) -> None:
        self._headers: dict[str, None] = {}
        self._options: list[Option] = []
        self._faults: list[Fault] = []
        self._warnings: list[Fault] = []
        self._first_lines: dict[tuple[str, str], int] = {}
        self._section: str | None = None
        self._open: Option | None = None
        self._continuation_lines: list[str] = []
        """Continuation lines of its value."""
        self._is_skipping = False
        """True if indented lines continue a line that is already at fault."""
        self._has_stray_fault = False
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
        """Finish the current option."""
        if self._open is not None and self._open.section:
            self._options.append(replace(self._open, value="\n".join([self._open.value, *self._continuation_lines])))
        self._open = None
        self._continuation_lines = []
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
                "is indented, but continues no option; remove the indentation",
            )

    def _continuation(self, number: int, content: str, opened: Option) -> None:
        looks_like = "a comment" if content[0] in "#;" else "a section header" if _HEADER.fullmatch(content) else ""
        if looks_like:
            self._warn(
                number,
                f"looks like {looks_like}, but is indented and becomes part of the value of option "
                f"{quoted(opened.name)} in line {opened.line}; remove the indentation",
            )
        self._continuation_lines.append(content)

    def _header(self, number: int, line: str) -> None:
        name = line[1:-1]
        if not line.endswith("]"):
            after = line.rpartition("]")[2].strip() if "]" in line else ""
            remedy = "move the text after ']' to its own line" if after else "end it with ']'"
            self._fault(number, f"a section header must be alone on its line, as [section]; {remedy}")
        elif not name.strip():
            self._fault(number, "a section header needs a name, as [section]")
        elif name != name.strip() or "[" in name or "]" in name:
            self._fault(
                number, "a section whose name has brackets or surrounding spaces is never read; write [section]"
            )
        else:
            self._section = name
            self._headers.setdefault(name)
            return
        self._section = _LOST

    def _assignment(self, number: int, line: str) -> None:
        name, separator, value = _split(line)
        if not separator:
            # Not quoted: the line may be the rest of a password without indentation.
            self._fault(number, f"{_begun(line)}is not a [section] header, a comment or `option = value`")
        elif not name:
            self._fault(number, f"an option needs a name before the {separator!r}")
        elif self._section is None:
            self._stray(number, name)
        else:
            self._repeated(number, name)
            self._open = Option(self._section, name, _unquoted(value), number)

    def _stray(self, number: int, name: str) -> None:
        """Report only the first option before the first header."""
        if not self._has_stray_fault:
            self._fault(number, f"option {quoted(name)} is before the first [section] header; add one above it")
        self._has_stray_fault = self._is_skipping = True

    def _repeated(self, number: int, name: str) -> None:
        section = self._section
        if not section:
            return
        first = self._first_lines.setdefault((normal_section(section), name), number)
        if first != number:
            self._warn(
                number,
                f"option {quoted(name)} of section {quoted(section)} is already set in line {first}; "
                "unless it is a multi-value option, the last value wins",
            )

    def _fault(self, number: int, message: str) -> None:
        self._faults.append(Fault(number, message))
        self._is_skipping = True

    def _warn(self, number: int, message: str) -> None:
        self._warnings.append(Fault(number, message))


def _split(line: str) -> tuple[str, str, str]:
    """Split at the first `=` or `:`; the separator is empty if there is none."""
    ends = [at for at in (line.find("="), line.find(":")) if at >= 0]
    if not ends:
        return line, "", ""
    at = min(ends)
    return line[:at].strip(), line[at], line[at + 1 :].strip()


def _begun(line: str) -> str:
    """Name an invisible first character, such as a byte order mark."""
    return "" if line[0].isprintable() else f"begins with the invisible character U+{ord(line[0]):04X} and "


def _unquoted(value: str) -> str:
    return value[1:-1] if value.startswith(_QUOTES) and value[0] == value[-1] else value
