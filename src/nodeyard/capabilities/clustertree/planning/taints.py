"""The taints of a mirrored node: the one that keeps pods off that do not ask for it, the model's, and the leaf node's.

Taints of `node.kubernetes.io` are the root's own business: it derives them from the conditions and the cordon that are
mirrored. Ours beyond the fixed one are recorded, by key and effect, and go when their reason goes; all others stay.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import msgspec

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.planning.mirror import Mirror
from nodeyard.kube.names import MIRRORED_NODE
from nodeyard.kube.objects import Taint
from nodeyard.kube.taints import NO_SCHEDULE

FIXED: Final = Taint(key=MIRRORED_NODE, value=names.TRUE, effect=NO_SCHEDULE)
_ROOTS_OWN: Final = "node.kubernetes.io/"


@dataclass(frozen=True)
class Taints:
    wanted: tuple[Taint, ...]
    recorded: str
    """Those beyond the fixed one."""

    def over(self, present: tuple[Taint, ...], recorded: str) -> tuple[Taint, ...]:
        """The taints of a node that has these, of which we once set the recorded ones; the same where nothing moves."""
        wanted = {title(each): each for each in self.wanted}
        ours = set(recorded.split(","))
        left = [
            _valued(each, wanted.pop(title(each), None))
            for each in present
            if title(each) in wanted or title(each) not in ours
        ]
        result = (*left, *wanted.values())
        return present if result == present else result


def taints_of(mirror: Mirror) -> Taints:
    wanted: dict[str, Taint] = {}
    for taint in (FIXED, *mirror.placement.model.spec.taints, *_mirrored(mirror)):
        wanted.setdefault(title(taint), taint)
    recorded = ",".join(sorted(wanted.keys() - {title(FIXED)}))
    return Taints(tuple(wanted.values()), recorded)


def title(taint: Taint) -> str:
    """What it is known by: two of one node differ in it."""
    return f"{taint.key}:{taint.effect}"


def _mirrored(mirror: Mirror) -> Iterable[Taint]:
    if not mirror.is_single:
        return ()
    return (taint for node in mirror.members for taint in node.spec.taints if not taint.key.startswith(_ROOTS_OWN))


def _valued(present: Taint, wanted: Taint | None) -> Taint:
    """With the value that it should have; since when it is there stays."""
    if wanted is None or present.value == wanted.value:
        return present
    return msgspec.structs.replace(present, value=wanted.value)
