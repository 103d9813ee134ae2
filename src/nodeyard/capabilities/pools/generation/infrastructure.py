"""The provider's objects: its cluster, and what machines are made from.

Two steps lead to a template: what was asked for, taken from the class and from the cluster, and then the spec, with
defaults for the rest. The hash of the first says whether a user changed anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.generation import aws, docker, proxmox
from nodeyard.capabilities.pools.generation.kinds import Choice, choose
from nodeyard.capabilities.pools.generation.metadata import describe
from nodeyard.capabilities.pools.generation.template import Template, hashed
from nodeyard.capabilities.pools.generation.unfit import Unfit
from nodeyard.capabilities.pools.snapshot import Served
from nodeyard.capabilities.pools.types import LatticeCluster, LatticeNodeClass, WorkerPool
from nodeyard.kube.json import Object


@dataclass(frozen=True)
class Provider:
    """How one provider is written."""

    infrastructure: Callable[[LatticeCluster, Choice], Object]
    """The spec of its cluster."""
    control_plane: Callable[[LatticeCluster], Object]
    """What is asked for of a control plane machine."""
    worker: Callable[[LatticeCluster, Any], Object]
    """What is asked for of a worker, by the class' entry for the provider."""
    machine: Callable[[Object, Choice, bool], Object]
    """The spec of a machine from what is asked for; the flag says whether it is of the control plane."""


_PROVIDERS: Final = {
    "docker": Provider(docker.infrastructure, docker.control_plane, docker.worker, docker.machine),
    "aws": Provider(aws.infrastructure, aws.control_plane, aws.worker, aws.machine),
    "proxmox": Provider(proxmox.infrastructure, proxmox.control_plane, proxmox.worker, proxmox.machine),
}


def infrastructure_cluster(lc: LatticeCluster, served: Served) -> Object:
    """The provider's cluster, of the same name. Raises Unserved and Unfit."""
    choice = choose(lc, served)
    return {
        "apiVersion": choice.api_version,
        "kind": choice.family.cluster,
        "metadata": describe(lc, lc.name),
        "spec": _PROVIDERS[choice.provider].infrastructure(lc, choice),
    }


def control_plane_template(lc: LatticeCluster, served: Served) -> Template:
    """What control plane machines are made from. Raises Unserved and Unfit."""
    choice = choose(lc, served)
    provider = _PROVIDERS[choice.provider]
    asked = provider.control_plane(lc)
    return Template(
        api_version=choice.api_version,
        kind=choice.family.machine_template,
        prefix=names.control_plane(lc.name),
        spec={"template": {"spec": provider.machine(asked, choice, True)}},
        inputs=hashed(asked),
    )


def worker_template(
    lc: LatticeCluster, pool_id: str, pool: WorkerPool, node_class: LatticeNodeClass | None, served: Served
) -> Template:
    """What machines of the pool are made from. Raises Unserved and Unfit."""
    choice = choose(lc, served)
    provider = _PROVIDERS[choice.provider]
    asked = provider.worker(lc, _entry(choice.provider, pool_id, pool, node_class))
    return Template(
        api_version=choice.api_version,
        kind=choice.family.machine_template,
        prefix=names.deployment(lc.name, pool_id),
        spec={"template": {"spec": provider.machine(asked, choice, False)}},
        inputs=hashed(asked),
        node_class=pool.node_class,
        pool=pool_id,
    )


def _entry(provider: str, pool_id: str, pool: WorkerPool, node_class: LatticeNodeClass | None) -> Any:
    """What the pool's class says of the provider; None where the pool has no class."""
    if not pool.node_class:
        return None
    if node_class is None:
        raise Unfit(
            f"spec.nodes.workerPools[{pool_id}].nodeClass",
            f'there is no LatticeNodeClass "{pool.node_class}"; create it, or name another',
        )
    entry = getattr(node_class.spec.providers, provider)
    if entry is None:
        raise Unfit(
            f"spec.providers.{provider}",
            f'LatticeNodeClass "{pool.node_class}" has no entry for {provider}; add spec.providers.{provider}',
        )
    return entry
