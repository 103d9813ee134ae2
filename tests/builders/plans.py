"""Plans, actions and decisions for tests, each with as little said as possible."""

from __future__ import annotations

from typing import Any

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


def node_ref(name: str, uid: str = "") -> ObjectRef:
    return ObjectRef(api_version="v1", kind="Node", name=name, uid=uid)


def pod_ref(name: str, namespace: str = "default", uid: str = "") -> ObjectRef:
    return ObjectRef(api_version="v1", kind="Pod", name=name, namespace=namespace, uid=uid)


def config_ref(name: str, namespace: str = "default", uid: str = "") -> ObjectRef:
    return ObjectRef(api_version="v1", kind="ConfigMap", name=name, namespace=namespace, uid=uid)


def change(path: str, from_: Any = None, to: Any = None) -> FieldChange:
    return FieldChange(path=path, from_=from_, to=to)


def action(id: str, verb: Verb = Verb.PATCH, object: ObjectRef | None = None, **more: Any) -> Action:
    return Action(id=id, verb=verb, object=object or node_ref(id), **{"reason": "Tested", **more})


def disruptive(node: str, **more: Any) -> Action:
    return action(f"release-{node}", object=node_ref(node), disruption=Disruption.RELEASES, **more)


def blocked(name: str, reason: str = "Refused", **facts: Any) -> Blocked:
    return Blocked(object=node_ref(name), reason=reason, facts=facts)


def candidate(name: str, reason: str, *, taken: bool = False, **facts: Any) -> Candidate:
    return Candidate(name=name, is_taken=taken, reason=reason, facts=facts)


def decision(rule: str, *candidates: Candidate, would_change: tuple[str, ...] = (), **facts: Any) -> Decision:
    ref = ObjectRef(api_version="nyallocator.cybozu.io/v1", kind="NodeTemplate", name="web")
    return Decision(object=ref, rule=rule, facts=facts, candidates=candidates, would_change=would_change)


def plan(*actions: Action, **more: Any) -> Plan:
    return Plan(**{"capability": "spares", "key": "nodetemplates", **more}, actions=actions)


def planned(*steps: tuple[Action, Write], key: str = "nodetemplates") -> Planned:
    return Planned(plan=plan(*(each for each, _ in steps), key=key), writes={each.id: write for each, write in steps})


def messages(reason: str, facts: dict[str, Any]) -> str:
    """A capability's texts: the facts in order."""
    said = ", ".join(f"{name} {value}" for name, value in facts.items())
    return f"because of {said}" if said else f"it is {reason.lower()}"
