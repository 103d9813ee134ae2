"""Label selectors as text: the `labelSelector` of a list, the argument of `kubectl -l`."""

from __future__ import annotations

import re
from typing import Final

from nodeyard.kube.fields import invalid
from nodeyard.kube.names import qualified_name_faults
from nodeyard.kube.selectors.labels import (
    BINARY,
    OF_TOKEN,
    SETS,
    LabelSelector,
    Operator,
    Requirement,
    SelectorError,
    join_errors,
    requirement_errors,
)

_TOKEN_RE: Final = re.compile(r"[ \t\r\n]*(==|!=|[=!(),<>]|[^=!(),<> \t\r\n]+)")
_END: Final = ""
_SYMBOLS: Final = frozenset(("==", "!=", "=", "!", "(", ")", ",", "<", ">"))


def parse_labels(text: str) -> LabelSelector:
    """Parse the `labelSelector` of a list or of `kubectl -l`. Empty text selects everything."""
    return LabelSelector(_Parser(text).parse())


class _Parser:
    """Recursive descent over the tokens. `in` and `notin` are operators only where one is expected."""

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = [*_TOKEN_RE.findall(text), _END]
        self._position = 0

    def parse(self) -> list[Requirement]:
        requirements: list[Requirement] = []
        while (token := self._peek()) != _END:
            if not _is_identifier(token) and token != "!":
                raise SelectorError(f"found '{token}', expected: !, identifier, or 'end of string'")
            requirements.append(self._requirement())
            self._separator()
        return requirements

    def _separator(self) -> None:
        token = self._take()
        if token == _END:
            self._position -= 1
        elif token != ",":
            raise SelectorError(f"found '{token}', expected: ',' or 'end of string'")
        elif not _is_identifier(after := self._peek()) and after != "!":
            raise SelectorError(f"found '{after}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        try:
            requirement = self._parse_requirement()
            if errors := requirement_errors(requirement):
                raise SelectorError(join_errors(errors))
        except SelectorError as error:
            raise SelectorError(f"unable to parse requirement: {error}") from None
        return requirement

    def _parse_requirement(self) -> Requirement:
        is_negated = self._peek() == "!"
        if is_negated:
            self._take()
        label = self._take()
        if not _is_identifier(label):
            raise SelectorError(f"found '{label}', expected: identifier")
        if faults := qualified_name_faults(label):
            raise SelectorError(str(invalid("<nil>", label, "; ".join(faults))))
        if is_negated:
            return Requirement(label, Operator.DOES_NOT_EXIST)
        if self._peek() in (_END, ","):
            return Requirement(label, Operator.EXISTS)
        operator = self._operator()
        values = self._set() if operator in SETS else self._single()
        return Requirement(label, operator, tuple(sorted(values)))

    def _operator(self) -> Operator:
        token = self._take()
        operator = OF_TOKEN.get(token)
        if operator is None:
            raise SelectorError(f"found '{token}', expected: {', '.join(o.value for o in BINARY)}")
        return operator

    def _single(self) -> set[str]:
        if self._peek() in (_END, ","):
            return {""}
        token = self._take()
        if not _is_identifier(token):
            raise SelectorError(f"found '{token}', expected: identifier")
        return {token}

    def _set(self) -> set[str]:
        """Parse `(a,b)`; nothing between commas or brackets is the empty value."""
        token = self._take()
        if token != "(":
            raise SelectorError(f"found '{token}' expected: '('")
        first = self._peek()
        if not _is_identifier(first) and first not in (",", ")"):
            raise SelectorError(f"found '{first}', expected: ',', ')' or identifier")
        values: set[str] = set()
        while True:
            values.add(self._take() if _is_identifier(self._peek()) else "")
            token = self._take()
            if token == ")":
                return values
            if token != ",":
                raise SelectorError(f"found '{token}', expected: ',' or ')'")
            following = self._peek()
            if not _is_identifier(following) and following not in (",", ")"):
                raise SelectorError(f"found '{following}', expected: ',', or identifier")

    def _peek(self) -> str:
        return self._tokens[self._position]

    def _take(self) -> str:
        token = self._tokens[self._position]
        self._position += 1
        return token


def _is_identifier(token: str) -> bool:
    return token != _END and token not in _SYMBOLS
