"""Pools on the dashboard."""

from dataclasses import replace
from datetime import timedelta

import msgspec
import pytest
from tests.builders.pool_removal import CLUSTER, World, deployment, member, node, pod
from tests.builders.pool_views import PoolsView
from tests.builders.pools import NOW, cluster, pool, service, snapshot

from nodeyard.capabilities.pools import names, surface
from nodeyard.capabilities.pools.snapshot import Workload
from nodeyard.capabilities.pools.surface import SURFACE
from nodeyard.kube.names import POOL_DRAINING
from nodeyard.plan.message import Message
from nodeyard.plan.model import Decision, ObjectRef
from nodeyard.runtime.surface import Severity, TileState

SINCE = "2029-12-31T23:00:00Z"


class View(PoolsView):
    """A view with the nodes of a world, on the cluster that the world describes."""

    uid = "own"

    def __init__(self, world, **given):
        self._world = world
        super().__init__(world.snapshot, **given)

    def get(self, kind, name, namespace=""):
        if kind == "Node":
            return (self._world.nodes or {}).get(name)
        return super().get(kind, name, namespace)

    def indexed(self, kind, index, value):
        if kind == "Machine" and index == names.BY_NODE:
            return [each for each in self._world.machines if each.node == value]
        if index == names.DRAINING:
            return []
        return super().indexed(kind, index, value)


def tile_of(world, name="gpu-0"):
    return SURFACE.tile(View(world), name)


def test_a_node_shows_the_pool_of_its_machine():
    tile = tile_of(World.of())
    assert (tile.pool, tile.hue, tile.state) == ("prod/gpu", "prod/gpu", TileState.CLAIMED)


def test_a_control_plane_node_is_managed_but_in_no_pool():
    machine = member("gpu", 0)
    metadata = msgspec.structs.replace(machine.metadata, labels={names.CONTROL_PLANE_LABEL: ""})
    machine = msgspec.structs.replace(machine, metadata=metadata)
    tile = tile_of(World.of().but(machines=[machine]))
    assert (tile.pool, tile.hue, tile.state) == ("", "prod-control-plane", TileState.CLAIMED)


def test_a_machine_that_is_not_running_yet_is_pending():
    machine = member("gpu", 0, status={"phase": "Provisioning"})
    assert tile_of(World.of().but(machines=[machine])).state is TileState.PENDING


def test_a_drained_node_says_since_when():
    drained = node("gpu-0", annotations={POOL_DRAINING: SINCE})
    tile = tile_of(World.of().but(nodes={"gpu-0": drained}))
    assert (tile.state, tile.since) == (TileState.DRAINING, NOW - timedelta(hours=1))


def test_a_machine_that_is_deleted_drains_its_node():
    machine = member("gpu", 0, metadata={"deletionTimestamp": SINCE})
    tile = tile_of(World.of().but(machines=[machine]))
    assert (tile.state, tile.since) == (TileState.DRAINING, NOW - timedelta(hours=1))


def test_a_node_of_the_same_name_on_another_cluster_is_another_object():
    elsewhere = Workload(uid="another", cluster=CLUSTER)
    assert tile_of(World.of().but(workload=elsewhere)) is None


def test_a_node_without_a_machine_shows_its_label_or_nothing():
    labelled = node("n1")
    labelled = msgspec.structs.replace(
        labelled, metadata=msgspec.structs.replace(labelled.metadata, labels={names.POOL: "gpu"})
    )
    world = World.of().but(nodes={"n1": labelled, "n2": node("n2")})
    assert tile_of(world, "n1").pool == "gpu"
    assert tile_of(world, "n2") is None
    assert tile_of(world, "gone") is None


def test_a_change_of_a_machine_concerns_its_old_and_new_node():
    (changes,) = SURFACE.tile_nodes.values()
    assert changes(None, member("gpu", 0), member("gpu", 1)) == {"gpu-0", "gpu-1"}
    assert changes(None, None, member("gpu", 0, node="")) == set()


# attention


def condition(type, reason, message="it is so", status="False"):
    return {"type": type, "status": status, "reason": reason, "message": message, "lastTransitionTime": SINCE}


def test_an_unplaced_service_needs_somebody():
    status = {"phase": "Unplaced", "message": "No pool fits", "conditions": [condition("Placed", "NoPoolFits")]}
    view = PoolsView(services=[service("web", status=status), service("db", status={"phase": "Placed"})])
    (item,) = SURFACE.attention(view, NOW)
    assert (item.kind, item.object.name, item.reason, item.message) == ("Unplaced", "web", "NoPoolFits", "No pool fits")
    assert item.since == NOW - timedelta(hours=1)


@pytest.mark.parametrize(
    ("type", "reason", "count"),
    [
        ("PoolsDrained", "DrainTimeout", 1),
        ("PoolsDrained", "Draining", 0),
        ("VersionCurrent", "VersionStopped", 1),
        ("VersionCurrent", "VersionWaits", 0),
    ],
)
def test_a_rollout_that_stopped_needs_somebody_and_one_that_waits_does_not(type, reason, count):
    of = cluster("prod", status={"conditions": [condition(type, reason)]})
    found = list(SURFACE.attention(PoolsView(snapshot(of)), NOW))
    assert [(each.kind, each.object.name, each.reason) for each in found] == [
        ("StoppedRollout", "prod", reason)
    ] * count


