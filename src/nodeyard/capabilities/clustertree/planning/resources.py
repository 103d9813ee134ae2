"""Computes the resources that a mirrored node offers from its leaf nodes.

    base         allocatable of all leaf nodes that count (`availability`)
    capacity     base minus the requests of the pods on these nodes and, for pods, minus their number
    allocatable  capacity minus reservePercent of base
    largest      the largest free amount on a single leaf node, with the root's own pods subtracted

No amount is negative. Every resource of any leaf node is listed, even while none of them counts: a node that loses and
regains a resource would look to the root like another node.

Amounts have one canonical text and are compared by value: a node is written when an amount changes, at most once a
second. Pods come and go all the time, and each write costs the root's API server several milliseconds. The time of the
last write is an annotation of the node, so that restarts and takeovers keep the rate limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

import msgspec

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.planning import availability
from nodeyard.capabilities.clustertree.planning.mirror import Mirror
from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.capabilities.clustertree.snapshot import TreeNode, Usage
from nodeyard.capabilities.clustertree.types import Counting, ResourceOptions
from nodeyard.kube import quantity
from nodeyard.kube.quantity import NANO, Notation, Quantity, QuantityError
from nodeyard.kube.resource_list import EPHEMERAL_STORAGE, HUGE_PAGES, MEMORY, PODS, Amounts, add, raise_to, step
from nodeyard.kube.timestamps import format_rfc3339_millis, parse_rfc3339_or_none

_BYTES: Final = (MEMORY, EPHEMERAL_STORAGE)


@dataclass(frozen=True)
class Free:
    """Amounts as canonical texts."""

    capacity: Mapping[str, str] = field(default_factory=dict)
    allocatable: Mapping[str, str] = field(default_factory=dict)
    largest: Mapping[str, str] = field(default_factory=dict)
    """Empty unless enabled."""
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """Leaf nodes that are not counted because of invalid or too many quantities, with the error; by name."""
    unreadable_pods: tuple[str, ...] = ()
    """Pods on counted nodes, as `namespace/name`, with an invalid request; each counts as one pod without requests."""


@dataclass(frozen=True)
class Balance:
    """Use of the amount of a resource, in billionths."""

    base: int
    taken: int
    reserved: int
    free: int


def free(nodes: Iterable[TreeNode], used: Callable[[str], Usage], options: ResourceOptions) -> Free:
    """Linear in the number of leaf nodes, independent of the number of pods."""
    return _total(nodes, used, options).result(options)


def balances(
    nodes: Iterable[TreeNode], used: Callable[[str], Usage], options: ResourceOptions
) -> Mapping[str, Balance]:
    """Return the balance of each resource, by the same rules as `free`."""
    return _total(nodes, used, options).balances(options)


def _total(nodes: Iterable[TreeNode], used: Callable[[str], Usage], options: ResourceOptions) -> _Total:
    total = _Total()
    for node in nodes:
        total.keys |= node.status.allocatable.keys()
        reason = availability.reason(node, options)
        if reason is Reason.UNREADABLE:
            total.unreadable[node.name] = availability.fault(node)
        elif reason is Reason.COUNTED:
            usage = used(node.name)
            if usage.fault:
                total.unreadable[node.name] = usage.fault
            else:
                total.count(availability.allocatable(node), usage, options)
    return total


def changes(shown: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str | None]:
    """Return the merge patch from `shown` to `wanted`: differing amounts, and None for removed ones."""
    changed: dict[str, str | None] = {name: None for name in shown if name not in wanted}
    for name, text in wanted.items():
        if name not in shown or not _is_equal(shown[name], text):
            changed[name] = text
    return changed


def differs(shown: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    return bool(changes(shown, wanted))


def text_of(name: str, amount: int) -> str:
    """Return the canonical text, as the API server stores it; amounts are rounded down to the resource's step."""
    is_bytes = name in _BYTES or name.startswith(HUGE_PAGES)
    whole = amount - amount % step(name)
    return quantity.canonical(str(Quantity(whole, Notation.BINARY if is_bytes else Notation.DECIMAL)))


