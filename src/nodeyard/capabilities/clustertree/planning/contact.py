"""What may be said about the nodes of a leaf, given how the contact to it stands.

BY_LEAF   it answers: they are as the leaf says
KEPT      it may have gone, or answers without letting us look: they stay as they were said to be
LOST      it has not answered for long enough: nobody knows how they are
"""

from __future__ import annotations

from enum import Enum

from nodeyard.capabilities.clustertree.liveness import State
from nodeyard.capabilities.clustertree.snapshot import Leaf


class Contact(Enum):
    BY_LEAF = "by leaf"
    KEPT = "kept"
    LOST = "lost"


def contact(leaf: Leaf) -> Contact:
    finding = leaf.finding
    if finding is None:
        return Contact.BY_LEAF if leaf.is_connected and leaf.is_synced else Contact.KEPT
    if finding.state is State.UNREACHABLE:
        return Contact.LOST
    return Contact.BY_LEAF if finding.state is State.ALIVE and leaf.is_synced else Contact.KEPT
