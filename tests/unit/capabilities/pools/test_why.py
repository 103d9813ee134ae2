"""Output of `why` and `plan` for clusters, pools and classes: all facts, and no healthy verdict for a broken one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from tests.builders.plans import render_decision
from tests.builders.pool_objects import changed, running, settled, with_deployment, with_management
from tests.builders.pool_removal import World, pod
from tests.builders.pool_views import PoolsView
from tests.builders.pools import NOW, SEED_POOLS, class_body, cluster, machine, node_class, pool, snapshot

from nodeyard.apply.outcome import Outcome
from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.collect import collect_classes
from nodeyard.capabilities.pools.plan import plan
from nodeyard.capabilities.pools.planning.classes import plan_classes
from nodeyard.capabilities.pools.report import report
from nodeyard.capabilities.pools.snapshot import PoolsSnapshot, Served
from nodeyard.plan.model import Decision, ObjectRef
from nodeyard.plan.render import render_plan
from nodeyard.plan.style import Style

CLUSTER = ObjectRef(api_version=names.API_VERSION, kind=names.CLUSTER_KIND, name="c")
PLAIN = {"a": pool(3), "b": pool(1)}


def why(world: PoolsSnapshot, ref: ObjectRef = CLUSTER) -> Decision:
    (found,) = plan(world, NOW, [ref]).plan.decisions
    return found


def of_pool(world: PoolsSnapshot, id: str) -> ObjectRef:
    name = names.deployment(world.cluster.name, id)
    namespace = names.namespace(world.cluster.name)
    return ObjectRef(api_version=names.CAPI_API_VERSION, kind="MachineDeployment", name=name, namespace=namespace)


def said(decision: Decision) -> Any:
    return decision.facts.text()


def shown(decision: Decision) -> str:
    return " ".join(render_decision(decision, style=Style(width=500)).split())


# clusters


def test_a_cluster_whose_control_plane_is_incomplete_is_not_called_reconciled() -> None:
    world = running(cluster("c", controlPlane=3, workerPools=PLAIN))
    live = {
        **world.management.control_plane,
        "status": {**world.management.control_plane["status"], "readyReplicas": 1},
    }
    live = changed(live, "status.availableReplicas", 1)
    decision = why(with_management(world, control_plane=live))
    assert said(decision) == "The control plane of c has 1 of 3 replicas ready"


def test_a_cluster_with_a_pool_that_misses_nodes_says_which_and_how_many() -> None:
    world = running(cluster("c", workerPools=PLAIN))
    deployment = settled(world.management.deployments["c-pool-a"], availableReplicas=1)
    decision = why(with_deployment(world, deployment))
    assert said(decision) == "Pool a is scaling: 1 of 3 nodes are available"


def test_a_cluster_in_which_all_is_done_is_reconciled() -> None:
    assert why(running(cluster("c", workerPools=PLAIN))).rule == "Reconciled"


def test_a_waiting_upgrade_is_no_refusal_and_names_what_it_waits_for() -> None:
    before = running(cluster("c", controlPlane=3, workerPools=PLAIN))
    asked = changed(before.management.control_plane, "spec.version", "v1.33.0")
    asked = settled(asked, version="v1.32.0", upToDateReplicas=2)
    label = {"labels": {names.CONTROL_PLANE_LABEL: ""}}
    nodes = [
        machine(f"cp{number}", "", metadata=label, spec={"version": version}, status={"phase": "Running"})
        for number, version in enumerate(["v1.32.0", "v1.33.0", "v1.33.0"])
    ]
    world = replace(
        with_management(before, control_plane=asked, machines=[*before.management.machines, *nodes]),
        cluster=cluster("c", controlPlane=3, version="1.33.0", workerPools=PLAIN),
    )
    told = render_plan(plan(world, NOW).plan)
    assert "Waiting LatticeCluster c" in told
    assert "VersionWaits: Upgrade to v1.33.0 is waiting for the control plane: 2 of 3 Machines run it" in told
    assert told.endswith("nothing to do now, 1 object waiting, nothing blocked\n")


# pools


def test_a_pool_says_how_its_machines_are_and_why_one_is_not_ready() -> None:
    world = running(cluster("c", workerPools={"a": pool(1)}))
    condition = {"type": "Ready", "status": "False", "reason": "x", "message": "* BootstrapConfig is\n not ready"}
    late = machine(
        "m1", "c-pool-a", spec={"version": "v1.32.0"}, status={"phase": "Pending", "conditions": [condition]}
    )
    told = shown(why(with_management(world, machines=[late]), of_pool(world, "a")))
    assert "m1: Pending: Machine m1 at v1.32.0: * BootstrapConfig is not ready" in told


def test_a_draining_pool_names_the_budget_that_refuses_an_eviction() -> None:
    drained = World.of("gpu", nodes=1, pods=[pod("web", "gpu-0")]).passed()
    snapshot = drained.snapshot
    message = "The disruption budget web needs 1 healthy pods and has 1 currently"
    blocking = {"pod": "default/web", "node": "gpu-0", "message": message}
    told = {"workerPools": {"gpu": {"phase": "Draining", "blockingPods": [blocking]}}}
    lc = msgspec.convert({**msgspec.to_builtins(snapshot.cluster), "status": told}, type(snapshot.cluster))
    world = replace(running(cluster("prod", workerPools={})), cluster=lc, workload=snapshot.workload)
    world = with_management(world, deployments=snapshot.management.deployments, machines=snapshot.management.machines)
    decision = why(world, of_pool(world, "gpu"))
    assert decision.rule == "Draining"
    assert f"default/web: WaitingForPod: The drain of node gpu-0 is waiting for this pod: {message}" in shown(decision)


def test_a_pool_is_named_with_its_display_name() -> None:
    classes = [node_class(each["nodeClass"]) for each in SEED_POOLS.values()]
    before = running(cluster("c", workerPools=SEED_POOLS), *classes)
    scaled = {**SEED_POOLS, "gpu": {**SEED_POOLS["gpu"], "replicas": 4}}
    world = replace(before, cluster=cluster("c", workerPools=scaled))
    planned = plan(world, NOW).plan
    assert "Scales pool gpu (GPU Workers (A100)) from 2 to 4" in render_plan(planned)
    assert "gpu (GPU Workers (A100))" in shown(why(before, of_pool(before, "gpu")))
    (write,) = report(world, planned, Outcome(), NOW).statuses
    assert write.status["workerPools"]["gpu"]["displayName"] == "GPU Workers (A100)"


@pytest.mark.parametrize(("given", "missing"), [({"min": 1}, "max"), ({"max": 5}, "min")])
def test_one_bound_where_autoscaling_is_on_is_called_incomplete(given: Any, missing: str) -> None:
    lc = cluster("c", autoscaling="ClusterAutoscaler", workerPools={"a": pool(2, **given)})
    (blocked,) = plan(running(lc), NOW).plan.blocked
    assert blocked.facts.text() == (
        f"Pool a has no {missing}: the cluster-autoscaler needs min and max, so the pool keeps replicas=2"
    )


# classes


def of_class(*worlds: PoolsSnapshot, classes: list[Any]) -> Decision:
    view = PoolsView(*worlds)
    view_all = view.all
    view.all = lambda kind: classes if kind == names.CLASS_KIND else view_all(kind)  # type: ignore[method-assign]
    ref = ObjectRef(api_version=names.API_VERSION, kind=names.CLASS_KIND, name="medium")
    (found,) = plan_classes(collect_classes(view, NOW), NOW, [ref]).plan.decisions
    return found


def using(name: str) -> PoolsSnapshot:
    return running(cluster(name, workerPools={"a": pool(3, nodeClass="medium")}), node_class("medium"))


def test_a_class_lists_its_users_and_the_nodes_affected_by_its_edit() -> None:
    now = node_class("medium", docker={"image": "two"})
    worlds = [replace(using(name), classes={"medium": now}) for name in ("c", "d")]
    decision = of_class(*worlds, classes=[now])
    assert said(decision) == (
        "LatticeNodeClass medium is used by 2 pools with 6 nodes; 6 of them still use an earlier spec of the class"
    )
    assert "d/a: NotYetMadeFromClass: Pool a of d has 3 nodes from an earlier spec" in shown(decision)
    assert said(of_class(using("c"), classes=[node_class("medium")])) == (
        "LatticeNodeClass medium is used by 1 pool with 3 nodes"
    )


def test_an_unused_class_and_an_unsuitable_one_are_explained() -> None:
    assert said(of_class(classes=[node_class("medium")])) == "No pool uses LatticeNodeClass medium"
    unfit = msgspec.convert(class_body("medium", aws={"instanceType": "m5.large"}), type(node_class()))
    decision = of_class(using("c"), classes=[unfit])
    assert said(decision) == (
        "LatticeNodeClass medium cannot be used by pool c/a: it has no entry for docker; add spec.providers.docker"
    )


def test_pools_of_a_cluster_that_cannot_be_made_are_not_called_provisioning() -> None:
    refused = snapshot(cluster("c", workerPools=PLAIN), served=Served({}))
    decision = why(refused)
    assert decision.rule == "ProviderNotServed"
    assert {(each.is_taken, each.reason) for each in decision.candidates} == {(False, "ProviderNotServed")}
    assert why(refused, of_pool(refused, "a")).rule == "ProviderNotServed"
