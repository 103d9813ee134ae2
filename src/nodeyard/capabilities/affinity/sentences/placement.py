"""What is said about pods, whose they are and where they may go, and about AffinityClasses.

The sentences about a class that is not found and about a nodeSelector that is missing are the design's, word for word.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.kube.gotext import quote
from nodeyard.kube.json import Object
from nodeyard.plan.layout import counted
from nodeyard.plan.sentences import Facts, listed, says

_NAMED: Final = 10


def sentence(reason: Reason, facts: Object) -> str:
    if reason is Reason.CLASS_MISSING:
        return f"AffinityClass {quote(facts['class'])} not found"
    return SENTENCES[reason](facts)


# of an application


def _missing_selector(facts: Facts) -> str:
    return (
        f"{facts['subject']} belongs to application with AffinityClass {quote(facts['class'])} but missing required "
        f"nodeSelector {facts['key']}={facts['value']}"
    )


def _outside(facts: Facts) -> str:
    return (
        f"{facts['subject']} belongs to application with AffinityClass {quote(facts['class'])} but may go to nodes "
        f"outside of it, such as one with {facts['example']}"
    )


def _too_complex(facts: Facts) -> str:
    return (
        f"{facts['subject']} belongs to application with AffinityClass {quote(facts['class'])} but its node affinity "
        "is too complex to tell whether it keeps to it: say it with fewer terms and values, or by nodeSelector"
    )


def _inside_previous(facts: Facts) -> str:
    before = f"AffinityClass {quote(facts['previous'])}" if facts["previous"] else "no class"
    return (
        f"{facts['subject']} is as it was with {before}: {facts['application']} changes to AffinityClass "
        f"{quote(facts['class'])}, and both are admitted until HelmRelease {facts['release']} is ready"
    )


# of nobody, or of nobody knows whom


def _unowned_refused(facts: Facts) -> str:
    allowed = listed(facts.get("allowed", ()), _NAMED)
    classes = f"one of the AffinityClasses {allowed}" if allowed else "an AffinityClass, and may have none"
    return (
        f"{facts['subject']} belongs to no application, and tenant {facts['tenant']} requires such pods to keep to "
        f"{classes}"
    )


def _unknown(facts: Facts) -> str:
    could = (
        f"it could be one with AffinityClass {quote(facts['class'])}, which it is outside of"
        if facts.get("class")
        else "pods of no application are refused here"
    )
    return f"{_untold(facts)}, and {could}"


def _untold(facts: Facts) -> str:
    return (
        f"{facts['subject']} may belong to an application: its owner {facts['owner']} cannot be read: "
        f"{facts['error'] or 'nobody knows why'}"
    )


# classes


def _in_use(facts: Facts) -> str:
    users = [str(each) for each in facts.get("users", ())]
    total = facts.get("count", len(users))
    return (
        f"AffinityClass {quote(facts['class'])} is in use by {counted(total, 'object')}: {_more(users, total)}; let "
        "them name another class first"
    )


def _more(users: list[str], total: int) -> str:
    shown = users[:_NAMED]
    return ", ".join(shown) + (f" and {total - len(shown)} more" if total > len(shown) else "")


def _nodes_match(facts: Facts) -> str:
    zones = facts.get("zones") or {}
    where = ", ".join(f"{number} in {zone or 'no zone'}" for zone, number in zones.items())
    return f"{counted(facts['nodes'], 'node')} in the class: {where}" if where else "No node is in the class"


def _violated(facts: Facts) -> str:
    pods = [str(each) for each in facts.get("pods", ())]
    total = facts.get("count", len(pods))
    return (
        f"{counted(total, 'running pod')} of AffinityClass {quote(facts['class'])} may be outside of it: "
        f"{_more(pods, total)}"
    )


def _self_assignable(facts: Facts) -> str:
    keys = listed(facts.get("keys", ()), _NAMED)
    return (
        f"nodes can give themselves {keys}: a node that is broken into can join AffinityClass "
        f"{quote(facts.get('class', ''))}; labels under node-restriction.kubernetes.io/ are safe from that"
    )


def _dead_end(what: str) -> Callable[[Facts], str]:
    return lambda facts: f"{facts.get('owner', 'The owner')} {what}"


SENTENCES: Final[Mapping[Reason, Callable[[Facts], str]]] = {
    Reason.MISSING_SELECTOR: _missing_selector,
    Reason.OUTSIDE: _outside,
    Reason.TOO_COMPLEX: _too_complex,
    Reason.UNSATISFIABLE: says(
        "{subject} can go to no node at all: its nodeSelector and its node affinity contradict each other"
    ),
    Reason.INSIDE: says("{subject} keeps to AffinityClass {class}"),
    Reason.INSIDE_PREVIOUS: _inside_previous,
    Reason.UNRESTRICTED: says("{subject} belongs to {application}, which has no AffinityClass, and may go anywhere"),
    Reason.OWNER_FOUND: says("{subject} belongs to {application}, by HelmRelease {release}"),
    Reason.OWNER_NONE: says("{subject} belongs to no application"),
    Reason.OWNER_UNKNOWN: _unknown,
    Reason.OWNER_FORBIDDEN: _unknown,
    Reason.OWNER_HARMLESS: lambda facts: f"{_untold(facts)}; whichever it is, it would be allowed",
    Reason.OWNER_MISSING: _dead_end("does not exist"),
    Reason.OWNER_REPLACED: _dead_end("is gone: there is another of its name"),
    Reason.OWNER_CYCLE: _dead_end("is owned by what it owns"),
    Reason.OWNERS_AMBIGUOUS: says(
        "{subject} belongs to several applications: {application} is the nearest and counts, {others} not"
    ),
    Reason.UNOWNED_ALLOWED: says("{subject} belongs to no application and may go anywhere"),
    Reason.UNOWNED_REFUSED: _unowned_refused,
    Reason.EXEMPT: says("Pods in namespace {namespace} are never checked"),
    Reason.NODES_MATCH: _nodes_match,
    Reason.NO_NODE_MATCHES: says("No node is in the class: its pods stay pending"),
    Reason.BAD_SELECTOR: lambda facts: "; ".join(map(str, facts.get("errors", ()))),
    Reason.CLASS_IN_USE: _in_use,
    Reason.CLASS_UNBOUNDED: lambda facts: (
        f"AffinityClass {quote(facts['class'])} asks for nothing: every node is in it, and every pod keeps to it"
    ),
    Reason.SELF_ASSIGNABLE: _self_assignable,
    Reason.VIOLATED: _violated,
    Reason.MEND_CHART: says("Let the chart apply _scheduling to its pods"),
    Reason.GRANT_READ: says(
        "Grant get, list and watch on that owner's kind, by affinity.ownerKinds of the chart or in a ClusterRole with "
        'the label rbac.nodeyard.dev/aggregate-to-affinity: "true"'
    ),
    Reason.LABEL_NODES: says("Label nodes so that they are in the class"),
}
"""Beside those of applications and tenants, which also have what is said of a class that is not found."""
