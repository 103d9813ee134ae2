"""The tour of the demo: what the operator does with a fleet, in seven steps that a person can follow.

nodes register ─▶ examples ─▶ a node fails ─▶ a pool drains ─▶ a leaf goes silent and comes back
                              ─▶ a plan is held and approved ─▶ the failed node is noticed
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Final

from nodeyard.app.approvals import NotHeld, approve
from nodeyard.app.dry_planner import dry_planning
from nodeyard.app.operator import Running
from nodeyard.client.api import Client
from nodeyard.client.resources import NODES, PODS, Resource, untyped
from nodeyard.demo.leaf_clusters import LeafClusters
from nodeyard.demo.screen import Bar, Screen
from nodeyard.demo.showcase import apply_examples, read_objects
from nodeyard.demo.summary import NodeView, mirror_table, read_fleet
from nodeyard.kube.json import Object
from nodeyard.plan.brake import describe_disrupted
from nodeyard.plan.model import Plan
from nodeyard.runtime.reconcile.controller import Controller
from nodeyard.sim.world import World

TIMEOUT_SECONDS: Final = 120.0
SECONDS_PER_NODE: Final = 0.25
QUIET_SECONDS: Final = 1.0
"""The operator must have been idle for this long, since effects of the last write arrive later."""
ROLE: Final = {"cke.cybozu.com/role": "compute"}
ZONES: Final = ("dc1", "dc2", "dc3")
GPU: Final = {"node.kubernetes.io/gpu": "true"}
"""Labels that the examples select nodes by; one node has a GPU."""
CLUSTER: Final = "example"
POOL: Final = "general"
LEAF: Final = "east"
TEMPLATE: Final = "compute"
BATCH_PODS: Final = 4
GRACE_SECONDS: Final = 5
"""Pods take this long to end, so that the drain can be seen."""
_LATTICE_CLUSTERS: Final = untyped("lattice.dev", "v1alpha1", "latticeclusters", "LatticeCluster", namespaced=False)
_CLUSTERS: Final = untyped("kosmos.io", "v1alpha1", "clusters", "Cluster", namespaced=False)
_WORKLOAD: Final = "workload-type"
_OWNER: Final = "nyallocator.cybozu.io/node-template"
_CONTROL_PLANE: Final = ("controlplane.cluster.x-k8s.io/v1beta2", "KubeadmControlPlane")
_WORK: Final = {
    "spares": "spares: claims spare nodes",
    "pools": "pools: builds clusters and pools",
    "affinity": "affinity: places applications",
    "clustertree": "clustertree: mirrors leaf clusters",
    "profiles": "profiles: rolls out configurations",
}


class Tour:
    def __init__(
        self, screen: Screen, client: Client, world: World, operator: Running, leaf_clusters: LeafClusters
    ) -> None:
        self._screen = screen
        self._client = client
        self._world = world
        self._operator = operator
        self._leaf_clusters = leaf_clusters
        self._timeout = TIMEOUT_SECONDS

    @property
    def held(self) -> list[Plan]:
        """The plans that wait for an approval."""
        return [plan for controller in self._operator.manager.controllers for plan in controller.held.values()]

    async def run(self, nodes: int, *, approves: bool) -> None:
        """Take all steps. `approves` approves the held plan instead of waiting for the user."""
        self._timeout = TIMEOUT_SECONDS + nodes * SECONDS_PER_NODE
        names = await self._register(nodes)
        await self._apply_examples()
        failed = await self._fail_node(names)
        await self._drain_pool()
        await self._silence_leaf()
        await self._hold_plan(approves=approves)
        await self._notice_failed_node(failed)

    async def _register(self, count: int) -> list[str]:
        """Register nodes, two fifths of them spare, and one pod for each of the others."""
        spare = count * 2 // 5
        await self._screen.begin_step(
            "Nodes register",
            f"{count} nodes join the cluster in three zones; {spare} of them are spare: they have no role yet. "
            "The other nodes run one pod each.",
        )
        adding = asyncio.create_task(self._add(count, spare))

        async def read() -> list[Bar]:
            if adding.done():
                adding.result()
            fleet = await read_fleet(self._client)
            return [Bar("nodes Ready", fleet.ready, count), Bar("pods running", fleet.running, count - spare)]

        try:
            await self._screen.follow(read, self._timeout)
        finally:
            adding.cancel()
        names = await adding
        await self._leaf_clusters.wait_until_ready()
        return names

    async def _add(self, count: int, spare: int) -> list[str]:
        names = await self._world.add_nodes(count, zones=ZONES, spare=spare, labels=ROLE)
        await self._client.patch(NODES, names[0], {"metadata": {"labels": GPU}})
        await self._world.add_pods(count - spare)
        return names

    async def _apply_examples(self) -> None:
        await self._screen.begin_step(
            "The operator starts to work",
            "The examples of all five capabilities are applied: a template for spare nodes, worker pools, placement "
            "classes, two leaf clusters and configuration profiles. The operator plans and carries out each.",
        )
        applying = asyncio.create_task(apply_examples(self._client, self._leaf_clusters))

        async def read() -> list[Bar]:
            if applying.done():
                applying.result()
            objects = await read_objects(self._client)
            total = Counter(each.capability for each in objects)
            done = Counter(each.capability for each in objects if each.is_settled)
            bars = [Bar(text, done[name], total[name] or 1) for name, text in _WORK.items()]
            clusters = (await self._client.list(_CLUSTERS)).items
            leases = sum(_status(each, "LeasesRenewed") == "True" for each in clusters)
            controllers = self._operator.manager.controllers
            idle = sum(each.is_idle for each in controllers) if applying.done() else 0
            return [
                *bars,
                Bar("leaf leases renewed", leases, len(clusters) or 1),
                Bar("capabilities with nothing left to do", idle, len(controllers)),
            ]

        try:
            await self._screen.follow(read, self._timeout, quiet=QUIET_SECONDS)
        finally:
            applying.cancel()
        self._screen.say(f"Why does {TEMPLATE} have these nodes? Every decision can be asked for:")
        self._screen.offer("nodeyard", "why", f"nodetemplate/{TEMPLATE}")

    async def _fail_node(self, names: Sequence[str]) -> str:
        claimed = (await self._client.list(NODES, labels=f"{_OWNER}={TEMPLATE}")).items
        name = str(claimed[0]["metadata"]["name"]) if claimed else names[-1]
        await self._screen.begin_step(
            "A node fails",
            f"{name} loses power. Its kubelet stops reporting, and Kubernetes marks a node NotReady after 50 s, so "
            "the tour goes on and comes back to it.",
        )
        await self._world.fail(name)
        self._screen.offer("nodeyard", "why", f"node/{name}")
        return name

    async def _drain_pool(self) -> None:
        selector = f"{_WORKLOAD}={POOL}"
        for number in range(BATCH_PODS):
            await self._client.create(PODS, _batch_pod(number))
        total = len((await self._client.list(NODES, labels=selector)).items)

        async def read_placed() -> list[Bar]:
            pods = (await self._client.list(PODS, labels="app=batch")).items
            running = sum((each.get("status") or {}).get("phase") == "Running" for each in pods)
            return [Bar("pods running in the pool", running, BATCH_PODS)]

        await self._screen.begin_step(
            "A pool drains",
            f"Pool {POOL} of LatticeCluster {CLUSTER} has {total} nodes, and {BATCH_PODS} pods start there. Then the "
            "pool is removed from the spec. The operator cordons its nodes, evicts their pods, and deletes the "
            "machines once they are empty.",
        )
        await self._screen.follow(read_placed, self._timeout)
        await self._client.patch(_LATTICE_CLUSTERS, CLUSTER, {"spec": {"nodes": {"workerPools": {POOL: None}}}})

        async def read() -> list[Bar]:
            nodes = (await self._client.list(NODES, labels=selector)).items
            pods = (await self._client.list(PODS, labels="app=batch")).items
            cordoned = sum(bool(each["spec"].get("unschedulable")) for each in nodes)
            gone = total - len(nodes)
            return [
                Bar("nodes cordoned", cordoned + gone, total),
                Bar("pods evicted", BATCH_PODS - len(pods), BATCH_PODS),
                Bar("nodes removed", gone, total),
            ]

        await self._screen.follow(read, self._timeout)
        self._screen.offer("nodeyard", "why", f"latticecluster/{CLUSTER}")

    async def _silence_leaf(self) -> None:
        async def read_silent() -> list[Bar]:
            return [Bar("silence noticed", await self._leaf_status("Reachable") != "True", 1)]

        async def read_back() -> list[Bar]:
            conditions = ("Reachable", "ResourcesSynced", "LeasesRenewed", "Ready")
            done = sum([await self._leaf_status(each) == "True" for each in conditions])
            return [Bar("conditions of the leaf True again", done, len(conditions))]

        await self._screen.begin_step(
            "A leaf cluster goes silent",
            f"The network to leaf cluster {LEAF} is cut. The operator goes on asking, and calls it unreachable "
            "about 30 s after its last answer. Its nodes stay in the root cluster, but their leases are not renewed "
            "any more.",
        )
        self._leaf_clusters.links[LEAF].cut()
        await self._screen.follow(read_silent, self._timeout)
        self._screen.say(await self._leaf_message("Reachable"))
        self._screen.say("The network is back.")
        await self._leaf_clusters.links[LEAF].open()
        await self._screen.follow(read_back, self._timeout)
        self._screen.console.print(mirror_table(await read_fleet(self._client)))
        self._screen.offer("nodeyard", "why", f"leaf/{LEAF}")

    async def _hold_plan(self, *, approves: bool) -> None:
        control_plane = await self._control_plane()
        before = int((control_plane.get("status") or {}).get("replicas") or control_plane["spec"]["replicas"])
        await self._screen.begin_step(
            "A plan is held",
            f"Somebody sets the control plane of LatticeCluster {CLUSTER} from {before} machines to 1. Fewer "
            "control plane machines always wait until a person approves the plan; other plans do if they disrupt many "
            "nodes.",
        )
        await self._client.patch(_LATTICE_CLUSTERS, CLUSTER, {"spec": {"nodes": {"controlPlane": 1}}})

        async def read_held() -> list[Bar]:
            return [Bar("plan held", bool(self._pools.held), 1)]

        async def read_approved() -> list[Bar]:
            return [Bar("approved", not self._pools.held, 1)]

        async def read_scaled() -> list[Bar]:
            cluster = await self._client.get(_LATTICE_CLUSTERS, CLUSTER)
            wanted = int(cluster["spec"]["nodes"]["controlPlane"])
            left = int(((await self._control_plane()).get("status") or {}).get("replicas") or 0)
            return [
                Bar("control plane machines removed", before - left, before - wanted),
                Bar(f"LatticeCluster {CLUSTER} Ready", _status(cluster, "Ready") == "True", 1),
            ]

        await self._screen.follow(read_held, self._timeout)
        plan = next(iter(self._pools.held.values()))
        self._screen.say(
            f"Plan {plan.id} would disrupt {describe_disrupted(plan.actions)}. What is held, and the approval:"
        )
        self._screen.offer("nodeyard", "approve")
        self._screen.offer("nodeyard", "approve", plan.id, "--reason", "the demo")
        if approves:
            self._screen.say("The demo approves it by itself, because of --fast or --once.")
            await self._approve(plan.id)
        else:
            self._screen.say(
                "The tour waits for your approval: press Approve… in the view Plan of the dashboard, or paste the last "
                "line into another terminal."
            )
        await self._screen.follow(read_approved, self._timeout if approves else None)
        await self._screen.follow(read_scaled, self._timeout)

    async def _approve(self, id: str) -> None:
        async with dry_planning(self._client, [self._pools.capability]) as planner:
            try:
                await approve(self._client, planner, id, "the demo")
            except NotHeld:
                # Somebody was faster, or has changed the object.
                if self._pools.held:
                    raise

    async def _notice_failed_node(self, name: str) -> None:
        async def read() -> list[Bar]:
            node = await self._client.get(NODES.decoded_as(NodeView), name)
            return [Bar(f"{name} is NotReady", not node.is_ready, 1)]

        node = await self._client.get(NODES, name)
        is_claimed = (node["metadata"].get("labels") or {}).get(_OWNER) == TEMPLATE
        text = (
            f"{name} still belongs to {TEMPLATE}: a node that may come back is not replaced by itself. A release would "
            "take it first."
            if is_claimed
            else f"{name} belongs to no template, so the operator leaves it as it is."
        )
        await self._screen.begin_step("The failed node", text)
        await self._screen.follow(read, self._timeout)

    @property
    def _pools(self) -> Controller:
        return next(each for each in self._operator.manager.controllers if each.capability.name == "pools")

    async def _control_plane(self) -> Object:
        known = (await self._client.catalog()).by_kind(*_CONTROL_PLANE)
        assert known is not None  # The simulation installs its CRD.
        resource: Resource[Object] = known.resource
        return await self._client.get(resource, f"{CLUSTER}-control-plane", f"capi-{CLUSTER}")

    async def _leaf_status(self, condition: str) -> str:
        return _status(await self._client.get(_CLUSTERS, LEAF), condition)

    async def _leaf_message(self, condition: str) -> str:
        return str(_condition(await self._client.get(_CLUSTERS, LEAF), condition).get("message", ""))


def _condition(obj: Object, type: str) -> Object:
    conditions: Sequence[Object] = (obj.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == type), {})


def _status(obj: Object, condition: str) -> str:
    return str(_condition(obj, condition).get("status", ""))


def _batch_pod(number: int) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"batch-{number}", "namespace": "default", "labels": {"app": "batch"}},
        "spec": {
            "nodeSelector": {_WORKLOAD: POOL},
            "terminationGracePeriodSeconds": GRACE_SECONDS,
            "containers": [
                {"name": "main", "image": "sim", "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}}}
            ],
        },
    }
