"""Validation of the Kubernetes version: a full version, upgraded one minor version at a time."""

from __future__ import annotations

from typing import Final

from nodeyard.kube.json import Object
from nodeyard.schema.rules import checks, rule

_SEMVER = r"^v?(0|[1-9][0-9]{0,4})([.](0|[1-9][0-9]{0,4})){2}(-[0-9A-Za-z.-]+)?([+][0-9A-Za-z.-]+)?$"


def _number(version: str, part: int) -> str:
    """Return CEL for one part of a version as a number."""
    digits = f"{version}.split('.')[{part}]"
    return f"int({digits}.replace('v', '').split('-')[0].split('+')[0])"


def _rank(version: str) -> str:
    """Return CEL for a number that orders versions, ignoring pre-releases."""
    return f"({_number(version, 0)} * 10000000000 + {_number(version, 1)} * 100000 + {_number(version, 2)})"


def _is_pre_release(version: str) -> str:
    """Return CEL that is true for a pre-release."""
    return f"{version}.split('+')[0].contains('-')"


_UNPARSABLE = f"!self.matches('{_SEMVER}') || !oldSelf.matches('{_SEMVER}')"
VERSION: Final[Object] = checks(
    rule(
        f"self.matches('{_SEMVER}')",
        "version must be a full version such as 1.32.0 or v1.32.0",
        '"version \'" + self + "\' must be a full version such as 1.32.0 or v1.32.0"',
    ),
    rule(
        f"{_UNPARSABLE} || {_rank('self')} > {_rank('oldSelf')} || ({_rank('self')} == {_rank('oldSelf')} "
        f"&& (!{_is_pre_release('self')} || {_is_pre_release('oldSelf')}))",
        "version cannot go down",
        "'version cannot go down: it is ' + oldSelf + ' and would become ' + self",
    ),
    rule(
        f"{_UNPARSABLE} || ({_number('self', 0)} == {_number('oldSelf', 0)} "
        f"&& {_number('self', 1)} <= {_number('oldSelf', 1)} + 1)",
        "version must go up one minor version at a time",
        "'version must go up one minor version at a time: ' + oldSelf + ' cannot become ' + self + ' at once'",
    ),
    maxLength=64,
)
