"""Kubernetes versions, compared: vMAJOR.MINOR.PATCH and whatever follows."""

from __future__ import annotations

import re
from typing import NamedTuple

_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+([0-9A-Za-z.-]+))?")


class KubeVersion(NamedTuple):
    major: int
    minor: int
    patch: int
    early: str = ""
    """What a pre-release is called, such as rc.1; two of one release are two versions."""
    build: str = ""
    """Which build of it this is: Cluster API replaces machines of another one."""


def parse(text: str) -> KubeVersion | None:
    """None where it is no version."""
    found = _VERSION.fullmatch(text)
    if found is None:
        return None
    major, minor, patch, early, build = found.groups()
    return KubeVersion(int(major), int(minor), int(patch), early or "", build or "")


def minors_between(older: str, newer: str) -> int | None:
    """How many minor versions lie between two; negative where the first is the newer one."""
    before, after = parse(older), parse(newer)
    if before is None or after is None or before.major != after.major:
        return None
    return after.minor - before.minor
