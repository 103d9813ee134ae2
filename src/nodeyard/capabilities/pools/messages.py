"""Reason and facts to text, for conditions, events, `why` and the dashboard alike.

What the design itself says word for word is its interface and stands here to the letter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.capabilities.pools.types import Pivot
from nodeyard.kube.json import Object
from nodeyard.plan.layout import counted
from nodeyard.plan.reasons import text_of
from nodeyard.plan.sentences import Facts, filled, listed, says


def text(reason: str, facts: Object) -> str:
    """A sentence for a reason of ours or of the engine; any other reason is its own text."""
    return text_of(_own, reason, facts)


def _own(reason: str, facts: Object) -> str:
    render = _TEXTS.get(reason)
    return reason if render is None else render(facts)


def _rolled(facts: Facts) -> str:
    why = ", ".join(facts.get("why", ()))
    return f"Replaces {counted(facts.get('nodes', 0), 'node')} of pool {facts['pool']}, one at a time: {why} changed"


def _control_plane(facts: Facts) -> str:
    base = f"Keeps the control plane of {facts['cluster']} at {facts.get('version', '')}".rstrip()
    if not facts.get("why"):
        return base
    replaced = counted(facts.get("nodes", 0), "control plane node")
    return f"{base}; replaces {replaced}: {', '.join(facts['why'])} changed"


def _draining(facts: Facts) -> str:
    nodes, pods = facts.get("nodes", 0), facts.get("pods", 0)
    return f"Pool {facts['pool']} is being drained: {counted(pods, 'pod')} left on {counted(nodes, 'node')}"


def _timeout(facts: Facts) -> str:
    blocking = listed([str(each) for each in facts.get("blocking", ())])
    after = f" after {facts['seconds']} s" if "seconds" in facts else ""
    return (
        f"Pool {facts['pool']} is not drained{after}: {blocking or 'pods remain'}. Its machines are kept, and eviction "
        "is tried again"
    )


def _waits(facts: Facts) -> str:
    version = f" (now at {facts['version']})" if facts.get("version") and facts["version"] != facts.get("to") else ""
    return f"Version {facts.get('to', '')} waits for {facts.get('what', 'the step before it')}{version}"


def _placed(facts: Facts) -> str:
    fitting, first = facts.get("fitting", 0), list(facts.get("pools", ()))
    more = f" and {fitting - len(first)} more" if fitting > len(first) else ""
    return f"{counted(fitting, 'pool')} {'fits' if fitting == 1 else 'fit'}: {', '.join(first)}{more}"


_REFUSED: Mapping[str, tuple[str, str]] = {
    Reason.LABEL_MISSING: ("lacks a label", "lack a label"),
    Reason.LABEL_DIFFERS: ("has another value of a label", "have another value of a label"),
    Reason.TAINT_NOT_TOLERATED: ("has a taint that is not tolerated", "have a taint that is not tolerated"),
    Reason.POOL_EMPTY: ("has no nodes", "have no nodes"),
    Reason.POOL_DRAINING: ("is being drained", "are being drained"),
    Reason.CLUSTER_NOT_READY: ("is in a cluster that is not ready", "are in clusters that are not ready"),
}


def _unplaced(facts: Facts) -> str:
    refused = [
        f"{number} {_REFUSED[reason][number != 1]}"
        for reason, number in facts.get("refused", {}).items()
        if reason in _REFUSED
    ]
    return f"No pool fits: {', '.join(refused)}" if refused else "No pool fits: there is none"


def _orphan(facts: Facts) -> str:
    pool = f"pool {facts['pool']}" if "pool" in facts else "a pool that is removed"
    return f"Orphan still deletes the machines of {pool}: Cluster API cannot leave them. Their pods are rescheduled"


def _with_error(sentence: str) -> Callable[[Facts], str]:
    """A sentence, and the error where there is one."""

    def render(facts: Facts) -> str:
        base = filled(sentence, facts)
        return f"{base}: {facts['error']}" if facts.get("error") else base

    return render


_TEXTS: Mapping[str, Callable[[Facts], str]] = {
    Reason.NAMESPACE_CREATED: says("Makes the namespace of {cluster}"),
    Reason.CLUSTER_APPLIED: says("Keeps the Cluster of {cluster} as it should be"),
    Reason.INFRASTRUCTURE_APPLIED: says("Keeps the infrastructure of {cluster} as it should be"),
    Reason.CONTROL_PLANE_APPLIED: _control_plane,
    Reason.TEMPLATE_CREATED: says("Makes the template {template}"),
    Reason.TEMPLATE_NOTED: says("Notes on the template {template} what it is made from; no node is replaced"),
    Reason.TEMPLATE_COLLECTED: says("Deletes the template {template}, which nothing refers to any more"),
    Reason.POOL_CREATED: says("Makes pool {pool} of {cluster}, without nodes at first"),
    Reason.POOL_UPDATED: says("Changes pool {pool} in place; no node is replaced"),
    Reason.POOL_ROLLED: _rolled,
    Reason.POOL_ADOPTED: says("Takes over what was there before as pool {pool} of {cluster}; no node is replaced"),
    Reason.POOL_SCALED: says("Scales pool {pool} from {from} to {to}"),
    Reason.REPLICAS_TAKEN_OVER: says("Takes over the number of nodes of pool {pool}, which stays {to}"),
    Reason.FIELDS_TAKEN_OVER: says("Takes over {object}, which clusterctl has moved here; nothing in it changes"),
    Reason.CLUSTER_NOTED: says("Notes that the Cluster of {cluster} has come up: it is not made a second time"),
    Reason.FINALIZER_ADDED: says("Takes {cluster} into care"),
    Reason.FINALIZER_REMOVED: says("Is done with {cluster}"),
    Reason.DRAIN_STARTED: says("Begins to drain pool {pool}, which is not wanted any more"),
    Reason.DRAIN_CANCELLED: says("Stops draining pool {pool}, which is wanted again"),
    Reason.NODE_CORDONED: says("Cordons node {node} of pool {pool}"),
    Reason.NODE_UNCORDONED: says("Uncordons node {node} of pool {pool}, which is wanted again"),
    Reason.POD_EVICTED: says("Evicts {pod} from node {node} of pool {pool}"),
    Reason.POOL_MARKED: says("Tells the machines of pool {pool} how they are to go"),
    Reason.POOL_DELETED: says("Deletes pool {pool} with its machines"),
    Reason.CLUSTER_DELETED: says("Deletes the Cluster of {cluster} with all its machines"),
    Reason.NAMESPACE_DELETED: says("Deletes the namespace of {cluster}"),
    Reason.DRAINING: _draining,
    Reason.DRAIN_TIMEOUT: _timeout,
    Reason.PODS_UNKNOWN: says("Which pods run on the nodes of pool {pool} is not known yet"),
    Reason.WORKLOAD_UNREACHABLE: _with_error("The cluster of pool {pool} cannot be reached"),
    Reason.MACHINES_MARKING: says("Waits until all machines of pool {pool} know how they are to go"),
    Reason.MACHINES_UNSEEN: says(
        "Pool {pool} has {replicas} machines, of which {machines} can be seen: it is not deleted before all can"
    ),
    Reason.DEPLOYMENT_DELETING: says("The MachineDeployment of pool {pool} is being deleted"),
    Reason.NOT_PIVOTED: _with_error("Workers start when {cluster} has taken over its own Cluster API objects"),
    Reason.CONTROL_PLANE_PENDING: says("Workers start when the control plane of {cluster} runs"),
    Reason.VERSION_WAITS: _waits,
    Reason.VERSION_STOPPED: says("Version {to} stops before pool {pool}: {why}"),
    Reason.SKEW: says("The control plane runs {from} and cannot go to {to}: one minor version at a time, and not back"),
    Reason.CLUSTER_GOING: says("The Cluster of {cluster} is being deleted; {machines} machines are left"),
    Reason.NAMESPACE_GOING: says("The namespace of {cluster} is being deleted"),
    Reason.INVALID: says("{error}"),
    Reason.PAUSED: says("{cluster} is paused"),
    Reason.CLUSTER_PAUSED: says("The Cluster of {cluster} is paused: nothing is written"),
    Reason.CLUSTER_GONE: says(
        "The Cluster of {cluster} had come up and is not here any more: it was moved to another management cluster, or "
        "deleted. It is not made a second time. Delete this LatticeCluster, or take its annotation "
        f"{names.CLUSTER_UID} off to have the cluster made anew"
    ),
    Reason.NODE_CLASS_NOT_FOUND: says("Pool {pool} names the LatticeNodeClass {class}, which does not exist"),
    Reason.NODE_CLASS_UNFIT: _with_error("The LatticeNodeClass {class} does not fit pool {pool}"),
    Reason.KEY_REFUSED: lambda facts: (
        f"Nodes of pool {facts['pool']} could not join: {'; '.join(facts.get('faults', ()))}"
    ),
    Reason.PROVIDER_NOT_SERVED: says("{error}"),
    Reason.FOREIGN: says("{name} is not ours and is left alone"),
    Reason.DUPLICATE: says("Pool {pool} has two MachineDeployments: {kept} is used, {other} is left alone"),
    Reason.SELF_MANAGED: says(
        "{cluster} manages itself and cannot tear itself down: move its Cluster API objects out, or annotate it with "
        f'{names.ORPHAN_ON_DELETE}: "true" to let go of it as it is'
    ),
    Reason.IDENTITY_UNKNOWN: _with_error(
        "{cluster} may be the cluster we run on, and cannot be asked: it is deleted once it can be reached, or with "
        f'spec.pivot: {Pivot.NEVER}, or let go of with {names.ORPHAN_ON_DELETE}: "true"'
    ),
    Reason.AUTOSCALING_IGNORED: says(
        'pool="{pool}": min/max autoscaling not implemented, using fixed replicas={replicas}'
    ),
    Reason.AUTOSCALED: says("The cluster-autoscaler scales pool {pool} between {min} and {max}"),
    Reason.ORPHAN_DELETES: _orphan,
    Reason.ALL_POOLS_REMOVED: says("{cluster} has no pools any more: all its workers go"),
    Reason.RECONCILED: says("Everything is as the spec says"),
    Reason.CONTROL_PLANE_GROWING: says("The control plane of {cluster} has {ready} of {desired} replicas ready"),
    Reason.PROVISIONING: says("{cluster} is being provisioned"),
    Reason.SCALING: says("Pool {pool} is being scaled: {available} of {desired} available"),
    Reason.ROLLING: says("Pool {pool} is being rolled: {upToDate} of {desired} up to date"),
    Reason.AS_SPECIFIED: says("As {cluster} says"),
    Reason.NOT_OURS: says("Not in any pool: no Machine of a LatticeCluster has become this node"),
    Reason.PLACED: _placed,
    Reason.FITS: says("Pool {pool} of {cluster} fits"),
    Reason.UNPLACED: _unplaced,
    Reason.LABEL_MISSING: says("Pool {pool} of {cluster} does not have the label {key}"),
    Reason.LABEL_DIFFERS: says("Pool {pool} of {cluster} has the label {key}={value}, not {wanted}"),
    Reason.TAINT_NOT_TOLERATED: says("Pool {pool} of {cluster} has the taint {taint}, which is not tolerated"),
    Reason.POOL_EMPTY: says("Pool {pool} of {cluster} has no nodes"),
    Reason.POOL_DRAINING: says("Pool {pool} of {cluster} is being drained"),
    Reason.CLUSTER_NOT_READY: says("{cluster} is not ready"),
    Reason.ADD_LABEL: says("Give the pool that label, or take it out of the nodeSelector"),
    Reason.ADD_TOLERATION: says("Tolerate that taint, or take it off the pool"),
    Reason.SCALE_UP: says("Give the pool replicas"),
    Reason.CREATE_CLASS: says("Create that LatticeNodeClass, or name another"),
    Reason.MEND_CLASS: says("Give the class an entry for this provider, or name another"),
    Reason.MEND_KEYS: says("Take those keys out of the pool"),
    Reason.MEND_BUDGET: says("Let the budgets allow the evictions, or delete those pods"),
    Reason.READD_POOL: says("Put the pool back into the spec"),
    Reason.CHANGE_POLICY: says("Change spec.poolDeletionPolicy"),
    Reason.END_PAUSE: says("End the pause"),
    Reason.MOVE_OUT: says(f'Move the cluster out, or annotate it with {names.ORPHAN_ON_DELETE}: "true"'),
    Reason.FORGET_CLUSTER: says(f"Take the annotation {names.CLUSTER_UID} off to have the cluster made anew"),
    Reason.CHANGE_REPLICAS: says("Change the replicas of the pool"),
    Reason.WAIT_CONTROL_PLANE: says("It changes by itself when the control plane is there"),
}
