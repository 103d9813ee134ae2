"""Every message class of a capability, and samples of them."""

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import msgspec

from nodeyard.plan.message import Message
from nodeyard.plan.model import Decision

SAMPLES: dict[type, Any] = {str: "x", int: 2, bool: True, float: 1.5}


def message_classes(module: ModuleType) -> dict[str, type[Message]]:
    """Return the message classes that a module defines, by reason. A reason has one class."""
    found: dict[str, type[Message]] = {}
    for each in _subclasses(Message):
        if each.__module__.startswith(module.__name__) and isinstance(each.__dict__.get("reason"), str):
            assert each.reason not in found, f"{each.reason} has two classes"
            found[each.reason] = each
    return found


def sample(kind: type[Message], **facts: Any) -> Message:
    """Build a message from the facts that it has, with sample values for required ones."""
    fields = msgspec.structs.fields(kind)
    given = {each.name: facts[each.name] for each in fields if each.name in facts}
    return kind(**{each.name: SAMPLES.get(each.type, ()) for each in fields if each.required} | given)


def _subclasses(of: type[Message]) -> Iterator[type[Message]]:
    for each in of.__subclasses__():
        yield each
        yield from _subclasses(each)


def remedies(decision: Decision) -> tuple[str, ...]:
    """Return the reasons of what would change a decision."""
    return tuple(each.reason for each in decision.would_change)
