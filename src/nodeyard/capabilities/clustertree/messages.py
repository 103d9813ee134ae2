"""Reason and facts to text, for conditions, events, `why` and the dashboard alike.

Texts of conditions say nothing that grows older by itself: a moment, never an age. Else they would be written anew with
every look at them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.kube.json import Object
from nodeyard.kube.names import MIRRORED_CLUSTER, MIRRORED_NODE
from nodeyard.plan.layout import counted
from nodeyard.plan.reasons import text_of
from nodeyard.plan.sentences import NAMED, Facts, filled, says

_FIRST: Final = ("cpu", "memory", "pods")
_MODELS: Final = "spec.clusterTreeOptions.leafModels"


def text(reason: str, facts: Object) -> str:
    """A sentence for a reason of ours or of the engine; any other reason is its own text."""
    return text_of(_own, reason, facts)


def _own(reason: str, facts: Object) -> str:
    render = _TEXTS.get(reason)
    return reason if render is None else render(facts)


def _with_error(sentence: str) -> Callable[[Facts], str]:
    """A sentence, and the error where there is one."""

    def render(facts: Facts) -> str:
        said = filled(sentence, facts)
        return f"{said}: {facts['error']}" if facts.get("error") else said

    return render


def _listed(items: list[str], count: int = 0) -> str:
    """The first few, and how many more."""
    shown = ", ".join(items[:NAMED])
    more = max(count, len(items)) - len(items[:NAMED])
    return f"{shown} and {more} more" if more > 0 else shown


def _shown(has: Mapping[str, str], free: Mapping[str, str] | None = None) -> str:
    """`cpu 4`, or `cpu 2500m of 4`, the usual ones first; what a node has none of is not spoken of."""
    keys = [key for key in _FIRST if key in has] + sorted(key for key in has if key not in _FIRST)
    parts = [
        f"{key} {has[key]}" if free is None else f"{key} {free.get(key, '0')} of {has[key]}"
        for key in keys
        if has[key] != "0"
    ]
    return ", ".join(parts) or "nothing"


def _created(facts: Facts) -> str:
    return f"Creates node {facts['node']}, which mirrors {_mirrored(facts)} of Cluster {facts['cluster']}"


def _mirrored(facts: Facts) -> str:
    what = {"one2cluster": "the leaf nodes", "one2node": "one leaf node", "one2party": "the selected leaf nodes"}
    return f"{what.get(facts.get('mode', ''), 'leaf nodes')} ({facts.get('model', 'leafModels')})"


_WHY_REMOVED: Mapping[str, str] = {
    Reason.DELETING: "Cluster {cluster} is being deleted",
    Reason.DISABLED: "spec.clusterTreeOptions.enable of Cluster {cluster} is false",
    Reason.IS_ROOT: f"Cluster {{cluster}} is marked as the root itself ({names.CLUSTER_ROLE}: {names.ROOT})",
    Reason.LEAF_NODE_MISSING: "the leaf node of that name is not in Cluster {cluster} any more",
}


def _removed(facts: Facts) -> str:
    why = _WHY_REMOVED.get(facts.get("why", ""), f"no item of {_MODELS} of Cluster {{cluster}} asks for it")
    return f"Removes node {facts['node']}: {filled(why, facts)}"


def _conditions(facts: Facts) -> str:
    if "status" not in facts:
        return f"Mirrors the conditions of node {facts['node']}"
    return f"Sets the conditions of node {facts['node']}: Ready is {facts['status']} ({facts.get('why', '')})"


def _taken(facts: Facts) -> str:
    base = f"{facts.get('model', 'A leaf model')} of Cluster {facts['cluster']} asks for a node named {facts['node']}"
    owner = facts.get("owner", "")
    if owner == facts["cluster"]:
        return (
            f"{base}, and that one has the annotation {MIRRORED_CLUSTER} but not the label {MIRRORED_NODE}=true, so "
            "that it may be anybody's; it is left alone until it has both, or is removed"
        )
    whose = f"that node mirrors Cluster {owner}" if owner else "the root has a node of that name which is no mirror"
    return f"{base}, and {whose}; it is left alone: remove that node, or change the model"


def _overlap(facts: Facts) -> str:
    model, by = facts.get("model", ""), facts.get("by", "")
    if "leafNodes" not in facts:
        return f"{model} of Cluster {facts['cluster']} asks for node {facts['node']}, which {by} has: it gets none"
    which = _listed(list(facts["leafNodes"]), facts.get("count", 0))
    return f"{model} of Cluster {facts['cluster']} also selects {which}, which {by} has; a leaf node counts once"


def _unreachable(facts: Facts) -> str:
    last = facts.get("lastContact")
    since = f"has not answered since {last}" if last else "does not answer"
    return _suffixed(f"Leaf cluster {facts['cluster']} {since}: how it is nobody knows", facts)


def _rejected(facts: Facts) -> str:
    if facts.get("givenUp"):
        return (
            f"Leaf cluster {facts['cluster']} rejects our credentials for longer than the grace, which ended "
            f"{facts['givenUp']}: how it is nobody knows"
        )
    since = f" since {facts['since']}" if facts.get("since") else ""
    base = f"Leaf cluster {facts['cluster']} answers and rejects our credentials{since}"
    return _suffixed(base, facts)


def _suffixed(base: str, facts: Facts) -> str:
    return f"{base} ({facts['error']})" if facts.get("error") else base


def _ready(facts: Facts) -> str:
    if facts.get("isEmpty"):
        return f"Leaf cluster {facts['cluster']} answers, and has no leaf nodes for {facts['node']}: it offers nothing"
    return f"Leaf cluster {facts['cluster']} answers and has nodes that are ready"


def _not_ready(facts: Facts) -> str:
    status = f" (Ready is {facts['status']}, {facts.get('why', '')})" if "status" in facts else ""
    return f"Not ready{status}, so it adds nothing to {facts['node']}; it has {_shown(facts.get('has', {}))}"


def _counted(facts: Facts) -> str:
    return f"Counts for {facts['node']} with what is free: {_shown(facts.get('has', {}), facts.get('free', {}))}"


def _left_out(why: str) -> Callable[[Facts], str]:
    def render(facts: Facts) -> str:
        said = filled(why, {**facts, "taints": ", ".join(facts.get("taints", ()))})
        return f"{said}, so it adds nothing to {facts['node']}; it has {_shown(facts.get('has', {}))}"

    return render


def _not_selected(facts: Facts) -> str:
    if "model" not in facts:
        return f"No leaf model of Cluster {facts['cluster']} selects it"
    return f"{facts['model']} does not select it"


def _unacknowledged(facts: Facts) -> str:
    base = f"Pod {facts['pod']} is bound to {facts['node']}, which mirrors Cluster {facts['cluster']}, since"
    if facts.get("isEarly"):
        return f"{base} {facts['since']}, and nobody has acknowledged it yet"
    return (
        f"{base} {facts['since']}, and nobody has acknowledged it: Nodeyard mirrors nodes and does not move pods. Run "
        "what does, such as Kosmos' pod controllers, or keep the pod off by not tolerating "
        f"{MIRRORED_NODE}=true:NoSchedule"
    )


def _mirrors(what: str) -> Callable[[Facts], str]:
    def render(facts: Facts) -> str:
        said = filled(what, facts)
        return f"{said}; it offers {_shown(facts['allocatable'])}" if "allocatable" in facts else said

    return render


def _is_leaf(facts: Facts) -> str:
    nodes = list(facts.get("nodes", ()))
    where = f"as {_listed(nodes)}" if nodes else "as no node yet"
    version = f" ({facts['version']})" if facts.get("version") else ""
    return f"Cluster {facts['cluster']}{version} with {counted(facts.get('leafNodes', 0), 'leaf node')} appears {where}"


def _unreadable(facts: Facts) -> str:
    """Leaf nodes that are left out, and pods that take nothing but their place."""
    parts = []
    if nodes := [f"{node} ({error})" for node, error in dict(facts.get("nodes", ())).items()]:
        parts.append(f"leaf nodes with an amount that is no quantity do not count: {_listed(nodes)}")
    if pods := list(facts.get("pods", ())):
        parts.append(f"requests of pods that are no quantities are not taken off: {_listed(pods)}")
    return f"In Cluster {facts['cluster']} {'; '.join(parts)}"


def _late(facts: Facts) -> str:
    failed = [f"{name} ({error})" if error else name for name, error in dict(facts.get("failed", ())).items()]
    said = f"The leases of {_listed(failed)} could not be renewed" if failed else "Leases are not renewed in time"
    return _last_renewed(said, facts)


def _last_renewed(said: str, facts: Facts) -> str:
    return f"{said}; all were last renewed at {facts['renewed']}" if facts.get("renewed") else said


_TEXTS: Mapping[str, Callable[[Facts], str]] = {
    Reason.FINALIZER_ADDED: says("Takes Cluster {cluster} into care"),
    Reason.FINALIZER_REMOVED: says("Is done with Cluster {cluster}: none of its nodes is left"),
    Reason.CLUSTER_NOTED: lambda facts: (
        f"Notes on Cluster {facts['cluster']} what has to outlive a restart: {', '.join(facts.get('what', ()))}"
    ),
    Reason.NODE_CREATED: _created,
    Reason.NODE_ADOPTED: says("Takes over node {node}, which Kosmos made for Cluster {cluster}"),
    Reason.NODE_UPDATED: lambda facts: (
        f"Makes node {facts['node']} what the leaf and its model say: {', '.join(facts.get('what', ()))}"
    ),
    Reason.RESOURCES_CHANGED: says("Writes what is free in Cluster {cluster} to node {node}"),
    Reason.NODE_EMPTIED: says(
        "Lets node {node} of Cluster {cluster} offer nothing: what it mirrored is not its any more"
    ),
    Reason.CONDITIONS_CHANGED: _conditions,
    Reason.NODE_REMOVED: _removed,
    Reason.LEASE_REMOVED: says("Removes the lease of node {node}"),
    Reason.IS_ROOT: says(
        f"Cluster {{cluster}} is marked as the root itself ({names.CLUSTER_ROLE}: {names.ROOT}) and is not mirrored"
    ),
    Reason.DISABLED: says("spec.clusterTreeOptions.enable of Cluster {cluster} is false: it has no nodes here"),
    Reason.PAUSED: says("Cluster {cluster} is paused: its leases are renewed, nothing else is written"),
    Reason.DELETING: says("Cluster {cluster} is being deleted: its nodes and their leases go"),
    Reason.NO_KUBECONFIG: says(
        "Cluster {cluster} has neither spec.kubeconfigSecretRef nor spec.kubeconfig: give it one"
    ),
    Reason.KUBECONFIG_REFUSED: _with_error("The kubeconfig of Cluster {cluster} is not used"),
    Reason.SECRET_MISSING: lambda facts: _suffixed(
        f"The Secret {facts.get('secret', '')} that spec.kubeconfigSecretRef of Cluster {facts['cluster']} names is "
        f"not there, or does not carry the label {names.LEAF_KUBECONFIG}=true",
        facts,
    ),
    Reason.INVALID_MODEL: _with_error("{model} of Cluster {cluster} makes no node"),
    Reason.NAME_TAKEN: _taken,
    Reason.LEAF_NODE_MISSING: says(
        "{model} of Cluster {cluster} mirrors the leaf node {leafNode}, which the leaf does not have; its node appears "
        "with it"
    ),
    Reason.MODELS_OVERLAP: _overlap,
    Reason.LEAF_SHARED: says(
        "{model} of Cluster {cluster} makes no node: Cluster {by} leads to the same leaf, was there first and leaves "
        "it nothing, since a leaf node counts once. Delete one of both, or let their leafModels select different leaf "
        "nodes"
    ),
    Reason.NOT_CONTACTED: _with_error("Leaf cluster {cluster} has not been reached yet"),
    Reason.REACHABLE: says("Leaf cluster {cluster} answers"),
    Reason.UNREACHABLE: _unreachable,
    Reason.PROBE_FAILING: _with_error("Leaf cluster {cluster} fails to answer; after three rounds it is unreachable"),
    Reason.CREDENTIALS_REJECTED: _rejected,
    Reason.LEAF_READY: _ready,
    Reason.LEAF_NODES_NOT_READY: says("Leaf cluster {cluster} answers, and none of the leaf nodes of {node} is ready"),
    Reason.LEAF_NODE_SILENT: says("Leaf cluster {cluster} answers, and its node {node} has stopped to report"),
    Reason.LEAF_NODE_GONE: says(
        "Leaf cluster {cluster} does not have its node {node} any more: nobody stands behind this one, which is to be "
        "removed"
    ),
    Reason.SYNCED: says("The nodes of Cluster {cluster} show what is free in the leaf"),
    Reason.NOT_SYNCED: _with_error("The nodes and pods of leaf cluster {cluster} have not been listed yet"),
    Reason.STALE: _with_error("The nodes of Cluster {cluster} show what was last known of the leaf: it is not watched"),
    Reason.UNREADABLE_AMOUNTS: _unreadable,
    Reason.WRITE_FAILED: _with_error("{object} of Cluster {cluster} could not be written"),
    Reason.HELD_BACK: says("Node {node} was written less than a second ago; what has changed since follows"),
    Reason.LEASES_RENEWED: says("The leases of all nodes of Cluster {cluster} are renewed"),
    Reason.LEASES_LATE: _late,
    Reason.LEASES_STOPPED: lambda facts: _last_renewed(
        f"Leases of Cluster {facts['cluster']} are not renewed while its leaf does not answer", facts
    ),
    Reason.NO_NODES: says("Cluster {cluster} has no nodes, so no leases"),
    Reason.NODES_PENDING: lambda facts: (
        f"Of Cluster {facts['cluster']} {_listed(list(facts.get('nodes', ())))} could not be made yet: something "
        "changed meanwhile, and it is tried again"
    ),
    Reason.LEASE_MOVED: lambda facts: (
        f"Somebody else renews the leases of {_listed(list(facts.get('nodes', ())))}: Kosmos' clustertree manager is "
        "alive. Scale it to zero to hand over; until then this capability only observes"
    ),
    Reason.COUNTED: _counted,
    Reason.NOT_READY: _not_ready,
    Reason.CORDONED: _left_out("Cordoned in the leaf"),
    Reason.TAINTED: _left_out("Tainted ({taints}), and spec.clusterTreeOptions.resources.excludeTainted is set"),
    Reason.UNREADABLE: _left_out("An amount cannot be read ({error})"),
    Reason.IN_OTHER_MODEL: says("{model} selects it too, but {by} has it (node {other}); a leaf node counts once"),
    Reason.IN_OTHER_CLUSTER: says("Cluster {by} leads to the same leaf and has it; a leaf node counts once"),
    Reason.NOT_SELECTED: _not_selected,
    Reason.POD_UNACKNOWLEDGED: _unacknowledged,
    Reason.POD_ACKNOWLEDGED: says("Pod {pod} on {node} has been taken up"),
    Reason.MIRRORS_WHOLE: _mirrors("Node {node} mirrors what is left of Cluster {cluster} as one node"),
    Reason.MIRRORS_NODE: _mirrors("Node {node} mirrors the leaf node {leafNode} of Cluster {cluster}"),
    Reason.MIRRORS_PARTY: _mirrors("Node {node} mirrors the leaf nodes of Cluster {cluster} that {model} selects"),
    Reason.IS_LEAF: _is_leaf,
    Reason.RESTORE_CONTACT: says(
        "Let the operator reach the API server of Cluster {cluster}: two good answers bring its nodes back"
    ),
    Reason.RENEW_CREDENTIALS: says(
        "Put a kubeconfig with valid credentials in the Secret or in spec.kubeconfig of Cluster {cluster}; it is taken "
        "up without a restart"
    ),
    Reason.LABEL_SECRET: says(f"Create the Secret {{secret}}, with the label {names.LEAF_KUBECONFIG}=true"),
    Reason.RENAME_NODE: says(
        f"Remove the node {{node}} from the root, or change {_MODELS} of Cluster {{cluster}}; a node to be taken over "
        f"needs the annotation {MIRRORED_CLUSTER}={{cluster}} and the label {MIRRORED_NODE}=true"
    ),
    Reason.ENABLE_TREE: says("Set spec.clusterTreeOptions.enable of Cluster {cluster} to true"),
    Reason.END_PAUSE: says("Take the annotation nodeyard.dev/paused off Cluster {cluster}"),
    Reason.MEND_CLUSTER: says(
        "Give Cluster {cluster} a kubeconfig with everything in it: server, CA and credentials as data, no program to "
        "run and no file to read"
    ),
    Reason.UNCORDON_LEAF_NODE: says("Uncordon the leaf nodes that are to count"),
    Reason.SYNC_PODS: says("Run what moves pods to the leaf, or delete the pod"),
    Reason.EDIT_LEAF_MODELS: says(f"Change {_MODELS} of Cluster {{cluster}}"),
}
