"""Provider objects: the infrastructure cluster and the machine templates.

A template is generated in two steps: the inputs, taken from the class and the cluster, and the spec, with defaults for
the rest. The hash of the inputs shows if a user changed anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.planning.generation import aws, docker, proxmox
from nodeyard.capabilities.pools.planning.generation.kinds import Choice, InvalidSpec, choose
from nodeyard.capabilities.pools.planning.generation.metadata import object_metadata
from nodeyard.capabilities.pools.planning.generation.template import Template, hash_inputs
from nodeyard.capabilities.pools.snapshot import Served
from nodeyard.capabilities.pools.types import DockerClass, LatticeCluster, LatticeNodeClass, WorkerPool
from nodeyard.kube.json import Object


@dataclass(frozen=True)
class Provider:
    """Generators of one provider."""

    infrastructure: Callable[[LatticeCluster, Choice], Object]
    """Returns the spec of the infrastructure cluster."""
    control_plane: Callable[[LatticeCluster], Object]
    """Returns the inputs of a control plane machine."""
    worker: Callable[[LatticeCluster, Any], Object]
    """Returns the inputs of a worker, from the class's entry for the provider."""
    machine: Callable[[Object, Choice, bool], Object]
    """Returns the machine spec from the inputs; the flag is True for the control plane."""


_PROVIDERS: Final = {
    "docker": Provider(docker.infrastructure, docker.control_plane, docker.worker, docker.machine),
    "aws": Provider(aws.infrastructure, aws.control_plane, aws.worker, aws.machine),
    "proxmox": Provider(proxmox.infrastructure, proxmox.control_plane, proxmox.worker, proxmox.machine),
}


def infrastructure_cluster(lc: LatticeCluster, served: Served) -> Object:
    """Return the infrastructure cluster, which has the cluster's name. Raises NotServed and InvalidSpec."""
    choice = choose(lc, served)
    return {
        "apiVersion": choice.api_version,
        "kind": choice.family.cluster,
        "metadata": object_metadata(lc, lc.name),
        "spec": _PROVIDERS[choice.provider].infrastructure(lc, choice),
    }


def control_plane_template(lc: LatticeCluster, served: Served) -> Template:
    """Return the machine template of the control plane. Raises NotServed and InvalidSpec."""
    choice = choose(lc, served)
    provider = _PROVIDERS[choice.provider]
    inputs = provider.control_plane(lc)
    return Template(
        api_version=choice.api_version,
        kind=choice.family.machine_template,
        prefix=names.control_plane(lc.name),
        spec={"template": {"spec": provider.machine(inputs, choice, True)}},
        inputs=hash_inputs(inputs),
    )


def worker_template(
    lc: LatticeCluster, pool_id: str, pool: WorkerPool, node_class: LatticeNodeClass | None, served: Served
) -> Template:
    """Return the machine template of a pool. Raises NotServed and InvalidSpec."""
    choice = choose(lc, served)
    provider = _PROVIDERS[choice.provider]
    inputs = provider.worker(lc, _entry(choice.provider, pool_id, pool, node_class))
    return Template(
        api_version=choice.api_version,
        kind=choice.family.machine_template,
        prefix=names.deployment(lc.name, pool_id),
        spec={"template": {"spec": provider.machine(inputs, choice, False)}},
        inputs=hash_inputs(inputs),
        node_class=pool.node_class,
        pool=pool_id,
    )


def class_inputs(lc: LatticeCluster, node_class: LatticeNodeClass) -> str:
    """Return the hash of a class's entry for the provider of a cluster; empty without an entry."""
    provider = lc.spec.provider.config.name
    entry = getattr(node_class.spec.providers, provider) if provider else None
    if isinstance(entry, DockerClass):
        entry = msgspec.structs.replace(entry, memory="", cpus="")  # CAPD has no such settings
    return "" if entry is None else hash_inputs(msgspec.to_builtins(entry))


def _entry(provider: str, pool_id: str, pool: WorkerPool, node_class: LatticeNodeClass | None) -> Any:
    """Return the class's entry for the provider; None if the pool has no class."""
    if not pool.node_class:
        return None
    if node_class is None:
        raise InvalidSpec(
            f"spec.nodes.workerPools[{pool_id}].nodeClass",
            f'LatticeNodeClass "{pool.node_class}" does not exist; create it, or set another nodeClass',
        )
    entry = getattr(node_class.spec.providers, provider)
    if entry is None:
        raise InvalidSpec(
            f"spec.providers.{provider}",
            f'LatticeNodeClass "{pool.node_class}" has no entry for {provider}; add spec.providers.{provider}',
        )
    return entry
