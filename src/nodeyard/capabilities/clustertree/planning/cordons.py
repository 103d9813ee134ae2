"""The cordon of a leaf node that is mirrored by itself. One that a person set in the root is never undone."""

from __future__ import annotations

from typing import NamedTuple

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.planning.mirror import Mirror


class Cordon(NamedTuple):
    is_cordoned: bool
    by: str
    """Recorded on the node: who cordoned it, where that was us."""


def cordon_of(mirror: Mirror) -> Cordon:
    is_cordoned, by = mirror.present.spec.unschedulable, mirror.said(names.CORDONED_BY)
    if mirror.is_single and any(node.spec.unschedulable for node in mirror.members):
        # Closed already, and not by us: it stays closed whatever the leaf does next.
        return Cordon(True, by) if is_cordoned else Cordon(True, names.LEAF_CORDON)
    return Cordon(is_cordoned and by != names.LEAF_CORDON, "")
