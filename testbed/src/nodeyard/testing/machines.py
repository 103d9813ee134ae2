"""Cluster API with machines that become nodes, on `nodeyard_api`.

    nodes = machines.wait_for_nodes("c", "c-pool-gpu", 3)
    machines.add_pods(nodes[0], 2, app="db")
    machines.add_budget("db", min_available=2)

On the embedded server all of Cluster API is simulated. On the real one its core manager runs; only the bootstrap,
control plane and infrastructure providers and the kubelets are simulated, which register under NodeRestriction. The
cluster manages itself: Cluster API objects and nodes are on one server. See docs/sim.md.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, Final

from nodeyard.client import Client
from nodeyard.client.config import Config, Impersonation
from nodeyard.client.http_transport import HttpTransport
from nodeyard.client.kubeconfig import load_kubeconfig
from nodeyard.kube.json import Object
from nodeyard.process.clock import SystemClock
from nodeyard.sim import stand_in_crds
from nodeyard.sim.machines.controllers import SimEnvironment
from nodeyard.sim.world import World
from nodeyard.testing.loop_thread import LoopThread
from nodeyard.testing.rest import Rest, RestError
from nodeyard.testing.session import MERGE
from nodeyard.testing.wait import until

PATIENCE_SECONDS: Final = 60.0
DRAIN_RETRY_SECONDS: Final = 1.0
TRIGGER_SECONDS: Final = 1.0
STAGES: Final = ("nodes", "pods", "providers")
CLUSTER_API: Final = "/apis/cluster.x-k8s.io/v1beta2"
CONTROL_PLANES: Final = "/apis/controlplane.cluster.x-k8s.io/v1beta2"
REMOVED: Final = (
    *(f"{CLUSTER_API}/{plural}" for plural in ("machinedeployments", "machinesets", "machines")),
    f"{CONTROL_PLANES}/kubeadmcontrolplanes",
    f"{CLUSTER_API}/clusters",
)
BUDGETS: Final = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
PODS: Final = "/api/v1/namespaces/default/pods"

_numbers = itertools.count(1)


class MachineWorld(LoopThread):
    """Simulated machines on `api`; closing it removes all clusters."""

    def __init__(self, api: Any) -> None:
        super().__init__("machines")
        self._api = api
        self._config: Config = load_kubeconfig([api.kubeconfig])
        self._client: Client
        self._world: World
        self._triggered = 0.0
        self._created: list[str] = []
        """Paths of the pods and budgets created here."""
        self.rest: Rest = api.rest

    async def _start(self) -> None:
        clock = SystemClock()
        self._client = Client(HttpTransport(self._config, clock=clock))
        environment = SimEnvironment(kubeconfig=lambda: self._api.config, drain_retry=DRAIN_RETRY_SECONDS)
        if self.is_real:
            self._api.start_cluster_api()
            environment = replace(environment, as_kubelet=self._as_kubelet)
        else:
            await stand_in_crds.install(self._client, clock, "cluster-api", "kubeadm", "docker", "aws", "proxmox")
        stages = STAGES if self.is_real else (*STAGES, "machines")
        self._world = World(self._client, clock, stages=stages, environment=environment)
        await self._world.__aenter__()

    async def _stop(self) -> None:
        await self._world.__aexit__(None, None, None)
        await self._client.close()

    def close(self) -> None:
        try:
            self.clear()
        finally:
            super().close()

    @asynccontextmanager
    async def _as_kubelet(self, name: str) -> AsyncIterator[Client]:
        who = Impersonation(f"system:node:{name}", groups=("system:nodes", "system:authenticated"))
        config = replace(self._config, credentials=replace(self._config.credentials, impersonate=who))
        client = Client(HttpTransport(config, clock=SystemClock()))
        try:
            yield client
        finally:
            await client.close()

    @property
    def is_real(self) -> bool:
        return bool(getattr(self._api, "is_real", False))

    @property
    def errors(self) -> list[str]:
        """Return the errors of the simulation."""
        return self._world.errors

    # objects

    def deployment(self, cluster: str, name: str) -> Object | None:
        return self._get(f"{CLUSTER_API}/namespaces/{namespace(cluster)}/machinedeployments/{name}")

    def machines(self, cluster: str, deployment: str) -> list[Object]:
        """Return the machines of a MachineDeployment, by name."""
        selector = f"labelSelector=cluster.x-k8s.io/deployment-name={deployment}"
        items = self.rest.get(f"{CLUSTER_API}/namespaces/{namespace(cluster)}/machines?{selector}")["items"]
        return sorted(items, key=name_of)

    def nodes(self, cluster: str, deployment: str) -> list[Object]:
        """Return the nodes of its machines, by name."""
        references = [(one.get("status") or {}).get("nodeRef") for one in self.machines(cluster, deployment)]
        found = [self._get(f"/api/v1/nodes/{one['name']}") for one in references if one]
        return [one for one in found if one is not None]

    # waiting

    def wait_until_initialized(self, cluster: str) -> None:
        """Wait until the control plane is initialized and the kubeconfig Secret exists."""
        place = namespace(cluster)

        def is_up() -> bool:
            found = self._get(f"{CLUSTER_API}/namespaces/{place}/clusters/{cluster}")
            done = ((found or {}).get("status") or {}).get("initialization") or {}
            secret = self._get(f"/api/v1/namespaces/{place}/secrets/{cluster}-kubeconfig")
            return bool(done.get("controlPlaneInitialized")) and secret is not None

        self._until(is_up, f"cluster {cluster} is initialized")

    def wait_for_nodes(self, cluster: str, deployment: str, count: int) -> list[Object]:
        """Wait for exactly `count` machines, up to date and available, with ready nodes; return the nodes."""
        self._until(lambda: self._has_settled(cluster, deployment, count), f"{deployment} has {count} machines")
        return self.nodes(cluster, deployment)

    def wait_until_removed(self, cluster: str, deployment: str) -> None:
        """Wait until the MachineDeployment and its machines are deleted; trigger drain retries meanwhile."""

        def is_gone() -> bool:
            self._trigger(self._path(cluster, one) for one in self.machines(cluster, deployment))
            return self.deployment(cluster, deployment) is None and not self.machines(cluster, deployment)

        self._until(is_gone, f"{deployment} and its machines are gone")

    def wait_until_deleted(self, cluster: str) -> None:
        """Wait until a deleted Cluster is gone with everything but its nodes."""
        path = f"{CLUSTER_API}/namespaces/{namespace(cluster)}/clusters/{cluster}"

        def is_gone() -> bool:
            self._trigger([path])
            return self._get(path) is None

        self._until(is_gone, f"cluster {cluster} is gone")

    def _has_settled(self, cluster: str, deployment: str, count: int) -> bool:
        found = self.deployment(cluster, deployment)
        status = (found or {}).get("status") or {}
        if found is None or status.get("observedGeneration", 0) < found["metadata"]["generation"]:
            return False
        counters = ("replicas", "readyReplicas", "availableReplicas", "upToDateReplicas")
        if any((status.get(name) or 0) != count for name in counters) or not self._is_current(cluster, found):
            return False
        nodes = self.nodes(cluster, deployment)
        return len(nodes) == count and all(is_ready(one) and not is_uninitialized(one) for one in nodes)

    def _is_current(self, cluster: str, deployment: Object) -> bool:
        """Return whether the counters are of the current machines; right after a change they are not."""
        selector = f"labelSelector=cluster.x-k8s.io/deployment-name={name_of(deployment)}"
        sets = self.rest.get(f"{CLUSTER_API}/namespaces/{namespace(cluster)}/machinesets?{selector}")["items"]
        return all(
            _machine_identity(one) == _machine_identity(deployment)
            for one in sets
            if (one.get("status") or {}).get("replicas")
        )

    # incidents

    def hold_joins(self, deployment: str) -> None:
        """Let no more machines of it join, until `release_joins`."""
        self._world.machines.hold_joins(deployment)

    def release_joins(self, deployment: str) -> None:
        self._world.machines.release_joins(deployment)

    def fail(self, node: Object | str) -> None:
        """Report the node as not ready, then stop its kubelet."""
        name = _name(node)
        self.run(self._world.fail(name))
        self._set_ready(name, "False", "KubeletNotReady")

    def recover(self, node: Object | str) -> None:
        name = _name(node)
        self._set_ready(name, "True", "KubeletReady")
        self.run(self._world.recover(name))

    def hold_upgrade(self, cluster: str) -> None:
        """Let the control plane replace no machine, until `release_upgrade`."""
        self._set_upgrade_hold(cluster, is_on=True)

    def release_upgrade(self, cluster: str) -> None:
        self._set_upgrade_hold(cluster, is_on=False)

    def add_pods(self, node: Object | str, count: int, *, app: str) -> list[str]:
        """Create pods with this `app` label in namespace default on a node, wait until they run; return their names."""
        names = [f"{app}-{next(_numbers)}" for _ in range(count)]
        for name in names:
            self.rest.create(_pod(name, app, _name(node)))
            self._created.append(f"{PODS}/{name}?gracePeriodSeconds=0")
        self._until(lambda: all(self._runs(name) for name in names), f"{', '.join(names)} run")
        return names

    def pods(self, app: str) -> list[Object]:
        found: list[Object] = self.rest.get(f"{PODS}?labelSelector=app={app}")["items"]
        return found

    def add_budget(self, app: str, *, min_available: int) -> None:
        """Create a PodDisruptionBudget for the pods of an app and wait until it is observed."""
        budget = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": app, "namespace": "default"},
            "spec": {"minAvailable": min_available, "selector": {"matchLabels": {"app": app}}},
        }
        self.rest.create(budget)
        self._created.append(f"{BUDGETS}/{app}")
        count = len(self.pods(app))

        def is_observed() -> bool:
            status = self.rest.get(f"{BUDGETS}/{app}").get("status") or {}
            return bool(status.get("observedGeneration")) and status.get("currentHealthy") == count

        self._until(is_observed, f"the budget of {app} is in force")

    def remove_budget(self, app: str) -> None:
        self.rest.call("DELETE", f"{BUDGETS}/{app}")

    def clear(self) -> None:
        """Remove all clusters, nodes and pods by removing finalizers, which is faster than through Cluster API."""
        for collection in REMOVED:
            for one in self.rest.get(collection)["items"]:
                metadata = one["metadata"]
                base, _, plural = collection.rpartition("/")
                path = f"{base}/namespaces/{metadata['namespace']}/{plural}/{metadata['name']}"
                with suppress(RestError):
                    self.rest.call("DELETE", path)
                    self.rest.call("PATCH", path, {"metadata": {"finalizers": None}}, content_type=MERGE)
        self._until(self._has_no_nodes, "no machine's node is left")
        for path in self._created:
            with suppress(RestError):
                self.rest.call("DELETE", path)
        self._created.clear()

    def _has_no_nodes(self) -> bool:
        items = self.rest.get("/api/v1/nodes")["items"]
        ours = [name_of(one) for one in items if "machine:///" in one["spec"].get("providerID", "")]
        for name in ours:
            with suppress(RestError):
                self.rest.call("DELETE", f"/api/v1/nodes/{name}")
        return not ours

    # helpers

    def _get(self, path: str) -> Object | None:
        try:
            found: Object = self.rest.get(path)
        except RestError as error:
            if error.status != 404:
                raise
            return None
        return found

    def _path(self, cluster: str, machine: Object) -> str:
        return f"{CLUSTER_API}/namespaces/{namespace(cluster)}/machines/{name_of(machine)}"

    def _trigger(self, paths: Iterable[str]) -> None:
        """Make Cluster API reconcile these objects once a second: by itself it retries a drain every 20 seconds."""
        if time.monotonic() < self._triggered + TRIGGER_SECONDS:
            return
        self._triggered = time.monotonic()
        for path in paths:
            note = {"metadata": {"annotations": {"nodeyard.dev/reconcile-trigger": str(next(_numbers))}}}
            with suppress(RestError):
                self.rest.call("PATCH", path, note, content_type=MERGE)

    def _runs(self, name: str) -> bool:
        found = self._get(f"{PODS}/{name}")
        return found is not None and (found.get("status") or {}).get("phase") == "Running"

    def _set_ready(self, node: str, status: str, reason: str) -> None:
        condition = {"type": "Ready", "status": status, "reason": reason, "message": reason}
        path = f"/api/v1/nodes/{node}/status"
        body = {"status": {"conditions": [condition]}}
        self.rest.call("PATCH", path, body, content_type="application/strategic-merge-patch+json")

    def _set_upgrade_hold(self, cluster: str, *, is_on: bool) -> None:
        place = namespace(cluster)
        reference = self.rest.get(f"{CLUSTER_API}/namespaces/{place}/clusters/{cluster}")["spec"]["controlPlaneRef"]

        async def hold() -> None:
            self._world.hold_upgrade(place, reference["name"], is_on=is_on)

        self.run(hold())

    def _until(self, condition: Any, what: str) -> None:
        try:
            until(condition, what, PATIENCE_SECONDS)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; errors of the simulation: {self.errors}") from None


def namespace(cluster: str) -> str:
    return f"capi-{cluster}"


def name_of(obj: Object) -> str:
    name: str = obj["metadata"]["name"]
    return name


def is_ready(node: Object) -> bool:
    conditions: Sequence[Object] = (node.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def is_uninitialized(node: Object) -> bool:
    taints = node["spec"].get("taints") or ()
    return any(one["key"] == "node.cluster.x-k8s.io/uninitialized" for one in taints)


def _machine_identity(obj: Object) -> list[Any]:
    """Return the fields whose change replaces machines."""
    spec = obj["spec"]["template"]["spec"]
    return [spec.get("version"), spec.get("bootstrap"), spec["infrastructureRef"]]


def _name(node: Object | str) -> str:
    return node if isinstance(node, str) else name_of(node)


def _pod(name: str, app: str, node: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": app}},
        "spec": {
            "nodeName": node,
            "terminationGracePeriodSeconds": 1,
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "main", "image": "sim"}],
        },
    }
