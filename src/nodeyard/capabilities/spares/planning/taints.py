"""Taints as the plan handles them: known by key and effect, written as kubectl writes them."""

from __future__ import annotations

from nodeyard.capabilities.spares.names import SPARE_TAINT
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Node, Taint

Taints = tuple[Taint, ...]
Identity = tuple[str, str]


def identity(taint: Taint) -> Identity:
    return taint.key, taint.effect


def title(taint: Taint) -> str:
    """Its identity in one word, for a path: `key:Effect`."""
    return f"{taint.key}:{taint.effect}"


def render(taint: Taint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else title(taint)


def parse(text: str) -> Taint:
    rest, _, effect = text.rpartition(":")
    key, _, value = rest.partition("=")
    return Taint(key=key, value=value, effect=effect)


def find(taints: Taints, wanted: Identity) -> Taint | None:
    return next((taint for taint in taints if (taint.key, taint.effect) == wanted), None)


def put(taints: Taints, taint: Taint) -> Taints:
    """With this one in the place of its namesake, or at the end."""
    same = identity(taint)
    if any(identity(each) == same for each in taints):
        return tuple(taint if identity(each) == same else each for each in taints)
    return (*taints, taint)


def without(taints: Taints, gone: Identity) -> Taints:
    return tuple(taint for taint in taints if identity(taint) != gone)


def spare_taints(node: Node) -> Taints:
    """By the key alone, as for nyallocator: value and effect are the kubelet's choice, and there may be several."""
    return tuple(taint for taint in node.spec.taints if taint.key == SPARE_TAINT)


def to_wire(taint: Taint) -> Object:
    wire: Object = {"key": taint.key, "effect": taint.effect}
    if taint.value:
        wire["value"] = taint.value
    if taint.time_added is not None:
        wire["timeAdded"] = taint.time_added.isoformat(timespec="seconds").replace("+00:00", "Z")
    return wire
