"""Errors of expressions: compile errors, and evaluation errors.

Compile errors have the API server's format: one `ERROR: <input>:line:column: message` for each issue, in the order of
the source, each followed by the line and a caret under the position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_MOST_ISSUES = 100


@dataclass(frozen=True, slots=True)
class Issue:
    """One issue, at a zero-based offset into the source in code points."""

    offset: int
    message: str

    def render(self, source: str) -> str:
        line_start = source.rfind("\n", 0, self.offset) + 1
        line_number = source.count("\n", 0, self.offset) + 1
        column = self.offset - line_start
        text = f"ERROR: <input>:{line_number}:{column + 1}: {self.message}"
        line = source[line_start:].split("\n", 1)[0].replace("\t", " ")
        if not line and not source:
            return text
        dots = "".join("." if character.isascii() else "\uff0e" for character in line[:column])
        below = line[column : column + 1]
        return f"{text}\n | {line}\n | {dots}{'^' if below.isascii() else chr(0xFF3E)}"


class CompileError(Exception):
    """The expression does not compile. `str()` is the API server's text after `compilation failed: `."""


def compile_error(source: str, issues: Sequence[Issue]) -> CompileError:
    ordered = sorted(issues, key=lambda issue: issue.offset)
    lines = [issue.render(source) for issue in ordered[:_MOST_ISSUES]]
    if len(ordered) > _MOST_ISSUES:
        lines.append(f"{len(ordered) - _MOST_ISSUES} more errors were truncated")
    return CompileError("\n".join(lines))


class InstantiationError(Exception):
    """The expression is well typed, but a conversion of a constant fails: `int('x')`."""


class EvaluationError(Exception):
    """The evaluation failed. `str()` is the API server's text."""


class CostExceeded(Exception):
    """The cost limit is exceeded. `||` and `&&` do not absorb it."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


def no_such_overload(detail: str = "") -> EvaluationError:
    return EvaluationError(f"no such overload: {detail}" if detail else "no such overload")


def no_such_key(key: object) -> EvaluationError:
    return EvaluationError(f"no such key: {key}")
