"""Messages of the matching of LatticeServices with pools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nodeyard.capabilities.pools.messages.base import PoolMessage
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.plan.layout import counted
from nodeyard.plan.message import Message

_REJECTED: Final[Mapping[str, tuple[str, str]]] = {
    Reason.LABEL_MISSING: ("lacks a label", "lack a label"),
    Reason.LABEL_DIFFERS: ("has a different label value", "have a different label value"),
    Reason.TAINT_NOT_TOLERATED: ("has an untolerated taint", "have an untolerated taint"),
    Reason.POOL_EMPTY: ("has no nodes", "have no nodes"),
    Reason.POOL_DRAINING: ("is being drained", "are being drained"),
    Reason.CLUSTER_NOT_READY: ("is in a cluster that is not ready", "are in clusters that are not ready"),
}
"""Texts of the reasons that exclude one pool, and several."""


class Placed(Message, frozen=True):
    reason = Reason.PLACED
    fitting: int
    """The number of matching pools."""
    pools: tuple[str, ...]
    """The first of them, as cluster/pool."""

    def text(self) -> str:
        left = self.fitting - len(self.pools)
        more = f" and {left} more" if left > 0 else ""
        verb = "matches" if self.fitting == 1 else "match"
        return f"{counted(self.fitting, 'pool')} {verb}: {', '.join(self.pools)}{more}"


class NoPoolFits(Message, frozen=True):
    reason = Reason.UNPLACED
    refused: Mapping[str, int]
    """The number of pools that each reason excludes."""

    def text(self) -> str:
        rejected = [f"{number} {_REJECTED[reason][number != 1]}" for reason, number in self.refused.items()]
        return f"No pool matches: {', '.join(rejected) or 'no LatticeCluster has a pool'}"


class Offer(PoolMessage, frozen=True):
    """Base of messages about one pool that was considered."""

    cluster: str


class Fits(Offer, frozen=True):
    reason = Reason.FITS

    def text(self) -> str:
        return f"Pool {self.pool} of {self.cluster} matches"


class LabelMissing(Offer, frozen=True):
    reason = Reason.LABEL_MISSING
    key: str

    def text(self) -> str:
        return f"Pool {self.pool} of {self.cluster} does not have label {self.key}"


class LabelDiffers(Offer, frozen=True):
    reason = Reason.LABEL_DIFFERS
    key: str
    value: str
    wanted: str

    def text(self) -> str:
        return f"Pool {self.pool} of {self.cluster} has label {self.key}={self.value}, not {self.wanted}"


class TaintNotTolerated(Offer, frozen=True):
    reason = Reason.TAINT_NOT_TOLERATED
    taint: str

    def text(self) -> str:
        return f"Pool {self.pool} of {self.cluster} has taint {self.taint}, which is not tolerated"


class PoolEmpty(Offer, frozen=True):
    reason = Reason.POOL_EMPTY

    def text(self) -> str:
        return f"Pool {self.pool} of {self.cluster} has no nodes"


class PoolDraining(Offer, frozen=True):
    reason = Reason.POOL_DRAINING

    def text(self) -> str:
        return f"Pool {self.pool} of {self.cluster} is being drained"


class ClusterNotReady(Offer, frozen=True):
    reason = Reason.CLUSTER_NOT_READY

    def text(self) -> str:
        return f"LatticeCluster {self.cluster} is not ready"
