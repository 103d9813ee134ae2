"""Paths of the Kubernetes API: the resource, namespace and name that a GET reads."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from nodeyard.bundle.model import GVR

_PATH: Final = re.compile(
    r"/(?:api/(?P<core>[^/]+)|apis/(?P<group>[^/]+)/(?P<version>[^/]+))"
    r"(?:/namespaces/(?P<namespace>[^/]+))?/(?P<resource>[^/]+)(?:/(?P<name>[^/]+))?"
)


class ReadPath(NamedTuple):
    gvr: GVR
    namespace: str
    name: str
    """Empty for a list."""

    def __str__(self) -> str:
        what = f"{self.gvr.resource}.{self.gvr.group}".rstrip(".")
        named = f"{what}/{self.name}" if self.name else what
        return f"{named} in namespace {self.namespace}" if self.namespace else named


def parse_path(path: str) -> ReadPath | None:
    """Return what a path reads; None for discovery and other paths that are no objects."""
    match = _PATH.fullmatch(path)
    if match is None:
        return None
    gvr = GVR(match["group"] or "", match["core"] or match["version"], match["resource"])
    return ReadPath(gvr, match["namespace"] or "", match["name"] or "")
