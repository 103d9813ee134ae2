"""Which pools a service fits, and what keeps it from the others.

A pool offers what its nodes will have: its labels, its own id, its taints. A service fits where every label that it
selects is there with that value, and every taint that keeps pods away is tolerated, by Kubernetes' rules. A pool that
would fit but has no nodes, or whose cluster is not there yet, says that: the order of reasons is labels, taints, state,
so that a reason is worth acting on.

Pools are found by their labels and taints together, not one by one: many services meet many pools.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import msgspec

from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.capabilities.pools.types import Placement, PoolTaint
from nodeyard.kube.json import Object
from nodeyard.kube.taints import render, untolerated

Refusal = tuple[Reason, Object]
"""Why a pool is not taken, with what the sentence about it is made of."""


@dataclass(frozen=True)
class Offer:
    """A pool, as services see it."""

    cluster: str
    pool: str
    labels: Mapping[str, str]
    """Those of its nodes, that of the pool itself included."""
    taints: tuple[PoolTaint, ...] = ()
    node_class: str = ""
    replicas: int = 0
    hindrance: Reason | None = None
    """Why nothing can run there now, whatever its labels are."""
    is_leaving: bool = False
    """It is being removed: nothing about it would help."""

    @property
    def facts(self) -> Object:
        return {"cluster": self.cluster, "pool": self.pool}


@dataclass(frozen=True)
class Match:
    """What became of one placement, by the positions of the offers."""

    fitting: tuple[int, ...]
    counts: Mapping[Reason, int]
    """How many pools each reason refused."""


class Market:
    """All offers, found by what they offer."""

    def __init__(self, offers: Sequence[Offer]) -> None:
        self.offers = offers
        self._standing = frozenset(position for position, offer in enumerate(offers) if not offer.is_leaving)
        self._by_label: dict[tuple[str, str], set[int]] = {}
        self._by_key: dict[str, set[int]] = {}
        self._by_taints: dict[tuple[PoolTaint, ...], set[int]] = {}
        self._taints: dict[tuple[PoolTaint, ...], list[Object]] = {}
        self._answers: dict[object, Match] = {}
        for position, offer in enumerate(offers):
            for label in offer.labels.items():
                self._by_label.setdefault(label, set()).add(position)
                self._by_key.setdefault(label[0], set()).add(position)
            self._by_taints.setdefault(offer.taints, set()).add(position)
        for taints in self._by_taints:
            self._taints[taints] = [msgspec.to_builtins(taint) for taint in taints]

    def match(self, placement: Placement) -> Match:
        """Asked by many services with few placements, so an answer is kept."""
        question = (tuple(sorted(placement.node_selector.items())), placement.tolerations)
        answer = self._answers.get(question)
        if answer is None:
            answer = self._answers[question] = self._match(placement)
        return answer

    def _match(self, placement: Placement) -> Match:
        left = self._selected(placement)
        counts: Counter[Reason] = Counter()
        tolerations = _wire(placement)
        fitting: list[int] = []
        for taints, having in self._by_taints.items():
            concerned = left & having
            if concerned and next(untolerated(self._taints[taints], tolerations), None) is None:
                fitting.extend(concerned)
        counts[Reason.TAINT_NOT_TOLERATED] = len(left) - len(fitting)
        counts[Reason.POOL_DRAINING] = len(self.offers) - len(self._standing)
        counts.update(self._label_counts(placement))
        for position in fitting:
            if hindrance := self.offers[position].hindrance:
                counts[hindrance] += 1
        free = sorted(position for position in fitting if self.offers[position].hindrance is None)
        return Match(tuple(free), {reason: count for reason, count in sorted(counts.items()) if count})

    def _selected(self, placement: Placement) -> frozenset[int]:
        left = self._standing
        for label in placement.node_selector.items():
            left = left & self._by_label.get(label, set())
        return left

    def _label_counts(self, placement: Placement) -> Counter[Reason]:
        """How many pools lack a label, and how many have it with another value, by the first that does not agree."""
        counts: Counter[Reason] = Counter()
        left = self._standing
        for key, value in sorted(placement.node_selector.items()):
            agreeing = left & self._by_label.get((key, value), set())
            having = len((left - agreeing) & self._by_key.get(key, set()))
            counts[Reason.LABEL_DIFFERS] += having
            counts[Reason.LABEL_MISSING] += len(left) - len(agreeing) - having
            left = agreeing
        return counts

    def refusals(self, placement: Placement, most: int | None = None) -> Iterator[tuple[Offer, Refusal]]:
        """The pools that do not fit, in their order, each with the first reason; all, or the first so many."""
        fitting = frozenset(self.match(placement).fitting)
        tolerations = _wire(placement)
        refused = (position for position in range(len(self.offers)) if position not in fitting)
        for position in islice(refused, most):
            offer = self.offers[position]
            refusal = refuse(offer, placement, self._taints[offer.taints], tolerations)
            if refusal is not None:
                yield offer, refusal


def refuse(offer: Offer, placement: Placement, taints: Sequence[Object], tolerations: list[Object]) -> Refusal | None:
    """The first reason for which the pool is not taken; None where it is."""
    if offer.is_leaving:
        return Reason.POOL_DRAINING, offer.facts
    for key, wanted in sorted(placement.node_selector.items()):
        value = offer.labels.get(key)
        if value is None:
            return Reason.LABEL_MISSING, {**offer.facts, "key": key, "wanted": wanted}
        if value != wanted:
            return Reason.LABEL_DIFFERS, {**offer.facts, "key": key, "value": value, "wanted": wanted}
    for taint in untolerated(taints, tolerations):
        return Reason.TAINT_NOT_TOLERATED, {**offer.facts, "taint": render(taint)}
    return None if offer.hindrance is None else (offer.hindrance, offer.facts)


def _wire(placement: Placement) -> list[Object]:
    return [msgspec.to_builtins(each) for each in placement.tolerations]
