"""Index of pools by labels and taints, which matches services with pools.

A pool matches if it has every label of the nodeSelector and every NoSchedule or NoExecute taint is tolerated, by the
rules of Kubernetes. Reasons are checked in the order labels, taints, state: a pool is reported as empty or not ready
only if it would match otherwise, so that the reason is worth acting on.

Many services meet many pools, hence the index.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

import msgspec

from nodeyard.capabilities.pools.messages.placement import (
    ClusterNotReady,
    LabelDiffers,
    LabelMissing,
    Offer,
    PoolDraining,
    PoolEmpty,
    TaintNotTolerated,
)
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.capabilities.pools.types import Placement, PoolTaint
from nodeyard.kube.json import Object
from nodeyard.kube.taints import render, untolerated

_UNAVAILABLE: Final[Mapping[Reason, type[Offer]]] = {
    Reason.POOL_EMPTY: PoolEmpty,
    Reason.CLUSTER_NOT_READY: ClusterNotReady,
}


@dataclass(frozen=True)
class PoolOffer:
    """The properties of a pool that services select by."""

    cluster: str
    pool: str
    labels: Mapping[str, str]
    """Labels of its nodes, including lattice.dev/pool."""
    taints: tuple[PoolTaint, ...] = ()
    node_class: str = ""
    replicas: int = 0
    unavailable_reason: Reason | None = None
    """Reason why nothing can run there now, independent of labels and taints."""
    is_removed: bool = False
    """True if the pool is being removed: it never matches."""

    def __str__(self) -> str:
        return f"{self.cluster}/{self.pool}"


@dataclass(frozen=True)
class Match:
    """Result of one placement; offers are given by position."""

    fitting: tuple[int, ...]
    counts: Mapping[Reason, int]
    """The number of pools that each reason excludes."""


class PoolIndex:
    """Index of all pools by label and taints."""

    def __init__(self, offers: Sequence[PoolOffer]) -> None:
        self.offers = offers
        self._candidates = frozenset(position for position, offer in enumerate(offers) if not offer.is_removed)
        self._by_label: dict[tuple[str, str], set[int]] = {}
        self._by_key: dict[str, set[int]] = {}
        self._by_taints: dict[tuple[PoolTaint, ...], set[int]] = {}
        self._taints: dict[tuple[PoolTaint, ...], list[Object]] = {}
        self._matches: dict[object, Match] = {}
        for position, offer in enumerate(offers):
            for label in offer.labels.items():
                self._by_label.setdefault(label, set()).add(position)
                self._by_key.setdefault(label[0], set()).add(position)
            self._by_taints.setdefault(offer.taints, set()).add(position)
        for taints in self._by_taints:
            self._taints[taints] = [msgspec.to_builtins(taint) for taint in taints]

    def match(self, placement: Placement) -> Match:
        """Match a placement; results are cached, because many services share few placements."""
        key = (tuple(sorted(placement.node_selector.items())), placement.tolerations)
        found = self._matches.get(key)
        if found is None:
            found = self._matches[key] = self._match(placement)
        return found

    def _match(self, placement: Placement) -> Match:
        left = self._selected(placement)
        counts: Counter[Reason] = Counter()
        tolerations = _toleration_objects(placement)
        fitting: list[int] = []
        for taints, having in self._by_taints.items():
            concerned = left & having
            if concerned and next(untolerated(self._taints[taints], tolerations), None) is None:
                fitting.extend(concerned)
        counts[Reason.TAINT_NOT_TOLERATED] = len(left) - len(fitting)
        counts[Reason.POOL_DRAINING] = len(self.offers) - len(self._candidates)
        counts.update(self._label_counts(placement))
        for position in fitting:
            if unavailable_reason := self.offers[position].unavailable_reason:
                counts[unavailable_reason] += 1
        free = sorted(position for position in fitting if self.offers[position].unavailable_reason is None)
        return Match(tuple(free), {reason: count for reason, count in sorted(counts.items()) if count})

    def _selected(self, placement: Placement) -> frozenset[int]:
        left = self._candidates
        for label in placement.node_selector.items():
            left = left & self._by_label.get(label, set())
        return left

    def _label_counts(self, placement: Placement) -> Counter[Reason]:
        """Count pools by the first label that does not match: missing, or with a different value."""
        counts: Counter[Reason] = Counter()
        left = self._candidates
        for key, value in sorted(placement.node_selector.items()):
            agreeing = left & self._by_label.get((key, value), set())
            having = len((left - agreeing) & self._by_key.get(key, set()))
            counts[Reason.LABEL_DIFFERS] += having
            counts[Reason.LABEL_MISSING] += len(left) - len(agreeing) - having
            left = agreeing
        return counts

    def refusals(self, placement: Placement, most: int | None = None) -> Iterator[tuple[PoolOffer, Offer]]:
        """Yield the pools that do not match in order, each with its first reason; at most `most`."""
        fitting = frozenset(self.match(placement).fitting)
        tolerations = _toleration_objects(placement)
        refused = (position for position in range(len(self.offers)) if position not in fitting)
        for position in islice(refused, most):
            offer = self.offers[position]
            refusal = refuse(offer, placement, self._taints[offer.taints], tolerations)
            if refusal is not None:
                yield offer, refusal


def refuse(offer: PoolOffer, placement: Placement, taints: Sequence[Object], tolerations: list[Object]) -> Offer | None:
    """Return the first reason why the pool does not match; None if it matches."""
    cluster, pool = offer.cluster, offer.pool
    if offer.is_removed:
        return PoolDraining(cluster=cluster, pool=pool)
    for key, wanted in sorted(placement.node_selector.items()):
        value = offer.labels.get(key)
        if value is None:
            return LabelMissing(cluster=cluster, pool=pool, key=key)
        if value != wanted:
            return LabelDiffers(cluster=cluster, pool=pool, key=key, value=value, wanted=wanted)
    for taint in untolerated(taints, tolerations):
        return TaintNotTolerated(cluster=cluster, pool=pool, taint=render(taint))
    if offer.unavailable_reason is None:
        return None
    return _UNAVAILABLE[offer.unavailable_reason](cluster=cluster, pool=pool)


def _toleration_objects(placement: Placement) -> list[Object]:
    return [msgspec.to_builtins(each) for each in placement.tolerations]
