"""Kubernetes versions, compared: vMAJOR.MINOR.PATCH and whatever follows."""

from __future__ import annotations

import re
from typing import NamedTuple

_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?")
_RELEASE = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")


class KubeVersion(NamedTuple):
    major: int
    minor: int
    patch: int


def parse(text: str) -> KubeVersion | None:
    """None where it is no version. What distinguishes builds of one release does not count."""
    if not _VERSION.fullmatch(text):
        return None
    found = _RELEASE.match(text)
    assert found is not None
    major, minor, patch = (int(part) for part in found.groups())
    return KubeVersion(major, minor, patch)


def minors_between(older: str, newer: str) -> int | None:
    """How many minor versions lie between two; negative where the first is the newer one."""
    before, after = parse(older), parse(newer)
    if before is None or after is None or before.major != after.major:
        return None
    return after.minor - before.minor