class _Total:
    """Sums over the leaf nodes of one model."""

    def __init__(self) -> None:
        self.keys: set[str] = set()
        self.base: Amounts = {}
        self.taken: Amounts = {}
        self.largest: Amounts = {}
        self.unreadable: dict[str, str] = {}
        self.unreadable_pods: list[str] = []

    def count(self, has: Mapping[str, int], usage: Usage, options: ResourceOptions) -> None:
        taken = _taken(usage, options.count_pods)
        add(self.base, has)
        add(self.taken, taken)
        self.unreadable_pods += usage.unreadable
        if options.largest_free:
            if usage.from_root_pods:
                add(taken, {**usage.from_root, PODS: usage.from_root_pods * NANO})
            raise_to(self.largest, {name: amount - taken.get(name, 0) for name, amount in has.items()})

    def result(self, options: ResourceOptions) -> Free:
        keys = sorted(self.keys)
        capacity = {name: text_of(name, self._left(name)) for name in keys}
        percent = options.reserve_percent
        return Free(
            capacity=capacity,
            allocatable={name: text_of(name, self._left(name, percent)) for name in keys} if percent else capacity,
            largest={name: text_of(name, max(0, self.largest.get(name, 0))) for name in keys}
            if options.largest_free
            else {},
            unreadable=self.unreadable,
            unreadable_pods=tuple(sorted(self.unreadable_pods)),
        )

    def balances(self, options: ResourceOptions) -> Mapping[str, Balance]:
        percent = options.reserve_percent
        return {
            name: Balance(
                self.base.get(name, 0), self.taken.get(name, 0), self._reserve(name, percent), self._left(name, percent)
            )
            for name in sorted(self.keys)
        }

    def _left(self, name: str, reserve_percent: int = 0) -> int:
        return max(0, self.base.get(name, 0) - self.taken.get(name, 0) - self._reserve(name, reserve_percent))

    def _reserve(self, name: str, percent: int) -> int:
        return -(-self.base.get(name, 0) * percent // 100)


def _taken(usage: Usage, counting: Counting) -> Amounts:
    """Each pod counts as one of resource `pods`, whatever it requests of that resource."""
    if counting is Counting.RUNNING:
        return {**usage.running, PODS: usage.running_pods * NANO}
    return {**usage.scheduled, PODS: usage.scheduled_pods * NANO}


def _is_equal(shown: str, wanted: str) -> bool:
    if shown == wanted:
        return True
    try:
        return quantity.parse(shown) == quantity.parse(wanted)
    except QuantityError:
        return False


MIN_WRITE_INTERVAL: Final = timedelta(seconds=1)
_encode = msgspec.json.Encoder(order="sorted").encode


@dataclass(frozen=True)
class Offer:
    capacity: Mapping[str, str]
    allocatable: Mapping[str, str]
    largest: str = ""
    """The largest free amount of each resource on one leaf node, as JSON; empty unless enabled."""
    written_at: str = ""
    held_until: datetime | None = None
    """Set if the amounts differ from the node's and the rate limit delays the write."""


def offer_of(mirror: Mirror) -> Offer:
    leaf, options = mirror.snapshot.leaf, mirror.snapshot.cluster.tree.resources
    offered = free(mirror.members, leaf.usage, options)
    largest = _encode(offered.largest).decode() if offered.largest else ""
    if mirror.node is None:
        return Offer(offered.capacity, offered.allocatable, largest, format_rfc3339_millis(mirror.now))
    status = mirror.node.status
    present = Offer(
        status.capacity, status.allocatable, mirror.annotation(names.LARGEST_FREE), mirror.annotation(names.WRITTEN_AT)
    )
    capacity = _keep_equal(status.capacity, offered.capacity)
    allocatable = _keep_equal(status.allocatable, offered.allocatable)
    if capacity is status.capacity and allocatable is status.allocatable and largest == present.largest:
        return present
    until = _rate_limited_until(present.written_at, mirror.now)
    if until is not None:
        return replace(present, held_until=until)
    return Offer(capacity, allocatable, largest, format_rfc3339_millis(mirror.now))


def _rate_limited_until(written_at: str, now: datetime) -> datetime | None:
    """Return None if a write is allowed. A timestamp in the future delays nothing: a clock is wrong."""
    last = parse_rfc3339_or_none(written_at)
    return last + MIN_WRITE_INTERVAL if last is not None and last <= now < last + MIN_WRITE_INTERVAL else None


def _keep_equal(shown: dict[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
    """Keep the present text of equal amounts. Return `shown` itself if no amount differs."""
    changed = changes(shown, wanted)
    if not changed:
        return shown
    kept = {name: text for name, text in shown.items() if name not in changed}
    return kept | {name: text for name, text in changed.items() if text is not None}
