"""The semver library: `semver('1.2.3').isLessThan(semver('1.10.0'))`, `semver('v1.2', true)`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from nodeyard.apiserver.cel.declarations import Overload, function, member
from nodeyard.apiserver.cel.errors import EvaluationError
from nodeyard.apiserver.cel.values import UINT_MAX, Opaque
from nodeyard.kube.goformat import quote

# Numbers sort before words.
Identifier: TypeAlias = tuple[int, int, str]

_ALPHANUMERIC = re.compile(r"[0-9A-Za-z-]+")


@dataclass(frozen=True, slots=True)
class Semver(Opaque):
    major: int
    minor: int
    patch: int
    prerelease: tuple[Identifier, ...] = ()
    type_name = "kubernetes.Semver"

    @property
    def precedence(self) -> tuple[int, int, int, bool, tuple[Identifier, ...]]:
        """The sort key: a release follows its prereleases; build metadata does not count."""
        return self.major, self.minor, self.patch, not self.prerelease, self.prerelease


def _is_digits(text: str) -> bool:
    return text.isascii() and (text.isdigit() or not text)


def _number(text: str, what: str) -> int:
    if not _is_digits(text):
        raise EvaluationError(f"Invalid character(s) found in {what} number {quote(text)}")
    if len(text) > 1 and text[0] == "0":
        raise EvaluationError(f"{what.capitalize()} number must not contain leading zeroes {quote(text)}")
    return _unsigned(text)


def _unsigned(text: str) -> int:
    if not text:
        raise EvaluationError('strconv.ParseUint: parsing "": invalid syntax')
    if int(text) > UINT_MAX:
        raise EvaluationError(f"strconv.ParseUint: parsing {quote(text)}: value out of range")
    return int(text)


def _identifier(text: str) -> Identifier:
    if not text:
        raise EvaluationError("Prerelease is empty")
    if _is_digits(text):
        if len(text) > 1 and text[0] == "0":
            raise EvaluationError(f"Numeric PreRelease version must not contain leading zeroes {quote(text)}")
        return 0, _unsigned(text), ""
    if not _ALPHANUMERIC.fullmatch(text):
        raise EvaluationError(f"Invalid character(s) found in prerelease {quote(text)}")
    return 1, 0, text


def parse(text: str, normalize: bool = False) -> Semver:
    if normalize:
        text = _normalized(text)
    if not text:
        raise EvaluationError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise EvaluationError("No Major.Minor.Patch elements found")
    major, minor = _number(parts[0], "major"), _number(parts[1], "minor")
    rest, plus, build = parts[2].partition("+")
    patch, dash, prerelease = rest.partition("-")
    version = Semver(
        major,
        minor,
        _number(patch, "patch"),
        tuple(_identifier(part) for part in prerelease.split(".")) if dash else (),
    )
    if plus:
        _check_build(build)
    return version


def _check_build(build: str) -> None:
    for part in build.split("."):
        if not part:
            raise EvaluationError("Build meta data is empty")
        if not _ALPHANUMERIC.fullmatch(part):
            raise EvaluationError(f"Invalid character(s) found in build meta data {quote(part)}")


def _normalized(text: str) -> str:
    """Drop a leading `v` and leading zeros, and complete to three numbers."""
    parts = text.removeprefix("v").split(".", 2)
    parts = [_without_zeros(part) if len(part) > 1 else part for part in parts]
    if len(parts) < 3:
        if any(mark in parts[-1] for mark in "+-"):
            raise EvaluationError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


def _without_zeros(part: str) -> str:
    stripped = part.lstrip("0")
    return stripped if stripped[:1].isdigit() else "0" + stripped


def is_semver(text: str, normalize: bool = False) -> bool:
    try:
        parse(text, normalize)
    except EvaluationError:
        return False
    return True


def compare(left: Semver, right: Semver) -> int:
    return (left.precedence > right.precedence) - (left.precedence < right.precedence)


_TWO = "kubernetes.Semver, kubernetes.Semver"

OVERLOADS: list[Overload] = [
    function("semver", "string -> kubernetes.Semver", parse),
    function("semver", "string, bool -> kubernetes.Semver", parse),
    function("isSemver", "string -> bool", is_semver),
    function("isSemver", "string, bool -> bool", is_semver),
    member("isGreaterThan", f"{_TWO} -> bool", lambda left, right: compare(left, right) > 0),
    member("isLessThan", f"{_TWO} -> bool", lambda left, right: compare(left, right) < 0),
    member("compareTo", f"{_TWO} -> int", compare),
    member("major", "kubernetes.Semver -> int", lambda version: version.major),
    member("minor", "kubernetes.Semver -> int", lambda version: version.minor),
    member("patch", "kubernetes.Semver -> int", lambda version: version.patch),
]
