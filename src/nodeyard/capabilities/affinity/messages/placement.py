"""Texts about pods, their owners and their placement, and about AffinityClasses.

The sentences for a class that is not found and for a missing nodeSelector are the design's, to the letter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.kube.goformat import quote
from nodeyard.kube.json import Object
from nodeyard.plan.layout import counted
from nodeyard.plan.message_format import Facts, listed, says

_NAMED: Final = 10


def placement_text(reason: Reason, facts: Object) -> str:
    if reason is Reason.CLASS_MISSING:
        return f"AffinityClass {quote(facts['class'])} not found"
    return MESSAGES[reason](facts)


# pods of an application


def _missing_selector(facts: Facts) -> str:
    return (
        f"{facts['subject']} belongs to application with AffinityClass {quote(facts['class'])} but missing required "
        f"nodeSelector {facts['key']}={facts['value']}{_instead(facts)}"
    )


def _instead(facts: Facts) -> str:
    """Render the value that the pod has instead, and a node that it could run on."""
    has = f"its nodeSelector has {facts['key']}={facts['has']}" if "has" in facts else ""
    reaches = f"it could run on node {facts['node']}" if facts.get("node") else ""
    details = " and ".join(filter(None, (has, reaches)))
    return f"; {details}" if details else ""


def _outside(facts: Facts) -> str:
    return (
        f"{facts['subject']} belongs to application with AffinityClass {quote(facts['class'])} but could run outside "
        f"it, for example on a node with {facts['example']}"
        f"{', or on node ' + facts['node'] if facts.get('node') else ''}"
    )


def _node_outside(facts: Facts) -> str:
    which = "is outside it" if facts.get("known") else "is not a known node"
    return (
        f"{facts['subject']} belongs to application with AffinityClass {quote(facts['class'])} but spec.nodeName "
        f"{facts['node']} {which}: remove it, or name a node of the class"
    )


def _claim_refused(facts: Facts) -> str:
    allowed = listed(facts.get("allowed", ()), _NAMED) or "no class"
    return (
        f"{facts['subject']} belongs to HelmRelease {facts['release']} with AffinityClass {quote(facts['class'])}, "
        f"which no {facts['application']} has recorded, and tenant {facts['tenant']} allows {allowed}"
    )


def _classless_refused(facts: Facts) -> str:
    allowed = listed(facts.get("allowed", ()), _NAMED)
    classes = f"one of the AffinityClasses {allowed}" if allowed else "an AffinityClass, but allows none"
    whose = (
        f"{facts['application']}, which has no AffinityClass"
        if facts.get("backed")
        else f"HelmRelease {facts['release']}, which has no AffinityClass and no record on {facts['application']}"
    )
    return f"{facts['subject']} belongs to {whose}, and tenant {facts['tenant']} requires its pods to fit {classes}"


def _too_complex(facts: Facts) -> str:
    return (
        f"{facts['subject']} belongs to application with AffinityClass {quote(facts['class'])} but its node affinity "
        "is too complex to check against it: use fewer terms and values, or a nodeSelector"
    )


def _inside_previous(facts: Facts) -> str:
    before = f"AffinityClass {quote(facts['previous'])}" if facts["previous"] else "no class"
    return (
        f"{facts['subject']} fits the previous class, {before}: {facts['application']} is changing to AffinityClass "
        f"{quote(facts['class'])}, and both are admitted until HelmRelease {facts['release']} is ready"
    )


# pods without an application, or with an unknown one


def _unowned_refused(facts: Facts) -> str:
    allowed = listed(facts.get("allowed", ()), _NAMED)
    classes = f"one of the AffinityClasses {allowed}" if allowed else "an AffinityClass, but allows none"
    return (
        f"{facts['subject']} belongs to no application, and tenant {facts['tenant']} requires such pods to fit "
        f"{classes}"
    )


def _unknown(facts: Facts) -> str:
    could = (
        f"it may have AffinityClass {quote(facts['class'])}, which it is outside of"
        if facts.get("class")
        else "pods of no application are denied here"
    )
    return f"{_unreadable(facts)}, and {could}"


def _unreadable(facts: Facts) -> str:
    return (
        f"{facts['subject']} may belong to an application: its owner {facts['owner']} cannot be read: "
        f"{facts['error'] or 'unknown error'}"
    )


# classes


def _in_use(facts: Facts) -> str:
    users = [str(each) for each in facts.get("users", ())]
    total = facts.get("count", len(users))
    return (
        f"AffinityClass {quote(facts['class'])} is in use by {counted(total, 'object')}: {_more(users, total)}; move "
        "them to another class first"
    )


def _more(users: list[str], total: int) -> str:
    shown = users[:_NAMED]
    return ", ".join(shown) + (f" and {total - len(shown)} more" if total > len(shown) else "")


def _nodes_match(facts: Facts) -> str:
    zones = facts.get("zones") or {}
    where = ", ".join(f"{number} in {zone or 'no zone'}" for zone, number in zones.items())
    return f"{counted(facts['nodes'], 'node')} in the class: {where}" if where else "No node matches the class"


def _violated(facts: Facts) -> str:
    pods = [str(each) for each in facts.get("pods", ())]
    total = facts.get("count", len(pods))
    which = f": {_more(pods, total)}" if pods else ""
    return f"{counted(total, 'running pod')} of AffinityClass {quote(facts['class'])} could run outside it{which}"


def _self_assignable(facts: Facts) -> str:
    keys = listed(facts.get("keys", ()), _NAMED)
    return (
        f"kubelets can set {keys} on their own nodes: a compromised node can join AffinityClass "
        f"{quote(facts.get('class', ''))}; for isolation, use labels under node-restriction.kubernetes.io/"
    )


def _dead_end(what: str) -> Callable[[Facts], str]:
    return lambda facts: f"{facts.get('owner', 'The owner')} {what}"


MESSAGES: Final[Mapping[Reason, Callable[[Facts], str]]] = {
    Reason.MISSING_SELECTOR: _missing_selector,
    Reason.OUTSIDE: _outside,
    Reason.TOO_COMPLEX: _too_complex,
    Reason.NODE_OUTSIDE: _node_outside,
    Reason.CLAIM_REFUSED: _claim_refused,
    Reason.CLASSLESS_REFUSED: _classless_refused,
    Reason.UNSATISFIABLE: says(
        "{subject} fits no node at all: its nodeSelector and its node affinity contradict each other"
    ),
    Reason.INSIDE: says("{subject} stays inside AffinityClass {class}"),
    Reason.INSIDE_PREVIOUS: _inside_previous,
    Reason.UNRESTRICTED: says("{subject} belongs to {application}, which has no AffinityClass: it may run anywhere"),
    Reason.OWNER_FOUND: says("{subject} belongs to {application}, through HelmRelease {release}"),
    Reason.OWNER_NONE: says("{subject} belongs to no application"),
    Reason.OWNER_UNKNOWN: _unknown,
    Reason.OWNER_FORBIDDEN: _unknown,
    Reason.OWNER_HARMLESS: lambda facts: f"{_unreadable(facts)}; it would be allowed whichever it is",
    Reason.OWNER_MISSING: _dead_end("does not exist"),
    Reason.OWNER_REPLACED: _dead_end("is gone: an object of the same name has another uid"),
    Reason.OWNER_CYCLE: _dead_end("owns itself through a cycle of owner references"),
    Reason.OWNERS_AMBIGUOUS: says(
        "{subject} belongs to several HelmReleases and must fit the classes of all of them: {releases}"
    ),
    Reason.UNOWNED_ALLOWED: says("{subject} belongs to no application: it may run anywhere"),
    Reason.UNOWNED_REFUSED: _unowned_refused,
    Reason.EXEMPT: says("Pods in namespace {namespace} are never checked"),
    Reason.NODES_MATCH: _nodes_match,
    Reason.NO_NODE_MATCHES: says("No node matches the class: its pods stay pending"),
    Reason.BAD_SELECTOR: lambda facts: "; ".join(map(str, facts.get("errors", ()))),
    Reason.CLASS_IN_USE: _in_use,
    Reason.CLASS_UNBOUNDED: lambda facts: (
        f"AffinityClass {quote(facts['class'])} requires nothing: it contains every node and restricts no pod"
    ),
    Reason.SELF_ASSIGNABLE: _self_assignable,
    Reason.VIOLATED: _violated,
    Reason.MEND_CHART: says("Apply _scheduling to the pods in the chart"),
    Reason.GRANT_READ: says(
        "Grant get, list and watch on the owner's kind: set affinity.ownerKinds of the chart, or create a ClusterRole "
        'with the label rbac.nodeyard.dev/aggregate-to-affinity: "true"'
    ),
    Reason.LABEL_NODES: says("Label nodes so that they match the class"),
}
