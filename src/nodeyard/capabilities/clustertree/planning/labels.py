"""The labels of a mirrored node.

Some every such node has. Beyond these a node that mirrors one leaf node has its labels, without its roles and without
those by which it belongs to a template or a pool of the leaf: the root may have one of the same name. One that mirrors
several has where they are and of which type, as far as all of them agree; and the leaf model's own come last.
What was set beyond the fixed ones is recorded, so that it goes when its reason goes. Labels of anybody else stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.planning.mirror import Mirror
from nodeyard.capabilities.clustertree.snapshot import TreeNode
from nodeyard.kube.names import (
    ARCH,
    HOSTNAME,
    INSTANCE_TYPE,
    LABEL_VALUE_MAX,
    MIRRORED_NODE,
    OS,
    OWNERS_PREFIXES,
    REGION,
    ROLE_PREFIX,
    ZONE,
)

FIXED: Final = frozenset((MIRRORED_NODE, names.ROLE_LABEL, HOSTNAME, ARCH, OS, names.OLD_OS_LABEL))
_NOT_MIRRORED: Final = (ROLE_PREFIX, *OWNERS_PREFIXES)
_PLACE: Final = (ZONE, REGION, INSTANCE_TYPE)
_DIGITS: Final = 8
_ARCH: Final = "amd64"
_OS: Final = "linux"


@dataclass(frozen=True)
class Labels:
    wanted: Mapping[str, str]
    recorded: str
    """The keys beyond the fixed ones."""

    def over(self, present: Mapping[str, str], recorded: str) -> dict[str, str]:
        """The labels of a node that has these, of which we once set the recorded ones."""
        gone = {key for key in recorded.split(",") if key not in self.wanted}
        return {key: value for key, value in present.items() if key not in gone} | dict(self.wanted)


def labels_of(mirror: Mirror) -> Labels:
    given = mirror.placement.model.spec.labels
    wanted = {**_fixed(mirror), **_mirrored(mirror), **given, MIRRORED_NODE: names.TRUE}
    return Labels(wanted, ",".join(sorted(wanted.keys() - FIXED)))


def platform(mirror: Mirror) -> tuple[str, str]:
    """Architecture and operating system, as all leaf nodes have it, or as most of the world does.

    A group that is scaled down to nothing stays what it was: what it will be made of next is most likely the same.
    """
    members = mirror.members
    if not members:
        return mirror.labels.get(ARCH) or _ARCH, mirror.labels.get(OS) or _OS
    arches = {node.metadata.labels.get(ARCH) or node.status.node_info.architecture for node in members}
    systems = {node.metadata.labels.get(OS) or node.status.node_info.operating_system for node in members}
    return _only(arches) or _ARCH, _only(systems) or _OS


def _shared(members: Sequence[TreeNode], key: str) -> str:
    """The value that all of them have; empty where there is none."""
    return _only({node.metadata.labels.get(key, "") for node in members})


def _only(values: set[str]) -> str:
    return values.pop() if len(values) == 1 else ""


def _fixed(mirror: Mirror) -> dict[str, str]:
    arch, system = platform(mirror)
    return {
        names.ROLE_LABEL: names.ROLE,
        HOSTNAME: _hostname(mirror.placement.name),
        ARCH: arch,
        OS: system,
        names.OLD_OS_LABEL: system,
    }


def _hostname(name: str) -> str:
    """A name may be longer than a label's value; two that begin alike are still two hosts."""
    if len(name) <= LABEL_VALUE_MAX:
        return name
    digits = sha256(name.encode()).hexdigest()[:_DIGITS]
    return f"{name[: LABEL_VALUE_MAX - _DIGITS - 1].rstrip('-.')}-{digits}"


def _mirrored(mirror: Mirror) -> dict[str, str]:
    if not mirror.is_single:
        return {key: value for key in _PLACE if (value := _shared(mirror.members, key))}
    return {
        key: value
        for node in mirror.members
        for key, value in node.metadata.labels.items()
        if not key.startswith(_NOT_MIRRORED) and key not in FIXED
    }
