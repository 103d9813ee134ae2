"""Builders of plans, actions and decisions with minimal contents."""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

import msgspec

from nodeyard.plan.explain import CANDIDATES, Answer, render_answers
from nodeyard.plan.message import Message
from nodeyard.plan.model import (
    Action,
    Blocked,
    Candidate,
    Decision,
    Disruption,
    FieldChange,
    ObjectRef,
    Plan,
    Planned,
    Verb,
    Write,
)
from nodeyard.plan.style import PLAIN, Style


def node_ref(name: str, uid: str = "") -> ObjectRef:
    return ObjectRef(api_version="v1", kind="Node", name=name, uid=uid)


def pod_ref(name: str, namespace: str = "default", uid: str = "") -> ObjectRef:
    return ObjectRef(api_version="v1", kind="Pod", name=name, namespace=namespace, uid=uid)


def config_ref(name: str, namespace: str = "default", uid: str = "") -> ObjectRef:
    return ObjectRef(api_version="v1", kind="ConfigMap", name=name, namespace=namespace, uid=uid)


def change(path: str, from_: Any = None, to: Any = None) -> FieldChange:
    return FieldChange(path=path, from_=from_, to=to)


class SampleMessage(Message, frozen=True):
    """A message of any reason with any facts."""

    sentence: ClassVar[str] = ""

    def text(self) -> str:
        facts = msgspec.structs.asdict(self)
        if self.sentence:
            return self.sentence.format(**facts)
        said = ", ".join(f"{name} {value}" for name, value in facts.items())
        return f"because of {said}" if said else f"it is {self.reason.lower()}"


@cache
def _message_type(reason: str, facts: tuple[str, ...], sentence: str) -> type[SampleMessage]:
    namespace = {"reason": reason, "sentence": sentence}
    fields = [(name, Any) for name in facts]
    return msgspec.defstruct("Sample", fields, bases=(SampleMessage,), namespace=namespace, frozen=True, kw_only=True)


def message(reason: str, sentence: str = "", **facts: Any) -> Message:
    return _message_type(reason, tuple(facts), sentence)(**facts)


def action(
    id: str,
    verb: Verb = Verb.PATCH,
    object: ObjectRef | None = None,
    reason: str = "Tested",
    facts: dict[str, Any] | Message | None = None,
    **more: Any,
) -> Action:
    said = facts if isinstance(facts, Message) else message(reason, **(facts or {}))
    return Action(id=id, verb=verb, object=object or node_ref(id), reason=said.reason, facts=said, **more)


def disruptive(node: str, **more: Any) -> Action:
    return action(f"release-{node}", object=node_ref(node), disruption=Disruption.RELEASES, **more)


def blocked(name: str, reason: str = "Refused", **facts: Any) -> Blocked:
    return Blocked(object=node_ref(name), reason=reason, facts=message(reason, **facts))


def candidate(name: str, reason: str, *, taken: bool = False, **facts: Any) -> Candidate:
    return Candidate.of(name, message(reason, **facts), is_taken=taken)


def decision(rule: str, *candidates: Candidate, would_change: tuple[str, ...] = (), **facts: Any) -> Decision:
    ref = ObjectRef(api_version="nyallocator.cybozu.io/v1", kind="NodeTemplate", name="web")
    return Decision.of(ref, message(rule, **facts), candidates, [message(each) for each in would_change])


def plan(*actions: Action, **more: Any) -> Plan:
    return Plan(**{"capability": "spares", "key": "nodetemplates", **more}, actions=actions)


def planned(*steps: tuple[Action, Write], key: str = "nodetemplates") -> Planned:
    return Planned(plan=plan(*(each for each, _ in steps), key=key), writes={each.id: write for each, write in steps})


def render_decision(decision: Decision, by: str = "", style: Style = PLAIN, candidates: int = CANDIDATES) -> str:
    """Render a decision as `why` does, without conditions and operator."""
    return render_answers([Answer(by, decision)], style, candidates=candidates)