def test_a_blocked_pool_without_nodes_is_a_critical_shortage():
    pools = {
        "gpu": {"desired": 2, "phase": "Blocked", "message": "Class large does not exist"},
        "web": {"desired": 2, "available": 1, "phase": "Blocked"},
        "full": {"desired": 2, "available": 2, "phase": "Blocked"},
    }
    of = cluster("prod", status={"workerPools": pools})
    gpu, web = SURFACE.attention(PoolsView(snapshot(of)), NOW)
    assert (gpu.kind, gpu.severity, web.severity) == ("Shortage", Severity.CRITICAL, Severity.WARNING)
    assert gpu.message == "Class large does not exist"
    assert gpu.link == {"view": "yard", "group": "pool", "pool": "prod/gpu"}


# rollouts


def rolling(**status):
    of = cluster("prod", workerPools={"gpu": pool(3)}, status={"workerPools": {"gpu": {"desired": 3, **status}}})
    return list(SURFACE.rollouts(PoolsView(snapshot(of)), NOW))


def test_a_pool_that_is_as_specified_is_no_rollout():
    assert rolling(phase="Ready", available=3) == []


def test_a_rolling_pool_counts_its_new_machines():
    (row,) = rolling(phase="Rolling", upToDate=1, available=3, replicas=4, message="1 of 3 is new")
    assert (row.kind, row.done, row.total, row.state, row.message) == ("Pool", 1, 4, "Rolling", "1 of 3 is new")
    assert row.object.name == "prod-pool-gpu"
    assert row.next.startswith("Cluster API replaces")


def test_a_blocked_pool_has_its_cause_as_a_blocker():
    (row,) = rolling(phase="Blocked", available=1, message="Class large does not exist")
    (blocker,) = row.blockers
    assert (row.done, row.total) == (1, 3)
    assert (blocker.message, blocker.ways_out) == ("Class large does not exist", ("nodeyard why pool/prod/gpu",))


def draining(world, **status):
    class Draining(View):
        def indexed(self, kind, index, value):
            if index == names.DRAINING:
                return list(world.deployments.values())
            return super().indexed(kind, index, value)

    view = Draining(world)
    view._worlds[CLUSTER] = made = replace(
        world.snapshot,
        cluster=msgspec.structs.replace(
            world.snapshot.cluster,
            status=cluster(CLUSTER, status={"workerPools": {"gpu": status}}).status,
            spec=cluster(CLUSTER, workerPools={}).spec,
        ),
    )
    (row,) = _rollouts_of(view, made)
    return row


def _rollouts_of(view, made):
    """Return the rollouts of this snapshot, which replaces that of `collect`."""

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(surface, "collect", lambda _view, _name, _now: made)
        return list(SURFACE.rollouts(view, NOW))


def started(**given):
    return {"gpu": deployment("gpu", metadata={"annotations": {names.DRAIN_STARTED: SINCE}, **given})}


BUDGET = "Cannot evict pod: the disruption budget web needs 2 healthy pods and has 2 currently"


def test_a_drain_names_the_pods_in_its_way_with_budget_and_owner():
    world = World.of(pods=[pod("web", "gpu-0"), pod("agent", "gpu-1", owner="DaemonSet")]).but(
        deployments=started(), daemon_sets=frozenset({("default", "owner")})
    )
    told = [{"pod": "default/web", "node": "gpu-0", "message": BUDGET}]
    row = draining(world, phase="Draining", message="Draining pool gpu: 1 pod left on 1 node", blockingPods=told)
    assert (row.kind, row.state, row.done, row.total) == ("Drain", "Draining", 1, 2)
    assert row.since == NOW - timedelta(hours=1)
    assert row.next == "1 pod on 1 node leave; then the pool is deleted."
    (blocker,) = row.blockers
    assert (blocker.object.kind, blocker.object.namespace, blocker.object.name) == ("Pod", "default", "web")
    assert BUDGET in blocker.message
    assert "it belongs to ReplicaSet owner" in blocker.message
    assert blocker.ways_out[:2] == (
        "kubectl get poddisruptionbudgets --namespace default",
        "kubectl delete pod web --namespace default",
    )


def test_a_drained_pool_has_no_blockers_and_names_the_next_step():
    row = draining(World.of().but(deployments=started()), phase="Draining")
    assert (row.done, row.total, row.blockers) == (2, 2, ())
    assert row.next == "The pool is deleted with its 2 Machines."


def test_a_deleted_pool_counts_the_machines_that_are_gone():
    world = World.of(nodes=1).but(deployments=started(deletionTimestamp=SINCE))
    row = draining(world, phase="Deleting")
    assert (row.state, row.done, row.total) == ("Deleting", 1, 2)


# why


class Advice(Message, frozen=True):
    reason = "ChangeReplicas"

    def text(self):
        return "Change the replicas of the pool"


def test_a_remedy_has_a_command_that_can_be_pasted():
    of = cluster("prod", workerPools={"gpu": pool(2)})
    view = PoolsView(replace(snapshot(of), management=World.of().snapshot.management))
    namespace, name = names.namespace("prod"), names.deployment("prod", "gpu")
    ref = ObjectRef(api_version="v1", kind="MachineDeployment", namespace=namespace, name=name)
    (remedy,) = SURFACE.remedies(view, Decision.of(ref, Advice(), (), [Advice()]))
    assert remedy.message == "Change the replicas of the pool"
    assert remedy.command == (
        "kubectl patch latticeclusters prod --type=merge -p "
        """'{"spec":{"nodes":{"workerPools":{"gpu":{"replicas":3}}}}}'"""
    )
