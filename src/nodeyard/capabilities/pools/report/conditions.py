"""Conditions of LatticeClusters, LatticeNodeClasses and LatticeServices, made from messages."""

from __future__ import annotations

from nodeyard.kube.conditions import FALSE, TRUE
from nodeyard.kube.objects import Condition
from nodeyard.plan.message import Message

READY = "Ready"


def condition(type: str, is_true: bool, message: Message, generation: int = 0) -> Condition:
    """Return a condition with the reason and the text of a message."""
    return Condition(
        type=type,
        status=TRUE if is_true else FALSE,
        reason=str(message.reason),
        message=message.text(),
        observed_generation=generation,
    )
