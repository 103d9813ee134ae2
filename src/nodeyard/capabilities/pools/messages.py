"""Renders a reason and its facts as text for conditions, events, `why` and the dashboard.

Sentences of Lattice's design are interface and are copied word for word.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.capabilities.pools.types import DeletionPolicy, Pivot
from nodeyard.kube.json import Object
from nodeyard.plan.layout import counted
from nodeyard.plan.message_format import Facts, filled, listed, says
from nodeyard.plan.reasons import text_of

_PAST: Mapping[str, str] = {
    "Adds": "Added",
    "Adopts": "Adopted",
    "Applies": "Applied",
    "Cancels": "Cancelled",
    "Cordons": "Cordoned",
    "Creates": "Created",
    "Deletes": "Deleted",
    "Evicts": "Evicted",
    "Records": "Recorded",
    "Removes": "Removed",
    "Scales": "Scaled",
    "Sets": "Set",
    "Starts": "Started",
    "Takes": "Took",
    "Uncordons": "Uncordoned",
    "Updates": "Updated",
}


def text(reason: str, facts: Object) -> str:
    """Render a reason of pools or of the engine; an unknown reason is its own text.

    Actions are in the present tense: plans, `why` and admission warnings show them before they happen.
    """
    return text_of(_render, reason, facts)


def event_text(reason: str, facts: Object) -> str:
    """Render an action that succeeded, in the past tense of events."""
    verb, separator, rest = text(reason, facts).partition(" ")
    return f"{_PAST.get(verb, verb)}{separator}{rest}"


def pool_label(facts: Facts) -> str:
    """Return the pool's id, followed by its displayName if it has one."""
    pool, display_name = str(facts.get("pool", "")), facts.get("displayName")
    return f"{pool} ({display_name})" if display_name else pool


def _render(reason: str, facts: Object) -> str:
    render = _TEXTS.get(reason)
    if render is not None:
        is_literal = reason == Reason.AUTOSCALING_IGNORED or "displayName" not in facts
        return render(facts if is_literal else {**facts, "pool": pool_label(facts)})
    return _machine(facts) if "machine" in facts else reason


def _machine(facts: Facts) -> str:
    """Describe a Machine; its reason is its phase."""
    message = facts.get("message")
    base = f"Machine {facts['machine']} at {facts.get('version', '')}".rstrip()
    return f"{base}: {message}" if message else base


def _rollout(facts: Facts) -> str:
    nodes, why = counted(facts.get("nodes", 0), "node"), ", ".join(facts.get("why", ()))
    return f"Starts a rollout of pool {facts['pool']} that replaces {nodes}, one at a time: {why} changed"


def _control_plane(facts: Facts) -> str:
    cluster, current, wanted = facts["cluster"], facts.get("from", 0), facts.get("to", 0)
    if not current:
        return f"Creates the control plane of {cluster} at {facts.get('version', '')}".rstrip()
    rollout = ""
    if why := facts.get("why"):
        replaced = counted(facts.get("nodes", 0), "control plane node")
        rollout = f"a rollout that replaces {replaced} of {cluster}, one at a time: {', '.join(why)} changed"
    if wanted != current:
        deleted = f", which deletes {counted(current - wanted, 'control plane node')}" if wanted < current else ""
        base = f"Scales the control plane of {cluster} from {current} to {wanted}{deleted}"
        return f"{base}, together with {rollout}" if rollout else base
    return f"Starts {rollout}" if rollout else f"Updates the control plane of {cluster} in place; no node is replaced"


_REMOVALS: Mapping[str, str] = {
    DeletionPolicy.DRAIN: "cordoned and drained within their disruption budgets, then deleted",
    DeletionPolicy.ORPHAN: "deleted; Cluster API evicts their pods until poolDrainTimeout",
    DeletionPolicy.FORCE: "deleted without a drain",
}


def _removal(facts: Facts) -> str:
    policy, number = facts.get("policy", DeletionPolicy.DRAIN), facts.get("nodes", 0)
    verb = "is" if number == 1 else "are"
    return (
        f"Starts removing pool {facts['pool']}: {counted(number, 'node')} {verb} "
        f"{_REMOVALS.get(policy, 'deleted')} (poolDeletionPolicy: {policy})"
    )


def _drain_options(facts: Facts) -> str:
    policy, number = facts.get("policy", DeletionPolicy.DRAIN), facts.get("machines", 0)
    verb = "is" if number == 1 else "are"
    return (
        f"Sets drain options on {counted(number, 'Machine')} of pool {facts['pool']}, which {verb} "
        f"{_REMOVALS.get(policy, 'deleted')} (poolDeletionPolicy: {policy})"
    )


