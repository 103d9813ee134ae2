"""Texts for reasons and their facts: one source for conditions, events, `why` and the dashboard.

The texts of nyallocator's own reasons are its interface and do not change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.types import Reason
from nodeyard.kube.json import Object
from nodeyard.kube.names import PAUSED
from nodeyard.plan.message_format import listed

Facts = Mapping[str, Any]


def text(reason: str, facts: Object) -> str:
    """Render the text of a reason; a reason of another component is returned unchanged."""
    render = _TEXTS.get(reason)
    return reason if render is None else render(facts)


def format_nodes(facts: Facts) -> str:
    """Format the nodes in the facts: `2 nodes (a, b)`, `12 nodes (a, b, ... and 2 more)`, `node a` or `the node`."""
    if "count" not in facts:
        return f"node {facts['node']}" if "node" in facts else "the node"
    count, named = facts["count"], list(facts.get("nodes", ()))
    more = f" and {count - len(named)} more" if count > len(named) else ""
    return f"{_count(count)} ({', '.join(named)}{more})" if named else _count(count)


def _count(number: int) -> str:
    return f"{number} {'node' if number == 1 else 'nodes'}"


def _plain(sentence: str) -> Callable[[Facts], str]:
    return lambda _facts: sentence


def _fill(sentence: str) -> Callable[[Facts], str]:
    """Fill `{nodes}`, `{template}` and `{zone}` from the facts."""
    return lambda facts: sentence.format(
        nodes=format_nodes(facts),
        template=facts.get("template", ""),
        zone=f" from zone {facts['zone']}" if facts.get("zone") else "",
    )


def _progress(facts: Facts) -> str:
    """Format how many nodes a template has and lacks; empty without these facts."""
    if "desired" not in facts:
        return ""
    desired, kept, missing = facts["desired"], facts.get("kept", 0), facts.get("missing", 0)
    if missing:
        progress = f"lacks {missing} of {_count(desired)}"
    elif kept < desired:
        progress = f"has {kept} of {_count(desired)} and claims {desired - kept} more"
    else:
        progress = f"has {kept} of {_count(desired)}"
    if facts.get("leaving"):
        progress += f" after losing {_count(facts['leaving'])} that spec.selector no longer matches"
    refused = ", ".join(f"{count} {reason}" for reason, count in facts.get("refusals", {}).items())
    return f": {facts.get('template', '')} {progress}{f'; not claimed: {refused}' if refused else ''}"


def _high_priority(facts: Facts) -> str:
    sentence = "There is a NodeTemplate with higher priority that is not sufficient"
    return f"{sentence} ({facts['higher']}){_progress(facts)}" if facts.get("higher") else sentence


def _surplus(facts: Facts) -> str:
    if "surplus" not in facts:
        return "More nodes than spec.nodes are kept: spec.releasePolicy is Retain"
    number = facts["surplus"]
    return (
        f"{facts.get('template', 'The template')} has {_count(number)} more than spec.nodes and keeps "
        f"{'it' if number == 1 else 'them'}: spec.releasePolicy is Retain"
    )


def _mismatch(facts: Facts) -> str:
    if "requirement" not in facts:
        return "spec.selector does not match"
    value = facts.get("value")
    has = f"label {facts['label']} is missing" if value is None else f"the node has {facts['label']}={value}"
    return f"spec.selector requires {facts['requirement']}; {has}"


def _spare(facts: Facts) -> str:
    selecting = facts.get("templates")
    if selecting is None:
        return "Spare: no template needs it"
    if not selecting:
        return "Spare: no template selects it"
    return f"Spare: no template that selects it ({listed(selecting)}) needs another node"


def _enough(facts: Facts) -> str:
    if facts.get("claims"):
        return "Not selected: enough other spares ranked first (least-used zone, then name)"
    return f"Not selected: {facts.get('template') or 'the template'} has as many nodes as spec.nodes"


def _raise_nodes(facts: Facts) -> str:
    templates = facts.get("enough") or ([facts["template"]] if facts.get("template") else [])
    return f"Raise spec.nodes of {listed(templates)}" if templates else "Raise spec.nodes"


def _dry_run(facts: Facts) -> str:
    if "claims" not in facts:
        return f"Dry run: {facts.get('template') or 'the template'} claims no nodes while spec.dryRun is true"
    todo = [
        f"{verb} {_count(facts[what])}"
        for what, verb in (("claims", "claim"), ("updates", "update"), ("moves", "detach"), ("releases", "release"))
        if facts.get(what)
    ]
    touched = facts.get("nodes", ())
    named = f": {', '.join(touched[:10])}" if touched else ""
    return f"Dry run: would {', '.join(todo)}{named}" if todo else "Dry run: no node would change"


def _paused(facts: Facts) -> str:
    progress = f"; it has {facts['kept']} of {_count(facts['desired'])}" if "kept" in facts else ""
    return f"The template is paused by spec.paused or annotation {PAUSED}{progress}"


def _owned_elsewhere(facts: Facts) -> str:
    owner = f"capability {facts['owner']}" if facts.get("owner") else "another capability"
    return f"Managed by {owner}: {format_nodes(facts)}"


def _reserved(facts: Facts) -> str:
    higher = facts.get("higher", ())
    named = ", ".join([higher] if isinstance(higher, str) else higher)
    owner = f"{named}, which has a higher priority" if named else "a template with a higher priority"
    return f"Reserved for {owner}: {format_nodes(facts)}"


def _pods(facts: Facts) -> str:
    """List the pods that block a release, after a colon."""
    pods = facts.get("pods", ())
    more = facts.get("podCount", len(pods)) - len(pods)
    return f": {', '.join(pods)}{f' and {more} more' if more else ''}" if pods else ""


def _deleting(facts: Facts) -> str:
    pods = _pods(facts)
    return f"The template is being deleted{f'; waiting for pods{pods}' if pods else ''}"


def _not_spare(facts: Facts) -> str:
    role = f" (a {facts['role']} node)" if facts.get("role") else ""
    return f"Not spare: neither taint {names.SPARE_TAINT} nor label {names.SPARE_LABEL}=true is set{role}"


_TEXTS: Mapping[str, Callable[[Facts], str]] = {
    Reason.CLAIMED: _fill("Claimed {nodes}{zone} for {template}"),
    Reason.ADOPTED: _fill(f"Adopted {{nodes}} by label {names.TEMPLATE_LABEL}={{template}}"),
    Reason.UPDATED: _fill("Updated {nodes} to match spec.template of {template}"),
    Reason.MOVED_OUT: _fill("Moved {nodes} out of management: spec.selector of {template} no longer matches"),
    Reason.TAKEN_BACK: _fill("Returned {nodes} to {template}: spec.selector matches again"),
    Reason.RELEASING: _fill("Cordoned {nodes} for release by {template}"),
    Reason.EVICTING: _fill("Enabled pod eviction on {nodes}: {template} has spec.release.evictAfterSeconds"),
    Reason.EVICTED: _fill("Evicted pods from {nodes} for release by {template}"),
    Reason.RELEASED: _fill("Released {nodes} from {template} as spare"),
    Reason.RELEASE_CANCELLED: _fill("Cancelled the release of {nodes} by {template}"),
    Reason.DETACHED: _fill("Detached {nodes} from deleted template {template}; its settings stay"),
    Reason.SPARE_LABELLED: _fill(f"Added label {names.SPARE_LABEL} to {{nodes}}"),
    Reason.SPARE_UNLABELLED: _fill(
        f"Removed label {names.SPARE_LABEL} from {{nodes}}: taint {names.SPARE_TAINT} is gone"
    ),
    Reason.FINALIZER_ADDED: _fill(f"Added finalizer {names.FINALIZER} to {{template}}"),
    Reason.FINALIZER_REMOVED: _fill(f"Removed finalizer {names.FINALIZER} from {{template}}"),
    Reason.ABANDONED: _fill(
        f"Removed finalizer {names.FINALIZER} from {{template}}, which cannot be decoded; its nodes are unchanged"
    ),
    Reason.SUFFICIENT: lambda facts: f"Current nodes are sufficient{_progress(facts)}",
    Reason.SURPLUS: _surplus,
    Reason.HIGH_PRIORITY: _high_priority,
    Reason.NO_SPARE: lambda facts: f"No spare nodes found{_progress(facts)}",
    Reason.RECONCILE_ERROR: _plain("Current nodes are insufficient because of reconcile error"),
    Reason.RECONCILE_SUCCESS: _plain("Reconcile succeeded"),
    Reason.DRY_RUN: _dry_run,
    Reason.PAUSED: _paused,
    Reason.INVALID: lambda facts: str(facts.get("error") or "The template is invalid"),
    Reason.DELETING: _deleting,
    Reason.NOT_READY: _fill("Not Ready, required by spec.eligibility.requireReady of {template}: {nodes}"),
    Reason.UNSCHEDULABLE: _fill("Cordoned, excluded by spec.eligibility.requireReady of {template}: {nodes}"),
    Reason.NOT_EMPTY: _fill(
        "Running pods other than DaemonSet and static pods, excluded by spec.eligibility.requireEmpty of {template}: "
        "{nodes}"
    ),
    Reason.PODS_UNKNOWN: _fill("Waiting for the Pod cache to sync; pods unknown on {nodes}"),
    Reason.OWNED_ELSEWHERE: _owned_elsewhere,
    Reason.NODE_DELETING: _fill("Being deleted: {nodes}"),
    Reason.RESERVED: _reserved,
    Reason.SELF_DEFEATING: _fill("spec.selector would not match the labels after the claim: {nodes}"),
    Reason.MISMATCH: _mismatch,
    Reason.ENOUGH: _enough,
    Reason.TAKEN: lambda facts: (
        f"Claimed by {facts['template']}" if facts.get("template") else "Claimed by another template"
    ),
    Reason.NOT_ADOPTED: _fill("Not adopted by {template}, which has as many nodes as spec.nodes without: {nodes}"),
    Reason.WITHHELD: _fill(
        "Withheld labels under node-restriction.kubernetes.io from {nodes}: adopted by {template}, not claimed; "
        "set spec.adoption.restrictedLabels to true to trust such nodes"
    ),
    Reason.WAITING: lambda facts: f"Waiting for pods to leave {format_nodes(facts)}{_pods(facts)}",
    Reason.SETTLING: _fill("Waiting for pods bound before the cordon to appear in the cache: {nodes}"),
    Reason.KEPT: _fill("Belongs to {template}"),
    Reason.SPARE: _spare,
    Reason.NOT_SPARE: _not_spare,
    Reason.DANGLING: _fill(f"Label {names.TEMPLATE_LABEL} names {{template}}, which does not exist"),
    Reason.WAS_MOVED_OUT: _fill("Out of management since spec.selector of {template} stopped matching"),
    Reason.ADD_SPARE_TAINT: _plain(f"Add taint {names.SPARE_TAINT} to the node"),
    Reason.ADD_SPARES: _plain("Add spare nodes that spec.selector matches"),
    Reason.ADD_TEMPLATE: _plain("Create a NodeTemplate that selects the node"),
    Reason.SET_RELEASE: _plain("Set spec.releasePolicy to Release to release surplus nodes"),
    Reason.RAISE_NODES: _raise_nodes,
    Reason.LOWER_NODES: _plain("Lower spec.nodes with spec.releasePolicy set to Release"),
    Reason.CHANGE_SELECTOR: _plain("Change spec.selector or the node's labels"),
    Reason.RAISE_PRIORITY: _plain("Raise spec.priority"),
    Reason.END_DRY_RUN: _plain("Set spec.dryRun to false"),
    Reason.END_PAUSE: _plain(f"Set spec.paused to false and remove annotation {PAUSED}"),
    Reason.FIX_TEMPLATE: _plain("Correct the field named in the error"),
    Reason.MAKE_READY: _plain("Make the node Ready, or set spec.eligibility.requireReady to false"),
    Reason.UNCORDON: _plain("Uncordon the node, or set spec.eligibility.requireReady to false"),
    Reason.EMPTY_NODE: _plain("Drain the node"),
    Reason.LEAVE_ELSEWHERE: _plain("Restore the worker pool that is draining the node"),
    Reason.CREATE_TEMPLATE: _plain("Create that NodeTemplate"),
}
