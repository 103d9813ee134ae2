"""Versions: what is pinned, and what else will do.

The pins stand here and in the `go.mod` files under `go/`; a test keeps them equal. A binary that
somebody else built is used only when its version fits, and the reason it does not is a sentence that can be shown.
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
        """Major and minor: what decides whether two parts of Kubernetes understand each other."""
        return self.major, self.minor


def parse(text: str) -> Version | None:
    """The first version that a text such as the output of `--version` names."""
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
    """The Kubernetes release in use: the pinned one, or what K8S_VERSION asks for."""
    wanted = os.environ.get("K8S_VERSION") or KUBERNETES
    version = parse(wanted)
    if version is None or re.fullmatch(r"v?\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?", wanted) is None:
        raise ValueError(f"K8S_VERSION={wanted}: not a full version such as {KUBERNETES}")
    return str(version)


def misfit(binary: str, found: Version) -> str | None:
    """Why a binary of this version does not serve; None when it does."""
    if "dispatcher" in found.suffix:
        return f"{found} only dispatches to other versions"
    if binary == "etcd":
        oldest = "v{}.{}".format(*OLDEST_ETCD)
        return None if found.release >= OLDEST_ETCD else f"{found} is older than {oldest}"
    if binary == "go":
        oldest = "{}.{}".format(*OLDEST_GO)
        return None if found.release >= OLDEST_GO else f"{found} is older than {oldest}"
    if binary == "kubectl":
        return _not_next_to(found, pinned(kubernetes()))
    if binary.startswith("kube-"):
        return _not_of(found, pinned(kubernetes()))
    if binary == "helm":
        wanted = pinned(HELM)
        return None if found.major == wanted.major else f"{found} is not v{wanted.major}"
    return _not_of(found, pinned({"kwok": KWOK, "cluster-api-core": CLUSTER_API}[binary]))


def _not_of(found: Version, wanted: Version) -> str | None:
    return None if found.release == wanted.release else f"{found} is not v{wanted.major}.{wanted.minor}"


def _not_next_to(found: Version, wanted: Version) -> str | None:
    if found.major == wanted.major and abs(found.minor - wanted.minor) <= 1:
        return None
    return f"{found} is more than one minor release from v{wanted.major}.{wanted.minor}"