def _as_specified(facts: Facts) -> str:
    if not facts.get("pool"):
        return f"{facts['cluster']} matches its spec"
    id, nodes = str(facts["pool"]).partition(" ")[0], counted(facts.get("desired", 0), "node")
    field = "spec.nodes" if id == names.DEFAULT_POOL else f"spec.nodes.workerPools.{id}"
    return f"Pool {facts['pool']} of {facts['cluster']} matches {field}: {nodes}"


def _draining(facts: Facts) -> str:
    nodes, pods = facts.get("nodes", 0), facts.get("pods", 0)
    return f"Draining pool {facts['pool']}: {counted(pods, 'pod')} left on {counted(nodes, 'node')}"


def _drain_timeout(facts: Facts) -> str:
    blocking = listed([str(each) for each in facts.get("blocking", ())])
    after = f" after {facts['seconds']} s" if "seconds" in facts else ""
    return (
        f"Pool {facts['pool']} is not drained{after}: {blocking or 'pods remain'}. Its Machines are kept and evictions "
        "are retried"
    )


def _version_waits(facts: Facts) -> str:
    version = f" (now at {facts['version']})" if facts.get("version") and facts["version"] != facts.get("to") else ""
    progress = f": {facts.get('running', 0)} of {facts['desired']} Machines run it" if "desired" in facts else ""
    what = f"pool {facts['pool']}" if facts.get("pool") else facts.get("what", "the previous step")
    return f"Upgrade to {facts.get('to', '')} is waiting for {what}{version}{progress}"


def _placed(facts: Facts) -> str:
    fitting, first = facts.get("fitting", 0), list(facts.get("pools", ()))
    more = f" and {fitting - len(first)} more" if fitting > len(first) else ""
    return f"{counted(fitting, 'pool')} {'matches' if fitting == 1 else 'match'}: {', '.join(first)}{more}"


_REJECTED: Mapping[str, tuple[str, str]] = {
    Reason.LABEL_MISSING: ("lacks a label", "lack a label"),
    Reason.LABEL_DIFFERS: ("has a different label value", "have a different label value"),
    Reason.TAINT_NOT_TOLERATED: ("has an untolerated taint", "have an untolerated taint"),
    Reason.POOL_EMPTY: ("has no nodes", "have no nodes"),
    Reason.POOL_DRAINING: ("is being drained", "are being drained"),
    Reason.CLUSTER_NOT_READY: ("is in a cluster that is not ready", "are in clusters that are not ready"),
}


def _unplaced(facts: Facts) -> str:
    rejected = [
        f"{number} {_REJECTED[reason][number != 1]}"
        for reason, number in facts.get("refused", {}).items()
        if reason in _REJECTED
    ]
    return f"No pool matches: {', '.join(rejected)}" if rejected else "No pool matches: no LatticeCluster has a pool"


def _orphan(facts: Facts) -> str:
    pool = f"pool {facts['pool']}" if "pool" in facts else "a removed pool"
    return (
        f"poolDeletionPolicy Orphan still deletes the Machines of {pool}: Cluster API cannot keep them. Their pods are "
        "rescheduled"
    )


def _class_used(facts: Facts) -> str:
    pools, nodes, behind = facts.get("pools", 0), facts.get("nodes", 0), facts.get("behind", 0)
    base = f"LatticeNodeClass {facts['class']} is used by {counted(pools, 'pool')} with {counted(nodes, 'node')}"
    return f"{base}; {behind} of them still use an earlier spec of the class" if behind else base


def _cluster_deleting(facts: Facts) -> str:
    left = f"; {counted(facts['machines'], 'Machine')} left" if "machines" in facts else ""
    return f"The Cluster of {facts['cluster']} is being deleted{left}"


def _identity_unknown(facts: Facts) -> str:
    error = f" ({facts['error']})" if facts.get("error") else ""
    return (
        f"{facts['cluster']} may be the cluster Nodeyard runs on, and it is unreachable{error}. It is deleted once it "
        f"is reachable or has spec.pivot: {Pivot.NEVER}; annotate it with "
        f'{names.ORPHAN_ON_DELETE}: "true" to delete only the LatticeCluster'
    )


def _key_refused(facts: Facts) -> str:
    return f"Nodes of pool {facts['pool']} could not join: {'; '.join(facts.get('faults', ()))}"


def _with_error(sentence: str) -> Callable[[Facts], str]:
    """Append the error fact, if there is one."""

    def render(facts: Facts) -> str:
        base = filled(sentence, facts)
        return f"{base}: {facts['error']}" if facts.get("error") else base

    return render


