"""Matches Go regular expressions with RE2, in time linear in the length of the text.

A CRD's `pattern`, CEL's `matches` and the schemas of applications use the syntax of Go's regexp package, which is
RE2's. User patterns never reach Python's `re`, which backtracks: `^(a+)+$` could block it forever.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import re2

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
# RE2's error messages, and Go's.
_GO_MESSAGES = {
    "bad repetition operator": "invalid nested repetition operator",
    "invalid named capture group": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "trailing \\": "trailing backslash at end of expression",
}
_ESCAPE = re.compile(r"\\Q.*?(?:\\E|\Z)|\\.", re.DOTALL)
# RE2 treats such a count as plain text.
_ENDLESS_COUNT = re.compile(r"\{(?:\d{9,}(?:,\d*)?|\d+,\d{9,})\}", re.ASCII)
_LOOKBEHIND = ("(?<=", "(?<!")


class PatternError(ValueError):
    """A pattern that Go's regexp package refuses, with Go's message."""

    def __init__(self, problem: str, fragment: str) -> None:
        super().__init__(f"error parsing regexp: {problem}: `{fragment}`")


class Pattern:
    """A compiled pattern."""

    def __init__(self, source: str) -> None:
        """Compile a pattern. Raises PatternError if Go would refuse it."""
        if "\\C" in source and "\\C" in _ESCAPE.findall(source):
            raise PatternError("invalid escape sequence", "\\C")  # RE2 accepts \C, Go does not
        if count := _ENDLESS_COUNT.search(source):
            raise PatternError("invalid repeat count", count[0])
        try:
            self._compiled: Any = re2.compile(_replace_surrogates(source), _OPTIONS)
        except re2.error as fault:
            raise _go_error(fault, source) from None

    def matches(self, text: str) -> bool:
        """Return whether the pattern matches anywhere in the text."""
        return self._compiled.search(_replace_surrogates(text)) is not None

    def find_all(self, text: str, limit: int = -1) -> list[str]:
        """Return all matches from left to right, at most `limit` if it is not negative."""
        found: list[str] = []
        end = -1
        for match in self._compiled.finditer(_replace_surrogates(text)):
            if len(found) == limit:
                break
            if match.start() == match.end() == end:
                continue  # an empty match right after another does not count
            end = match.end()
            found.append(match[0])
        return found


@lru_cache(maxsize=4096)
def compile_pattern(source: str) -> Pattern:
    """Compile a pattern, cached. Raises PatternError if Go would refuse it."""
    return Pattern(source)


def _replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which have no UTF-8, by question marks."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text


def _go_error(fault: Exception, source: str) -> PatternError:
    message = fault.args[0].decode(errors="replace")
    problem, _, fragment = message.partition(": ")
    if fragment in _LOOKBEHIND:
        rest = source[source.index(fragment) :]
        end = rest.find(">")
        return PatternError("invalid named capture", rest if end < 0 else rest[: end + 1])
    if problem in ("missing )", "unexpected )"):
        fragment = source
    return PatternError(_GO_MESSAGES.get(problem, problem), fragment)
