"""Pinned versions, and which other versions of a binary fit.

The pins are also in the `go.mod` files under `go/`; a test compares them.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field

KUBERNETES = "v1.36.4"
ETCD = "v3.6.16"
CLUSTER_API = "v1.14.2"
KWOK = "v0.8.0"
HELM = "v4.3.1"

OLDEST_ETCD = (3, 5)
OLDEST_GO = (1, 26)

_VERSION = re.compile(r"\b(?:v|go)?(\d+)\.(\d+)(?:\.(\d+))?([-+][0-9A-Za-z.+-]+)?")


@dataclass(frozen=True, order=True)
class Version:
    major: int
    minor: int
    patch: int = 0
    suffix: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"v{self.major}.{self.minor}.{self.patch}{self.suffix}"

    @property
    def release(self) -> tuple[int, int]:
        """Return major and minor, which decide on compatibility."""
        return self.major, self.minor


def parse(text: str) -> Version | None:
    """Return the first version in a text such as the output of `--version`."""
    found = _VERSION.search(text)
    if found is None:
        return None
    major, minor, patch, suffix = found.groups()
    return Version(int(major), int(minor), int(patch or 0), suffix or "")


def pinned(text: str) -> Version:
    version = parse(text)
    if version is None:
        raise ValueError(f"{text!r} is not a version such as {KUBERNETES}")
    return version


def kubernetes() -> str:
    """Return the Kubernetes release: K8S_VERSION, else the pinned one."""
    wanted = os.environ.get("K8S_VERSION") or KUBERNETES
    version = parse(wanted)
    if version is None or re.fullmatch(r"v?\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?", wanted) is None:
        raise ValueError(f"K8S_VERSION={wanted}: not a full version such as {KUBERNETES}")
    return str(version)


def misfit(binary: str, found: Version) -> str | None:
    """Return why a binary of this version does not fit; None if it does."""
    if "dispatcher" in found.suffix:
        return f"{found} only dispatches to other versions"
    if binary == "etcd":
        oldest = "v{}.{}".format(*OLDEST_ETCD)
        return None if found.release >= OLDEST_ETCD else f"{found} is older than {oldest}"
    if binary == "go":
        oldest = "{}.{}".format(*OLDEST_GO)
        return None if found.release >= OLDEST_GO else f"{found} is older than {oldest}"
    if binary == "kubectl":
        return _minor_mismatch(found, pinned(kubernetes()))
    if binary.startswith("kube-"):
        return _release_mismatch(found, pinned(kubernetes()))
    if binary == "helm":
        wanted = pinned(HELM)
        return None if found.major == wanted.major else f"{found} is not v{wanted.major}"
    return _release_mismatch(found, pinned({"kwok": KWOK, "cluster-api-core": CLUSTER_API}[binary]))


def _release_mismatch(found: Version, wanted: Version) -> str | None:
    return None if found.release == wanted.release else f"{found} is not v{wanted.major}.{wanted.minor}"


def _minor_mismatch(found: Version, wanted: Version) -> str | None:
    if found.major == wanted.major and abs(found.minor - wanted.minor) <= 1:
        return None
    return f"{found} is more than one minor release from v{wanted.major}.{wanted.minor}"
