"""Plans and decisions that show everything the renderer can say."""

from __future__ import annotations

from typing import Any

from nodeyard.plan.brake import Limit, brake
from nodeyard.plan.diff import diff_patch
from nodeyard.plan.identity import assign_id
from nodeyard.plan.message import Message
from nodeyard.plan.model import Blocked, Candidate, Decision, Disruption, ObjectRef, Plan, Verb

from ...builders.plans import action, change, disruptive, message, node_ref, plan, pod_ref

_SENTENCES = {
    "Claimed": "takes spare {node} in {zone} for {template}, which lacks {missing}",
    "Updated": "brings {node} back to what {template} says",
    "Releasing": "gives {node} back: {template} has {surplus} too many",
    "Evicted": "{pod} leaves {node}, which is given back",
    "Released": "{node} is spare again",
    "NotReady": "the node has not been Ready since {since}",
    "SelectorMismatch": "the selector wants {wanted}",
    "NoSpareNodesFound": "{template} has {current} of {nodes} nodes; no spare fits",
    "Taken": "least used zone, then the name",
    "AddSpare": "a Ready spare with {wanted}",
    "LowerNodes": "nodes: {current} in {template}",
}


def said(reason: str, **facts: Any) -> Message:
    return message(reason, _SENTENCES[reason], **facts)


def blocked(name: str, reason: str, **facts: Any) -> Blocked:
    return Blocked(object=node_ref(name), reason=reason, facts=said(reason, **facts))


def candidate(name: str, reason: str, *, taken: bool = False, **facts: Any) -> Candidate:
    return Candidate.of(name, said(reason, **facts), is_taken=taken)


def claim(node: str, zone: str) -> Any:
    spare = {"key": "node.cybozu.io/spare", "effect": "NoSchedule", "value": "true"}
    before = {"metadata": {"labels": {"tier": "old"}}, "spec": {"taints": [spare]}}
    patch = {
        "metadata": {"labels": {"nyallocator.cybozu.io/node-template": "web", "tier": "web"}},
        "spec": {"taints": [{"key": "dedicated", "effect": "NoExecute"}]},
    }
    facts = {"node": node, "zone": zone, "template": "web", "missing": 2}
    return action(node, object=node_ref(node), facts=said("Claimed", **facts), diff=diff_patch(before, patch))


def nothing() -> Plan:
    return assign_id(plan())


def claims() -> Plan:
    long = "a value that goes on and on, " * 12
    record = change("metadata.annotations[nodeyard.dev/spares-record]", None, long)
    update = action(
        "n3",
        object=node_ref("n3"),
        facts=said("Updated", node="n3", template="web"),
        diff=(change("metadata.labels[tier]", long, "web"), record),
    )
    refused = (
        blocked("n4", "NotReady", since="09:15"),
        blocked("n5", "NotReady", since="09:15"),
        blocked("n6", "SelectorMismatch", wanted="cpu=large"),
    )
    return assign_id(plan(claim("n1", "z1"), claim("n2", "z2"), update, blocked=refused))


def release() -> Plan:
    cordon = action(
        "cordon-n1",
        object=node_ref("n1"),
        facts=said("Releasing", node="n1", template="web", surplus=1),
        disruption=Disruption.RELEASES,
        diff=(change("spec.unschedulable", None, True),),
    )
    evict = action(
        "evict-web-1",
        Verb.EVICT,
        pod_ref("web-1"),
        facts=said("Evicted", pod="default/web-1", node="n1"),
        disruption=Disruption.EVICTS,
        disrupts=("n1",),
        after=("cordon-n1",),
    )
    give = action(
        "give-n1", object=node_ref("n1"), facts=said("Released", node="n1"), after=("cordon-n1", "evict-web-1")
    )
    return assign_id(plan(cordon, evict, give))


def braked() -> Plan:
    releases = [
        disruptive(f"n{number:02}", facts=said("Releasing", node=f"n{number:02}", template="web", surplus=30))
        for number in range(30)
    ]
    return brake(plan(claim("m1", "z1"), *releases), Limit(), managed=100).now


def refusals() -> Plan:
    return assign_id(plan(blocked=(blocked("n6", "SelectorMismatch", wanted="cpu=large"),)))


def fleet() -> list[Plan]:
    """Plans of 10,000 nodes: many keys that do the same, one that claims a lot, a held one, and idle ones."""
    profiles = [
        assign_id(
            plan(
                action(
                    f"update-n{number:04}",
                    object=node_ref(f"n{number:04}"),
                    facts=said("Updated", node=f"n{number:04}", template="web"),
                    diff=(change("metadata.annotations[config]", "3f2a", "9b1c"),),
                ),
                capability="profiles",
                key=f"node/n{number:04}",
            )
        )
        for number in range(4000)
    ]
    claims = [claim(f"s{number:04}", f"z{number % 3}") for number in range(3000)]
    refused = [blocked(f"r{number:04}", "NotReady", since=f"09:{number % 60:02}") for number in range(2000)]
    idle = [plan(capability="pools", key=f"c{number}") for number in range(1000)]
    return [*idle, assign_id(plan(*claims, blocked=tuple(refused), key="all")), *profiles, braked(), release()]


def why_web() -> Decision:
    left = [candidate(f"n{number:02}", "NotReady", since="09:15") for number in range(18)]
    left += [candidate(f"n{number:02}", "SelectorMismatch", wanted="cpu=large") for number in range(18, 40)]
    web = ObjectRef(api_version="nyallocator.cybozu.io/v1", kind="NodeTemplate", name="web")
    selected = [candidate("m1", "Taken", taken=True), candidate("m2", "Taken", taken=True)]
    would_change = [said("AddSpare", wanted="cpu=large"), said("LowerNodes", current=2, template="web")]
    rule = said("NoSpareNodesFound", template="web", current=2, nodes=5)
    return Decision.of(web, rule, [*selected, *left], would_change)
