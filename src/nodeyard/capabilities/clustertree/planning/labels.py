"""The labels of a mirrored node.

Every mirror has the fixed labels. A mirror of one leaf node also has that node's labels, as far as `mirror_policy` lets
them cross. A mirror of several has their zone, region and instance type if all agree. The leaf model's labels override
these. Labels in addition to the fixed ones are recorded, so that they can be removed later. Labels of others stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.planning.mirror import Mirror
from nodeyard.capabilities.clustertree.planning.mirror_policy import may_cross_label
from nodeyard.capabilities.clustertree.snapshot import TreeNode
from nodeyard.kube.names import (
    ARCH,
    HOSTNAME,
    INSTANCE_TYPE,
    LABEL_VALUE_MAX,
    MIRRORED_NODE,
    OS,
    REGION,
    ZONE,
)

FIXED: Final = frozenset((MIRRORED_NODE, names.ROLE_LABEL, HOSTNAME, ARCH, OS, names.OLD_OS_LABEL))
_PLACE: Final = (ZONE, REGION, INSTANCE_TYPE)
_DIGITS: Final = 8
_ARCH: Final = "amd64"
_OS: Final = "linux"


@dataclass(frozen=True)
class Labels:
    wanted: Mapping[str, str]
    recorded: str
    """Keys in addition to the fixed ones."""

    def over(self, present: Mapping[str, str], recorded: str) -> dict[str, str]:
        """Merge into present labels, without the recorded ones that are no longer wanted."""
        gone = {key for key in recorded.split(",") if key not in self.wanted}
        return {key: value for key, value in present.items() if key not in gone} | dict(self.wanted)


def labels_of(mirror: Mirror) -> Labels:
    given = mirror.placement.model.spec.labels
    wanted = {**_fixed(mirror), **_mirrored(mirror), **given, MIRRORED_NODE: names.TRUE}
    return Labels(wanted, ",".join(sorted(wanted.keys() - FIXED)))


def platform(mirror: Mirror) -> tuple[str, str]:
    """Return architecture and operating system if all leaf nodes agree, otherwise amd64 and linux.

    An empty group keeps its present values: its next nodes will most likely be the same.
    """
    members = mirror.members
    if not members:
        return mirror.labels.get(ARCH) or _ARCH, mirror.labels.get(OS) or _OS
    arches = {node.metadata.labels.get(ARCH) or node.status.node_info.architecture for node in members}
    systems = {node.metadata.labels.get(OS) or node.status.node_info.operating_system for node in members}
    return _single(arches) or _ARCH, _single(systems) or _OS


def _common_value(members: Sequence[TreeNode], key: str) -> str:
    """Return the value that all have; empty if they differ."""
    return _single({node.metadata.labels.get(key, "") for node in members})


def _single(values: set[str]) -> str:
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
    """A name may exceed the length of a label value; a hash keeps shortened names distinct."""
    if len(name) <= LABEL_VALUE_MAX:
        return name
    digits = sha256(name.encode()).hexdigest()[:_DIGITS]
    return f"{name[: LABEL_VALUE_MAX - _DIGITS - 1].rstrip('-.')}-{digits}"


def _mirrored(mirror: Mirror) -> dict[str, str]:
    if not mirror.is_single:
        return {key: value for key in _PLACE if (value := _common_value(mirror.members, key))}
    return {
        key: value
        for node in mirror.members
        for key, value in node.metadata.labels.items()
        if key not in FIXED and may_cross_label(key)
    }
