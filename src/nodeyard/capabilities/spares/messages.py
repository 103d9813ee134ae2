"""Reason and facts to text, for conditions, events, `why` and the dashboard alike.

The texts of nyallocator's own reasons are its interface and stand here to the letter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.types import Reason
from nodeyard.kube.json import Object

Facts = Mapping[str, Any]


def text(reason: str, facts: Object) -> str:
    """A sentence for a reason of ours; any other reason is its own text."""
    render = _TEXTS.get(reason)
    return reason if render is None else render(facts)


def _plain(sentence: str) -> Callable[[Facts], str]:
    return lambda _facts: sentence


def nodes(facts: Facts) -> str:
    """`2 nodes (a, b)`, `12 nodes (a, b, ... and 2 more)`, or the one that is spoken of."""
    if "count" not in facts:
        return f"node {facts['node']}" if "node" in facts else "the node"
    count, listed = facts["count"], list(facts.get("nodes", ()))
    more = f" and {count - len(listed)} more" if count > len(listed) else ""
    return f"{_count(count)} ({', '.join(listed)}{more})" if listed else _count(count)


def _count(number: int) -> str:
    return f"{number} {'node' if number == 1 else 'nodes'}"


def _about(sentence: str) -> Callable[[Facts], str]:
    """A sentence with the nodes and the template in it."""
    return lambda facts: sentence.format(
        nodes=nodes(facts),
        template=facts.get("template", ""),
        zone=f" in {facts['zone']}" if facts.get("zone") else "",
    )


def _dry_run(facts: Facts) -> str:
    todo = [
        f"{verb} {_count(facts[what])}"
        for what, verb in (("claims", "claim"), ("updates", "update"), ("moves", "move out"), ("releases", "release"))
        if facts.get(what)
    ]
    listed = facts.get("nodes", ())
    named = f": {', '.join(listed[:10])}" if listed else ""
    return f"Dry run: would {', '.join(todo)}{named}" if todo else "Dry run: nothing would be done"


def _invalid(facts: Facts) -> str:
    return str(facts.get("error") or "The template is not valid")


def _elsewhere(facts: Facts) -> str:
    owner = facts.get("owner")
    return f"Another capability ({owner}) has {nodes(facts)}" if owner else f"Another capability has {nodes(facts)}"


_TEXTS: Mapping[str, Callable[[Facts], str]] = {
    Reason.CLAIMED: _about("Takes {nodes}{zone} for {template}"),
    Reason.UPDATED: _about("Brings {nodes} back to what {template} describes"),
    Reason.MOVED_OUT: _about("Moves {nodes} out of management: the selector of {template} does not match any more"),
    Reason.RELEASING: _about("Cordons {nodes}, to be given back by {template}"),
    Reason.EVICTING: _about("Will evict pods from {nodes}, which {template} gives back"),
    Reason.EVICTED: _about("Evicts pods from {nodes}, which {template} gives back"),
    Reason.RELEASED: _about("Gives {nodes} back as spare"),
    Reason.RELEASE_CANCELLED: _about("Keeps {nodes} after all, which {template} was giving back"),
    Reason.LET_GO: _about("Lets {nodes} go unchanged: template {template} is deleted"),
    Reason.SPARE_LABELLED: _about("Labels {nodes} as spare"),
    Reason.SPARE_UNLABELLED: _about("Takes the spare label off {nodes}: the taint is gone"),
    Reason.FINALIZER_ADDED: _about("Takes {template} into care"),
    Reason.FINALIZER_REMOVED: _about("Is done with {template}"),
    Reason.ABANDONED: _about("{template} is deleted and cannot be read: it is let go, its nodes are left as they are"),
    Reason.SUFFICIENT: _plain("Current nodes are sufficient"),
    Reason.HIGH_PRIORITY: _plain("There is a NodeTemplate with higher priority that is not sufficient"),
    Reason.NO_SPARE: _plain("No spare nodes found"),
    Reason.RECONCILE_ERROR: _plain("Current nodes are insufficient because of reconcile error"),
    Reason.RECONCILE_SUCCESS: _plain("Reconcile succeeded"),
    Reason.DRY_RUN: _dry_run,
    Reason.PAUSED: _plain("The template is paused"),
    Reason.INVALID: _invalid,
    Reason.DELETING: _plain("The template is being deleted"),
    Reason.NOT_READY: _about("Not ready: {nodes}"),
    Reason.NOT_EMPTY: _about("Running pods other than DaemonSets': {nodes}"),
    Reason.PODS_UNKNOWN: _about("Whether it runs pods is not known yet: {nodes}"),
    Reason.OWNED_ELSEWHERE: _elsewhere,
    Reason.NODE_DELETING: _about("Being deleted: {nodes}"),
    Reason.HELD: _about("Held for a template of higher priority: {nodes}"),
    Reason.SELF_DEFEATING: _about("The selector would not match any more once the template's labels are set: {nodes}"),
    Reason.MISMATCH: _plain("The selector does not match"),
    Reason.ENOUGH: _plain("Not needed: others came first by zone and name, or there are enough"),
    Reason.TAKEN: lambda facts: (
        f"Taken by {facts['template']}" if facts.get("template") else "Taken by another template"
    ),
    Reason.WAITING: _about("Waiting until pods are gone: {nodes}"),
    Reason.SETTLING: _about("Waiting a moment after the cordon: {nodes}"),
    Reason.KEPT: _about("Kept as {template} describes it"),
    Reason.SPARE: _plain("Spare, and no template needs it"),
    Reason.NOT_SPARE: _plain("Not spare: it has neither the spare taint nor the spare label"),
    Reason.DANGLING: _about("It names template {template}, which does not exist"),
    Reason.WAS_MOVED_OUT: _about("It left {template} when the selector did not match any more"),
    Reason.ADD_SPARE_TAINT: _plain(f"Give the node the taint {names.SPARE_TAINT}"),
    Reason.ADD_SPARES: _plain("Add spare nodes that the selector matches"),
    Reason.RAISE_NODES: _plain("Raise spec.nodes"),
    Reason.LOWER_NODES: _plain("Lower spec.nodes with releasePolicy: Release"),
    Reason.CHANGE_SELECTOR: _plain("Change spec.selector, or the node's labels"),
    Reason.RAISE_PRIORITY: _plain("Raise spec.priority"),
    Reason.END_DRY_RUN: _plain("Set spec.dryRun to false"),
    Reason.END_PAUSE: _plain("End the pause"),
    Reason.MEND_TEMPLATE: _plain("Mend the template"),
    Reason.MAKE_READY: _plain("Make the node ready, or do not require it"),
    Reason.EMPTY_NODE: _plain("Remove the node's pods"),
    Reason.LEAVE_ELSEWHERE: _plain("Take the node from the capability that has it"),
    Reason.CREATE_TEMPLATE: _plain("Create that template"),
}