_TEXTS: Mapping[str, Callable[[Facts], str]] = {
    Reason.NAMESPACE_CREATED: says("Creates the namespace of {cluster}"),
    Reason.CLUSTER_APPLIED: says("Applies the Cluster of {cluster}"),
    Reason.INFRASTRUCTURE_APPLIED: says("Applies the infrastructure cluster of {cluster}"),
    Reason.CONTROL_PLANE_APPLIED: _control_plane,
    Reason.CONTROL_PLANE_SCALED: _control_plane,
    Reason.TEMPLATE_CREATED: says("Creates template {template}"),
    Reason.TEMPLATE_NOTED: says("Records the inputs of template {template} in its annotations; no node is replaced"),
    Reason.TEMPLATE_COLLECTED: says("Deletes template {template}, which nothing references"),
    Reason.POOL_CREATED: says("Creates pool {pool} of {cluster} with 0 nodes"),
    Reason.POOL_UPDATED: says("Updates pool {pool} in place; no node is replaced"),
    Reason.POOL_ROLLED: _rollout,
    Reason.POOL_ADOPTED: says("Adopts existing objects as pool {pool} of {cluster}; no node is replaced"),
    Reason.POOL_SCALED: says("Scales pool {pool} from {from} to {to}"),
    Reason.REPLICAS_TAKEN_OVER: says("Takes ownership of spec.replicas of pool {pool}, which stays {to}"),
    Reason.FIELDS_TAKEN_OVER: says("Takes field ownership of {object} from clusterctl; no value changes"),
    Reason.CLUSTER_NOTED: says(f"Records the uid of the Cluster of {{cluster}} in annotation {names.CLUSTER_UID}"),
    Reason.FINALIZER_ADDED: says(f"Adds finalizer {names.FINALIZER} to {{cluster}}"),
    Reason.FINALIZER_REMOVED: says(f"Removes finalizer {names.FINALIZER} from {{cluster}}"),
    Reason.DRAIN_STARTED: _removal,
    Reason.DRAIN_CANCELLED: says("Cancels the removal of pool {pool}, which is in the spec again"),
    Reason.NODE_CORDONED: says("Cordons node {node} of pool {pool}"),
    Reason.NODE_UNCORDONED: says("Uncordons node {node} of pool {pool}, which is in the spec again"),
    Reason.POD_EVICTED: says("Evicts pod {pod} from node {node} of pool {pool}"),
    Reason.POOL_MARKED: _drain_options,
    Reason.POOL_DELETED: says("Deletes pool {pool} with its Machines"),
    Reason.CLUSTER_DELETED: says("Deletes the Cluster of {cluster} with all its Machines"),
    Reason.NAMESPACE_DELETED: says("Deletes the namespace of {cluster}"),
    Reason.DRAINING: _draining,
    Reason.DRAIN_TIMEOUT: _drain_timeout,
    Reason.PODS_UNKNOWN: says("Waiting for the pod list of the nodes of pool {pool}: its informers are not synced"),
    Reason.WORKLOAD_UNREACHABLE: _with_error("The workload cluster of pool {pool} is unreachable"),
    Reason.MACHINES_MARKING: says("Waiting for Cluster API to copy the drain options to all Machines of pool {pool}"),
    Reason.MACHINES_UNSEEN: says(
        "Pool {pool} reports {replicas} Machines but the cache has {machines}: it is deleted once all are in the cache"
    ),
    Reason.DEPLOYMENT_DELETING: says("The MachineDeployment of pool {pool} is being deleted"),
    Reason.NOT_PIVOTED: _with_error("Workers start after the Cluster API objects of {cluster} are moved into it"),
    Reason.CONTROL_PLANE_PENDING: says("Workers start after the control plane of {cluster} is initialized"),
    Reason.VERSION_WAITS: _version_waits,
    Reason.VERSION_STOPPED: says("Upgrade to {to} stopped at pool {pool}: {why}"),
    Reason.SKEW: says(
        "The control plane cannot go from {from} to {to}: upgrade one minor version at a time; downgrades are not "
        "supported"
    ),
    Reason.CLUSTER_GOING: _cluster_deleting,
    Reason.NAMESPACE_GOING: says("The namespace of {cluster} is being deleted"),
    Reason.INVALID: says("{error}"),
    Reason.PAUSED: says("The MachineDeployment of pool {pool} is paused"),
    Reason.CLUSTER_PAUSED: says("The Cluster of {cluster} is paused (spec.paused or annotation): nothing is written"),
    Reason.CLUSTER_GONE: says(
        "The Cluster of {cluster} was initialized and no longer exists here: it was moved to another management "
        "cluster, or deleted. It is not recreated. Delete this LatticeCluster, or remove its annotation "
        f"{names.CLUSTER_UID} to create the cluster again"
    ),
    Reason.NODE_CLASS_NOT_FOUND: says("LatticeNodeClass {class} of pool {pool} does not exist"),
    Reason.NODE_CLASS_UNFIT: _with_error("LatticeNodeClass {class} cannot be used by pool {pool}"),
    Reason.KEY_REFUSED: _key_refused,
    Reason.PROVIDER_NOT_SERVED: says("{error}"),
    Reason.FOREIGN: says("{name} is not managed by this LatticeCluster and is left unchanged"),
    Reason.DUPLICATE: says("Pool {pool} has two MachineDeployments: {kept} is used, {other} is left unchanged"),
    Reason.SELF_MANAGED: says(
        "{cluster} manages itself and cannot delete itself: move its Cluster API objects out with clusterctl, or "
        f'annotate it with {names.ORPHAN_ON_DELETE}: "true" to delete only the LatticeCluster'
    ),
    Reason.IDENTITY_UNKNOWN: _identity_unknown,
    Reason.AUTOSCALING_IGNORED: says(
        'pool="{pool}": min/max autoscaling not implemented, using fixed replicas={replicas}'
    ),
    Reason.AUTOSCALING_INCOMPLETE: says(
        "Pool {pool} has no {missing}: the cluster-autoscaler needs min and max, so the pool keeps replicas={replicas}"
    ),
    Reason.AUTOSCALED: says("The cluster-autoscaler scales pool {pool} between {min} and {max}"),
    Reason.WORKERS_UNCLAIMED: says(
        "MachineDeployment {name} with {replicas} replicas belongs to no pool of {cluster} and is left unchanged. Add "
        f"pool {names.DEFAULT_POOL} to spec.nodes.workerPools to manage it, or delete it"
    ),
    Reason.ORPHAN_DELETES: _orphan,
    Reason.ALL_POOLS_REMOVED: says("spec.nodes of {cluster} has no pools: all its workers are removed"),
    Reason.RECONCILED: says("All objects match the spec"),
    Reason.CONTROL_PLANE_GROWING: says("The control plane of {cluster} has {ready} of {desired} replicas ready"),
    Reason.PROVISIONING: says("{cluster} is being provisioned"),
    Reason.SCALING: says("Pool {pool} is scaling: {available} of {desired} nodes are available"),
    Reason.ROLLING: says("Pool {pool} is rolling out: {upToDate} of {desired} nodes are up to date"),
    Reason.AS_SPECIFIED: _as_specified,
    Reason.POD_AWAITED: _with_error("The drain of node {node} is waiting for this pod"),
    Reason.CLASS_USED: _class_used,
    Reason.CLASS_UNUSED: says("No pool uses LatticeNodeClass {class}"),
    Reason.CLASS_MADE: says("Pool {pool} of {cluster} has {nodes} nodes of this class"),
    Reason.CLASS_BEHIND: says("Pool {pool} of {cluster} has {nodes} nodes from an earlier spec of this class"),
    Reason.PLACED: _placed,
    Reason.FITS: says("Pool {pool} of {cluster} matches"),
    Reason.UNPLACED: _unplaced,
    Reason.LABEL_MISSING: says("Pool {pool} of {cluster} does not have label {key}"),
    Reason.LABEL_DIFFERS: says("Pool {pool} of {cluster} has label {key}={value}, not {wanted}"),
    Reason.TAINT_NOT_TOLERATED: says("Pool {pool} of {cluster} has taint {taint}, which is not tolerated"),
    Reason.POOL_EMPTY: says("Pool {pool} of {cluster} has no nodes"),
    Reason.POOL_DRAINING: says("Pool {pool} of {cluster} is being drained"),
    Reason.CLUSTER_NOT_READY: says("LatticeCluster {cluster} is not ready"),
    Reason.ADD_LABEL: says("Add the label to the pool, or remove it from the nodeSelector"),
    Reason.ADD_TOLERATION: says("Tolerate the taint, or remove it from the pool"),
    Reason.SCALE_UP: says("Set the replicas of the pool to 1 or more"),
    Reason.CREATE_CLASS: says("Create the LatticeNodeClass, or set another nodeClass on the pool"),
    Reason.MEND_CLASS: says("Add an entry for this provider to the class, or set another nodeClass on the pool"),
    Reason.MEND_KEYS: says("Remove these keys from the pool"),
    Reason.MEND_BUDGET: says("Make the PodDisruptionBudgets allow the evictions, or delete the pods"),
    Reason.READD_POOL: says("Add the pool to the spec again"),
    Reason.CHANGE_POLICY: says("Change spec.poolDeletionPolicy"),
    Reason.END_PAUSE: says("Unpause the Cluster"),
    Reason.MOVE_OUT: says(f'Move the cluster out, or annotate it with {names.ORPHAN_ON_DELETE}: "true"'),
    Reason.FORGET_CLUSTER: says(f"Remove annotation {names.CLUSTER_UID} to create the cluster again"),
    Reason.CHANGE_REPLICAS: says("Change the replicas of the pool"),
    Reason.WAIT_CONTROL_PLANE: says("Nothing: it changes when the control plane is initialized"),
}
