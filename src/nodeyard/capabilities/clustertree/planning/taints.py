"""The taints and the cordon of a mirrored node.

A mirror has the fixed taint, which keeps off pods that do not tolerate it, the model's taints, and those of its single
leaf node that `mirror_policy` lets cross. Taints in addition to the fixed one are recorded by key and effect, and are
removed when no longer wanted. Taints of others stay. The cordon is that of the single leaf node, or replaces a taint
that crosses as a cordon. A cordon that a person set in the root is never removed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.planning.mirror import Mirror
from nodeyard.capabilities.clustertree.planning.mirror_policy import is_cordon, may_cross_taint
from nodeyard.capabilities.clustertree.snapshot import TreeNode
from nodeyard.kube.names import MIRRORED_NODE
from nodeyard.kube.objects import Taint
from nodeyard.kube.taints import NO_SCHEDULE

FIXED: Final = Taint(key=MIRRORED_NODE, value=names.TRUE, effect=NO_SCHEDULE)


@dataclass(frozen=True)
class Taints:
    wanted: tuple[Taint, ...]
    recorded: str
    """Taints in addition to the fixed one."""

    def over(self, present: tuple[Taint, ...], recorded: str) -> tuple[Taint, ...]:
        """Merge into present taints, without recorded ones that are no longer wanted. Return `present` itself if
        nothing changes."""
        wanted = {title(each): each for each in self.wanted}
        own = set(recorded.split(","))
        left = [
            _with_value(each, wanted.pop(title(each), None))
            for each in present
            if title(each) in wanted or title(each) not in own
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
    """Return key and effect, which identify a taint of a node."""
    return f"{taint.key}:{taint.effect}"


def _mirrored(mirror: Mirror) -> Iterable[Taint]:
    if not mirror.is_single:
        return ()
    return (taint for node in mirror.members for taint in node.spec.taints if may_cross_taint(taint))


def _with_value(present: Taint, wanted: Taint | None) -> Taint:
    """Set the wanted value and keep timeAdded."""
    if wanted is None or present.value == wanted.value:
        return present
    return msgspec.structs.replace(present, value=wanted.value)


class Cordon(NamedTuple):
    is_cordoned: bool
    by: str
    """Value of the node's annotation: `leaf` if Nodeyard cordoned it, otherwise empty."""


def cordon_of(mirror: Mirror) -> Cordon:
    is_cordoned, by = mirror.present.spec.unschedulable, mirror.annotation(names.CORDONED_BY)
    if mirror.is_single and any(map(_is_closed, mirror.members)):
        # A person cordoned it before: it stays cordoned whatever the leaf does next.
        return Cordon(True, by) if is_cordoned else Cordon(True, names.LEAF_CORDON)
    return Cordon(is_cordoned and by != names.LEAF_CORDON, "")


def _is_closed(node: TreeNode) -> bool:
    return node.spec.unschedulable or any(map(is_cordon, node.spec.taints))
