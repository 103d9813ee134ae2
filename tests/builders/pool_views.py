"""View over in-memory snapshots of pools, as `collect` reads it from the cache."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.controller import POOLS
from nodeyard.capabilities.pools.snapshot import PoolsSnapshot
from nodeyard.capabilities.pools.types import LatticeService, resolved_pools
from nodeyard.client.decoder import Malformed


class PoolsView:
    """View of the snapshots of some clusters and services, on a server whose uid is `root`."""

    uid = "root"

    def __init__(
        self,
        *worlds: PoolsSnapshot,
        services: Sequence[LatticeService] = (),
        malformed: Mapping[tuple[str, str], str] | None = None,
    ) -> None:
        self._worlds = {world.cluster.name: world for world in worlds}
        self._services = services
        self._malformed = malformed or {}

    def all(self, kind: str) -> Sequence[Any]:
        match kind:
            case names.CLUSTER_KIND:
                return [world.cluster for _name, world in sorted(self._worlds.items())]
            case names.SERVICE_KIND:
                return self._services
        return ()

    def get(self, kind: str, name: str, namespace: str = "") -> Any | None:
        if kind == names.CLASS_KIND:
            classes = [world.classes[name] for world in self._worlds.values() if name in world.classes]
            return classes[0] if classes else None
        if kind == names.CLUSTER_KIND:
            return self._worlds[name].cluster if name in self._worlds else None
        world = self._world_of(namespace)
        if world is None:
            return None
        management = world.management
        if kind == "MachineDeployment":
            return management.deployments.get(name)
        return {"Cluster": management.cluster, "KubeadmControlPlane": management.control_plane}.get(kind)

    def indexed(self, kind: str, index: str, value: str) -> Sequence[Any]:
        if (kind, index) == (names.CLUSTER_KIND, names.BY_CLASS):
            return [each for each in self.all(kind) if value in _classes(each)]
        world = self._world_of(value) if index == names.BY_NAMESPACE else None
        if world is None:
            return ()
        management = world.management
        found: dict[str, Iterable[Any]] = {
            "MachineDeployment": management.deployments.values(),
            "Machine": management.machines,
            "MachineSet": management.machine_sets,
        }
        return list(found.get(kind, (each for each in management.templates if each.kind == kind)))

    def aggregate(self, name: str, group: str) -> Any:
        (declared,) = [each for each in POOLS.aggregates if each.name == name]
        value = declared.empty()
        for world in self._worlds.values():
            for deployment in world.management.deployments.values():
                value = declared.add(value, deployment) if group in declared.group(deployment) else value
        return value

    def malformed(self, kind: str) -> Mapping[tuple[str, str], Malformed]:
        errors = self._malformed if kind == names.SERVICE_KIND else {}
        return {key: Malformed("MODIFIED", *key, "", "7", error) for key, error in errors.items()}

    def is_synced(self, kind: str) -> bool:
        return True

    def versions(self, group: str, kind: str) -> Sequence[str]:
        return next((world.served.of(kind) for world in self._worlds.values()), ())

    def cluster(self, name: str) -> _Elsewhere:
        world = self._worlds.get(name)
        return _Elsewhere(world.workload.uid if world else "", world.workload.error if world else "")

    def _world_of(self, namespace: str) -> PoolsSnapshot | None:
        return self._worlds.get(namespace.removeprefix(names.namespace("")))


class _Elsewhere:
    """Remote cluster with a known uid."""

    is_connected = True

    def __init__(self, uid: str, error: str) -> None:
        self.uid = uid
        self.error = error
        self.is_connected = not error

    def is_synced(self, kind: str) -> bool:
        return False


def _classes(cluster: Any) -> set[str]:
    return {pool.node_class for pool in resolved_pools(cluster.spec.nodes).values()}
