"""The Lease annotation that describes a running operator: version, limit, observe-only mode and held plans.

The operator renews the Lease anyway, so the annotation needs no further rights and is as fresh as the Lease. `nodeyard
plan`, `why` and `status` read it. It contains names, numbers and plan ids, never contents of objects.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from nodeyard.plan.brake import Limit, describe_disrupted, disrupted_nodes
from nodeyard.plan.model import Plan
from nodeyard.process.version import VERSION

HELD_MAX: Final = 20
"""Held plans in the list; more are only counted. Keeps the annotation below 16 KiB."""
TEXT_MAX: Final = 300

_encode = msgspec.json.Encoder(order="deterministic").encode


class HeldPlan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A plan that waits for `nodeyard approve`."""

    id: str
    key: str
    nodes: int = 0
    """Disrupted nodes; an object without a node counts as one."""
    actions: int = 0
    disrupts: str = ""
    """The same as text: `3 nodes`, `1 Namespace`."""


class Publication(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    version: str = ""
    limit: str = ""
    """The limit in the syntax of `--max-disruption`."""
    observe: str = ""
    """The reason of observe-only mode: `--observe`, or the name of the replaced operator. Empty: the operator
    writes."""
    held: tuple[HeldPlan, ...] = ()
    held_count: int = 0
    """Number of all held plans, including those not listed."""

    def encode(self) -> str:
        return _encode(self).decode()


def publish(limit: Limit, observe: str, held: Iterable[Plan]) -> Publication:
    """Describe this process. The largest held plans are listed first."""
    plans = [
        HeldPlan(
            id=plan.id[:TEXT_MAX],
            key=plan.key[:TEXT_MAX],
            nodes=max(len(disrupted_nodes(plan.actions)), max((each.group_nodes for each in plan.actions), default=0)),
            actions=len(plan.actions),
            disrupts=describe_disrupted(plan.actions),
        )
        for plan in held
    ]
    plans.sort(key=lambda each: (-each.nodes, each.key, each.id))
    return Publication(
        version=VERSION,
        limit=limit.option,
        observe=observe[:TEXT_MAX],
        held=tuple(plans[:HELD_MAX]),
        held_count=len(plans),
    )


def parse(text: str) -> Publication:
    """Parse the annotation; text of another version or garbage gives an empty Publication."""
    try:
        return msgspec.json.decode(text, type=Publication)
    except msgspec.MsgspecError:
        return Publication()
