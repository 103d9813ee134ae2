"""Texts of reasons and facts, for conditions, events, `why` and the dashboard.

A condition text contains timestamps, never ages: an age would change the text, and so the status, at every reconcile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.kube.json import Object
from nodeyard.kube.names import MIRRORED_CLUSTER, MIRRORED_NODE
from nodeyard.plan.layout import counted
from nodeyard.plan.message_format import NAMED, Facts, filled, says
from nodeyard.plan.reasons import text_of

_FIRST: Final = ("cpu", "memory", "pods")
_MODELS: Final = "spec.clusterTreeOptions.leafModels"
_GRACE: Final = "spec.clusterTreeOptions.credentialGrace"


def text(reason: str, facts: Object) -> str:
    """Return the sentence for a reason of clustertree or of the engine; an unknown reason is returned as it is."""
    return text_of(_text, reason, facts)


def _text(reason: str, facts: Object) -> str:
    recorded = facts.get("operator")
    if recorded and reason == facts.get("operatorReason"):
        # Repeats the condition that the operator wrote. Advice has other reasons and gets its own text below.
        return f"{recorded} (recorded by the operator at {facts.get('at', 'an unknown time')})"
    render = _TEXTS.get(reason)
    return reason if render is None else render(facts)


def _with_error(sentence: str) -> Callable[[Facts], str]:
    """Append `: error` to the sentence if the facts have an error."""

    def render(facts: Facts) -> str:
        base = filled(sentence, facts)
        return f"{base}: {facts['error']}" if facts.get("error") else base

    return render


def _append_error(base: str, facts: Facts) -> str:
    return f"{base} ({facts['error']})" if facts.get("error") else base


def _list_names(items: list[str], count: int = 0) -> str:
    """Name the first few, and the number of the others."""
    shown = ", ".join(items[:NAMED])
    more = max(count, len(items)) - len(items[:NAMED])
    return f"{shown} and {more} more" if more > 0 else shown


def _resources(has: Mapping[str, str], free: Mapping[str, str] | None = None) -> str:
    """Format as `cpu 4`, or `cpu 2500m of 4`, with the usual resources first and without zeros."""
    keys = [key for key in _FIRST if key in has] + sorted(key for key in has if key not in _FIRST)
    parts = [
        f"{key} {has[key]}" if free is None else f"{key} {free.get(key, '0')} of {has[key]}"
        for key in keys
        if has[key] != "0"
    ]
    return ", ".join(parts) or "nothing"


def _node_created(facts: Facts) -> str:
    mirrored = {"one2cluster": "the leaf nodes", "one2node": "one leaf node", "one2party": "the selected leaf nodes"}
    what = f"{mirrored.get(facts.get('mode', ''), 'leaf nodes')} ({facts.get('model', 'leafModels')})"
    return f"Created node {facts['node']}, which mirrors {what} of Cluster {facts['cluster']}"


_WHY_REMOVED: Mapping[str, str] = {
    Reason.DELETING: "Cluster {cluster} is being deleted",
    Reason.DISABLED: "spec.clusterTreeOptions.enable of Cluster {cluster} is false",
    Reason.IS_ROOT: f"Cluster {{cluster}} is annotated as the root itself ({names.CLUSTER_ROLE}: {names.ROOT})",
    Reason.LEAF_NODE_MISSING: "Cluster {cluster} no longer has a leaf node of that name",
}


def _node_removed(facts: Facts) -> str:
    why = _WHY_REMOVED.get(facts.get("why", ""), f"no item of {_MODELS} of Cluster {{cluster}} asks for it")
    what = f"Node {facts['node']} is to be removed" if facts.get("isPending") else f"Removed node {facts['node']}"
    return f"{what}: {filled(why, facts)}"


def _conditions_changed(facts: Facts) -> str:
    base = f"Set the conditions of node {facts['node']}"
    return f"{base}: Ready is {facts['status']} ({facts.get('why', '')})" if "status" in facts else base


def _name_taken(facts: Facts) -> str:
    base = f"{facts.get('model', 'A leaf model')} of Cluster {facts['cluster']} needs a node named {facts['node']}"
    owner = facts.get("owner", "")
    if owner == facts["cluster"]:
        return (
            f"{base}, but the existing node has the annotation {MIRRORED_CLUSTER} and lacks the label "
            f"{MIRRORED_NODE}=true, so its owner is not certain. Nodeyard does not touch it: add the label, or delete "
            "the node"
        )
    whose = f"the node of that name mirrors Cluster {owner}" if owner else "the node of that name is not a mirror"
    return f"{base}, but {whose}. Nodeyard does not touch it: delete that node, or change the model"


def _models_overlap(facts: Facts) -> str:
    model, by = facts.get("model", ""), facts.get("by", "")
    if "leafNodes" not in facts:
        return f"{model} of Cluster {facts['cluster']} needs node {facts['node']}, which {by} has; it gets no node"
    which = _list_names(list(facts["leafNodes"]), facts.get("count", 0))
    return f"{model} of Cluster {facts['cluster']} also selects {which}, which {by} has; a leaf node counts once"


def _unreachable(facts: Facts) -> str:
    last = facts.get("lastContact")
    since = f"has not responded since {last}" if last else "does not respond"
    return _append_error(f"Leaf cluster {facts['cluster']} {since}; its state is unknown", facts)


def _credentials_rejected(facts: Facts) -> str:
    if facts.get("givenUp"):
        return (
            f"Leaf cluster {facts['cluster']} has rejected the credentials for longer than {_GRACE}, which ended at "
            f"{facts['givenUp']}; its state is unknown"
        )
    rejects = (
        f"has rejected the credentials since {facts['since']}" if facts.get("since") else "rejects the credentials"
    )
    return _append_error(f"Leaf cluster {facts['cluster']} responds but {rejects}", facts)


def _leaf_changed(facts: Facts) -> str:
    found = facts.get("found")
    who = f"the server belongs to cluster {found}" if found else "the server does not reveal its cluster"
    return (
        f"The kubeconfig of Cluster {facts['cluster']} points to another cluster: its nodes mirror leaf "
        f"{facts.get('recorded', '')}, but {who} (uid of Namespace kube-system). Its nodes stay unchanged until the "
        "kubeconfig points to their leaf again, or the other leaf is approved"
    )


def _leaf_replaced(facts: Facts) -> str:
    found = f"cluster {facts['found']}" if facts.get("found") else "a cluster that does not reveal its uid"
    return (
        f"Replaced leaf {facts.get('recorded')} of Cluster {facts['cluster']} with {found}: nodes that it does not "
        "have are removed, the others show what is free there"
    )


def _leaf_nodes_not_ready(facts: Facts) -> str:
    if facts.get("isEmpty"):
        return f"Leaf cluster {facts['cluster']} responds but has no leaf nodes for {facts['node']}; it offers nothing"
    return f"Leaf cluster {facts['cluster']} responds, but none of the leaf nodes of {facts['node']} is ready"


def _not_counted(why: str) -> Callable[[Facts], str]:
    def render(facts: Facts) -> str:
        reason = filled(why, {**facts, "taints": ", ".join(facts.get("taints", ()))})
        return f"{reason}; adds nothing to {facts['node']} (allocatable: {_resources(facts.get('has', {}))})"

    return render


def _not_ready(facts: Facts) -> str:
    why = "Not ready: Ready is {status} ({why})" if "status" in facts else "Not ready"
    return _not_counted(why)(facts)


def _counted(facts: Facts) -> str:
    return f"Counted for {facts['node']}; free: {_resources(facts.get('has', {}), facts.get('free', {}))}"


def _not_selected(facts: Facts) -> str:
    if "model" not in facts:
        return f"No leaf model of Cluster {facts['cluster']} selects it"
    return f"{facts['model']} does not select it"


def _pod_unacknowledged(facts: Facts) -> str:
    base = f"Pod {facts['pod']} has been bound to {facts['node']}, which mirrors Cluster {facts['cluster']}, since"
    if facts.get("isEarly"):
        return f"{base} {facts['since']} and is not acknowledged yet (no status.startTime)"
    return (
        f"{base} {facts['since']} and is not acknowledged (no status.startTime): Nodeyard mirrors nodes and does not "
        "move pods. Run a pod sync such as Kosmos' pod controllers, or keep the pod off by not tolerating "
        f"{MIRRORED_NODE}=true:NoSchedule"
    )


def _mirrors(what: str) -> Callable[[Facts], str]:
    def render(facts: Facts) -> str:
        base = filled(what, facts)
        return f"{base}; it offers {_resources(facts['allocatable'])}" if "allocatable" in facts else base

    return render


def _is_leaf(facts: Facts) -> str:
    nodes = list(facts.get("nodes", ()))
    where = f"as {_list_names(nodes)}" if nodes else "as no node yet"
    version = f" ({facts['version']})" if facts.get("version") else ""
    return f"Cluster {facts['cluster']}{version} with {counted(facts.get('leafNodes', 0), 'leaf node')} appears {where}"


def _unreadable_amounts(facts: Facts) -> str:
    parts = []
    if nodes := [f"{node} ({error})" for node, error in dict(facts.get("nodes", ())).items()]:
        parts.append(f"leaf nodes with an invalid quantity are not counted: {_list_names(nodes)}")
    if pods := list(facts.get("pods", ())):
        parts.append(f"invalid resource requests of pods are not subtracted: {_list_names(pods)}")
    return f"In Cluster {facts['cluster']} {'; '.join(parts)}"


def _leases_late(facts: Facts) -> str:
    failed = [f"{name} ({error})" if error else name for name, error in dict(facts.get("failed", ())).items()]
    base = f"The leases of {_list_names(failed)} could not be renewed" if failed else "Leases are not renewed in time"
    return _append_last_renewal(base, facts)


def _append_last_renewal(base: str, facts: Facts) -> str:
    return f"{base}; all were last renewed at {facts['renewed']}" if facts.get("renewed") else base


_TEXTS: Mapping[str, Callable[[Facts], str]] = {
    Reason.FINALIZER_ADDED: says(f"Added finalizer {names.FINALIZER} to Cluster {{cluster}}"),
    Reason.FINALIZER_REMOVED: says(
        f"Removed finalizer {names.FINALIZER} from Cluster {{cluster}}: none of its nodes is left"
    ),
    Reason.CLUSTER_ANNOTATED: lambda facts: (
        f"Updated annotations of Cluster {facts['cluster']}: {', '.join(facts.get('what', ()))}"
    ),
    Reason.LEAF_REPLACED: _leaf_replaced,
    Reason.NODE_CREATED: _node_created,
    Reason.NODE_ADOPTED: says("Adopted node {node}, which Kosmos created for Cluster {cluster}"),
    Reason.NODE_UPDATED: lambda facts: (
        f"Updated node {facts['node']} to match the leaf and its model: {', '.join(facts.get('what', ()))}"
    ),
    Reason.RESOURCES_CHANGED: says("Set the resources of node {node} to what is free in Cluster {cluster}"),
    Reason.NODE_EMPTIED: says(
        "Set the resources of node {node} to zero: it no longer mirrors any leaf node of Cluster {cluster}"
    ),
    Reason.CONDITIONS_CHANGED: _conditions_changed,
    Reason.NODE_REMOVED: _node_removed,
    Reason.LEASE_REMOVED: says("Removed the lease of node {node}"),
    Reason.IS_ROOT: says(
        f"Cluster {{cluster}} is annotated as the root itself ({names.CLUSTER_ROLE}: {names.ROOT}) and is not mirrored"
    ),
    Reason.DISABLED: says("spec.clusterTreeOptions.enable of Cluster {cluster} is false, so it has no nodes here"),
    Reason.PAUSED: says(
        "Cluster {cluster} is paused: only the leases and the Ready condition of its nodes follow the leaf"
    ),
    Reason.DELETING: says("Cluster {cluster} is being deleted; its nodes and their leases are removed"),
    Reason.NO_KUBECONFIG: says(
        "Cluster {cluster} has neither spec.kubeconfigSecretRef nor spec.kubeconfig; set one of them"
    ),
    Reason.KUBECONFIG_REFUSED: _with_error("The kubeconfig of Cluster {cluster} is refused"),
    Reason.SECRET_MISSING: lambda facts: _append_error(
        f"Secret {facts.get('secret', '')} in spec.kubeconfigSecretRef of Cluster {facts['cluster']} does not exist or "
        f"lacks the label {names.LEAF_KUBECONFIG}=true",
        facts,
    ),
    Reason.INVALID_MODEL: _with_error("{model} of Cluster {cluster} is invalid and creates no node"),
    Reason.NAME_TAKEN: _name_taken,
    Reason.LEAF_NODE_MISSING: says(
        "{model} of Cluster {cluster} mirrors leaf node {leafNode}, which the leaf does not have; its mirror is "
        "created when it appears"
    ),
    Reason.MODELS_OVERLAP: _models_overlap,
    Reason.LEAF_SHARED: says(
        "{model} of Cluster {cluster} creates no node: Cluster {by} mirrors the same leaf, came first and leaves it no "
        "leaf nodes; a leaf node counts once. Delete one of the two Clusters, or make their leafModels select "
        "different leaf nodes"
    ),
    Reason.LEAF_CHANGED: _leaf_changed,
    Reason.NOT_CONTACTED: _with_error("Leaf cluster {cluster} has not been reached yet"),
    Reason.REACHABLE: says("Leaf cluster {cluster} responds"),
    Reason.UNREACHABLE: _unreachable,
    Reason.PROBE_FAILING: _with_error(
        "Probes of leaf cluster {cluster} fail; after three failures in a row it is unreachable"
    ),
    Reason.CREDENTIALS_REJECTED: _credentials_rejected,
    Reason.LEAF_READY: says("Leaf cluster {cluster} responds and has ready nodes"),
    Reason.LEAF_NODES_NOT_READY: _leaf_nodes_not_ready,
    Reason.LEAF_NODE_SILENT: says("Leaf cluster {cluster} responds, but its node {node} has stopped reporting"),
    Reason.LEAF_NODE_GONE: says(
        "Leaf cluster {cluster} no longer has node {node}; this mirror has nothing behind it and is to be removed"
    ),
    Reason.SYNCED: says("The nodes of Cluster {cluster} show what is free in the leaf"),
    Reason.NOT_SYNCED: _with_error("The nodes and pods of leaf cluster {cluster} have not been listed yet"),
    Reason.STALE: _with_error("The leaf of Cluster {cluster} is not watched; its nodes show the last known state"),
    Reason.TOO_LARGE: _with_error(
        "Leaf cluster {cluster} is not watched; its nodes stay unchanged, and the connection is retried every five "
        "minutes"
    ),
    Reason.UNREADABLE_AMOUNTS: _unreadable_amounts,
    Reason.WRITE_FAILED: _with_error("{object} of Cluster {cluster} could not be written"),
    Reason.LEASES_RENEWED: says("The leases of all nodes of Cluster {cluster} are renewed"),
    Reason.LEASES_LATE: _leases_late,
    Reason.LEASES_STOPPED: lambda facts: _append_last_renewal(
        f"Leases of Cluster {facts['cluster']} are not renewed while its leaf does not respond", facts
    ),
    Reason.NO_NODES: says("Cluster {cluster} has no nodes and therefore no leases"),
    Reason.NODES_PENDING: lambda facts: (
        f"Nodes of Cluster {facts['cluster']} could not be created yet: {_list_names(list(facts.get('nodes', ())))}. "
        "Another object changed meanwhile; the creation is retried"
    ),
    Reason.COUNTED: _counted,
    Reason.NOT_READY: _not_ready,
    Reason.CORDONED: _not_counted("Cordoned in the leaf"),
    Reason.TAINTED: _not_counted("Tainted ({taints}), and spec.clusterTreeOptions.resources.excludeTainted is true"),
    Reason.UNREADABLE: _not_counted("Invalid quantity ({error})"),
    Reason.IN_OTHER_MODEL: says("{model} selects it too, but {by} has it (node {other}); a leaf node counts once"),
    Reason.IN_OTHER_CLUSTER: says("Cluster {by} mirrors the same leaf and has it; a leaf node counts once"),
    Reason.NOT_SELECTED: _not_selected,
    Reason.POD_UNACKNOWLEDGED: _pod_unacknowledged,
    Reason.MIRRORS_WHOLE: _mirrors("Node {node} mirrors the leaf nodes of Cluster {cluster} that no other model has"),
    Reason.MIRRORS_NODE: _mirrors("Node {node} mirrors leaf node {leafNode} of Cluster {cluster}"),
    Reason.MIRRORS_PARTY: _mirrors("Node {node} mirrors the leaf nodes of Cluster {cluster} that {model} selects"),
    Reason.IS_LEAF: _is_leaf,
    Reason.RESTORE_CONTACT: says(
        "Restore the connection from the operator to the API server of Cluster {cluster}; two successful probes bring "
        "its nodes back"
    ),
    Reason.RESTORE_KUBECONFIG: says(
        "Give Cluster {cluster} a kubeconfig that points to leaf {recorded}, or approve the other one: `nodeyard "
        "approve` lists what waits"
    ),
    Reason.RENEW_CREDENTIALS: says(
        "Put a kubeconfig with valid credentials in the Secret or in spec.kubeconfig of Cluster {cluster}; no restart "
        "is needed"
    ),
    Reason.LABEL_SECRET: says(f"Create Secret {{secret}} with the label {names.LEAF_KUBECONFIG}=true"),
    Reason.RENAME_NODE: says(
        f"Delete node {{node}} from the root, or change {_MODELS} of Cluster {{cluster}}; to have the node adopted, "
        f"give it the annotation {MIRRORED_CLUSTER}={{cluster}} and the label {MIRRORED_NODE}=true"
    ),
    Reason.ENABLE_TREE: says("Set spec.clusterTreeOptions.enable of Cluster {cluster} to true"),
    Reason.END_PAUSE: says("Remove the annotation nodeyard.dev/paused from Cluster {cluster}"),
    Reason.FIX_KUBECONFIG: says(
        "Give Cluster {cluster} a self-contained kubeconfig: server, CA and credentials as data, without exec plugins "
        "and file references"
    ),
    Reason.UNCORDON_LEAF_NODE: says("Uncordon the leaf nodes that should count"),
    Reason.SYNC_PODS: says("Run a pod sync to the leaf, or delete the pod"),
    Reason.EDIT_LEAF_MODELS: says(f"Change {_MODELS} of Cluster {{cluster}}"),
}
