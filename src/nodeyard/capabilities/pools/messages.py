"""Reason and facts to text, for conditions, events, `why` and the dashboard alike.

What the design itself says word for word is its interface and stands here to the letter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.capabilities.pools.types import Pivot
from nodeyard.kube.json import Object
from nodeyard.plan.reasons import text_of

Facts = Mapping[str, Any]
_NAMED = 5


def text(reason: str, facts: Object) -> str:
    """A sentence for a reason of ours or of the engine; any other reason is its own text."""
    return text_of(_own, reason, facts)


def _own(reason: str, facts: Object) -> str:
    render = _TEXTS.get(reason)
    return reason if render is None else render(facts)


class _Blank(dict[str, Any]):
    """A fact that is not there is empty."""

    def __missing__(self, key: str) -> str:
        return ""


def _says(sentence: str) -> Callable[[Facts], str]:
    return lambda facts: sentence.format_map(_Blank(facts)).strip()


def counted(number: int, word: str) -> str:
    return f"{number} {word if number == 1 else f'{word}s'}"


def listed(items: list[str]) -> str:
    """The first few, and how many more."""
    shown = ", ".join(items[:_NAMED])
    return f"{shown} and {len(items) - _NAMED} more" if len(items) > _NAMED else shown


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
        base = sentence.format_map(_Blank(facts)).strip()
        return f"{base}: {facts['error']}" if facts.get("error") else base

    return render


_TEXTS: Mapping[str, Callable[[Facts], str]] = {
    Reason.NAMESPACE_CREATED: _says("Makes the namespace of {cluster}"),
    Reason.CLUSTER_APPLIED: _says("Keeps the Cluster of {cluster} as it should be"),
    Reason.INFRASTRUCTURE_APPLIED: _says("Keeps the infrastructure of {cluster} as it should be"),
    Reason.CONTROL_PLANE_APPLIED: _control_plane,
    Reason.TEMPLATE_CREATED: _says("Makes the template {template}"),
    Reason.TEMPLATE_NOTED: _says("Notes on the template {template} what it is made from; no node is replaced"),
    Reason.TEMPLATE_COLLECTED: _says("Deletes the template {template}, which nothing refers to any more"),
    Reason.POOL_CREATED: _says("Makes pool {pool} of {cluster}, without nodes at first"),
    Reason.POOL_UPDATED: _says("Changes pool {pool} in place; no node is replaced"),
    Reason.POOL_ROLLED: _rolled,
    Reason.POOL_ADOPTED: _says("Takes over what was there before as pool {pool} of {cluster}; no node is replaced"),
    Reason.POOL_SCALED: _says("Scales pool {pool} from {from} to {to}"),
    Reason.REPLICAS_TAKEN_OVER: _says("Takes over the number of nodes of pool {pool}, which stays {to}"),
    Reason.FINALIZER_ADDED: _says("Takes {cluster} into care"),
    Reason.FINALIZER_REMOVED: _says("Is done with {cluster}"),
    Reason.DRAIN_STARTED: _says("Begins to drain pool {pool}, which is not wanted any more"),
    Reason.DRAIN_CANCELLED: _says("Stops draining pool {pool}, which is wanted again"),
    Reason.NODE_CORDONED: _says("Cordons node {node} of pool {pool}"),
    Reason.NODE_UNCORDONED: _says("Uncordons node {node} of pool {pool}, which is wanted again"),
    Reason.POD_EVICTED: _says("Evicts {pod} from node {node} of pool {pool}"),
    Reason.POOL_MARKED: _says("Tells the machines of pool {pool} how they are to go"),
    Reason.POOL_DELETED: _says("Deletes pool {pool} with its machines"),
    Reason.CLUSTER_DELETED: _says("Deletes the Cluster of {cluster} with all its machines"),
    Reason.NAMESPACE_DELETED: _says("Deletes the namespace of {cluster}"),
    Reason.DRAINING: _draining,
    Reason.DRAIN_TIMEOUT: _timeout,
    Reason.PODS_UNKNOWN: _says("Which pods run on the nodes of pool {pool} is not known yet"),
    Reason.WORKLOAD_UNREACHABLE: _with_error("The cluster of pool {pool} cannot be reached"),
    Reason.MACHINES_MARKING: _says("Waits until all machines of pool {pool} know how they are to go"),
    Reason.DEPLOYMENT_DELETING: _says("The MachineDeployment of pool {pool} is being deleted"),
    Reason.NOT_PIVOTED: _with_error("Workers start when {cluster} has taken over its own Cluster API objects"),
    Reason.CONTROL_PLANE_PENDING: _says("Workers start when the control plane of {cluster} runs"),
    Reason.VERSION_WAITS: _waits,
    Reason.VERSION_STOPPED: _says("Version {to} stops before pool {pool}: {why}"),
    Reason.SKEW: _says(
        "The control plane runs {from} and cannot go to {to}: one minor version at a time, and not back"
    ),
    Reason.CLUSTER_GOING: _says("The Cluster of {cluster} is being deleted; {machines} machines are left"),
    Reason.NAMESPACE_GOING: _says("The namespace of {cluster} is being deleted"),
    Reason.INVALID: _says("{error}"),
    Reason.PAUSED: _says("{cluster} is paused"),
    Reason.CLUSTER_PAUSED: _says("The Cluster of {cluster} is paused: nothing is written"),
    Reason.NODE_CLASS_NOT_FOUND: _says("Pool {pool} names the LatticeNodeClass {class}, which does not exist"),
    Reason.NODE_CLASS_UNFIT: _with_error("The LatticeNodeClass {class} does not fit pool {pool}"),
    Reason.KEY_REFUSED: lambda facts: (
        f"Nodes of pool {facts['pool']} could not join: {'; '.join(facts.get('faults', ()))}"
    ),
    Reason.PROVIDER_NOT_SERVED: _says("{error}"),
    Reason.FOREIGN: _says("{name} is not ours and is left alone"),
    Reason.DUPLICATE: _says("Pool {pool} has two MachineDeployments: {kept} is used, {other} is left alone"),
    Reason.SELF_MANAGED: _says(
        "{cluster} manages itself and cannot tear itself down: move its Cluster API objects out, or annotate it with "
        f'{names.ORPHAN_ON_DELETE}: "true" to let go of it as it is'
    ),
    Reason.IDENTITY_UNKNOWN: _with_error(
        "{cluster} may be the cluster we run on, and cannot be asked: it is deleted once it can be reached, or with "
        f'spec.pivot: {Pivot.NEVER}, or let go of with {names.ORPHAN_ON_DELETE}: "true"'
    ),
    Reason.AUTOSCALING_IGNORED: _says(
        'pool="{pool}": min/max autoscaling not implemented, using fixed replicas={replicas}'
    ),
    Reason.AUTOSCALED: _says("The cluster-autoscaler scales pool {pool} between {min} and {max}"),
    Reason.ORPHAN_DELETES: _orphan,
    Reason.ALL_POOLS_REMOVED: _says("{cluster} has no pools any more: all its workers go"),
    Reason.RECONCILED: _says("Everything is as the spec says"),
    Reason.CONTROL_PLANE_GROWING: _says("The control plane of {cluster} has {ready} of {desired} replicas ready"),
    Reason.PROVISIONING: _says("{cluster} is being provisioned"),
    Reason.SCALING: _says("Pool {pool} is being scaled: {available} of {desired} available"),
    Reason.ROLLING: _says("Pool {pool} is being rolled: {upToDate} of {desired} up to date"),
    Reason.AS_SPECIFIED: _says("As {cluster} says"),
    Reason.NOT_OURS: _says("Not in any pool: no Machine of a LatticeCluster has become this node"),
    Reason.PLACED: _placed,
    Reason.FITS: _says("Pool {pool} of {cluster} fits"),
    Reason.UNPLACED: _unplaced,
    Reason.LABEL_MISSING: _says("Pool {pool} of {cluster} does not have the label {key}"),
    Reason.LABEL_DIFFERS: _says("Pool {pool} of {cluster} has the label {key}={value}, not {wanted}"),
    Reason.TAINT_NOT_TOLERATED: _says("Pool {pool} of {cluster} has the taint {taint}, which is not tolerated"),
    Reason.POOL_EMPTY: _says("Pool {pool} of {cluster} has no nodes"),
    Reason.POOL_DRAINING: _says("Pool {pool} of {cluster} is being drained"),
    Reason.CLUSTER_NOT_READY: _says("{cluster} is not ready"),
    Reason.ADD_LABEL: _says("Give the pool that label, or take it out of the nodeSelector"),
    Reason.ADD_TOLERATION: _says("Tolerate that taint, or take it off the pool"),
    Reason.SCALE_UP: _says("Give the pool replicas"),
    Reason.CREATE_CLASS: _says("Create that LatticeNodeClass, or name another"),
    Reason.MEND_CLASS: _says("Give the class an entry for this provider, or name another"),
    Reason.MEND_KEYS: _says("Take those keys out of the pool"),
    Reason.MEND_BUDGET: _says("Let the budgets allow the evictions, or delete those pods"),
    Reason.READD_POOL: _says("Put the pool back into the spec"),
    Reason.CHANGE_POLICY: _says("Change spec.poolDeletionPolicy"),
    Reason.END_PAUSE: _says("End the pause"),
    Reason.MOVE_OUT: _says(f'Move the cluster out, or annotate it with {names.ORPHAN_ON_DELETE}: "true"'),
    Reason.CHANGE_REPLICAS: _says("Change the replicas of the pool"),
    Reason.WAIT_CONTROL_PLANE: _says("It changes by itself when the control plane is there"),
}
