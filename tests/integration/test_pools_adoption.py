"""Adoption: legacy workers are adopted unchanged, foreign and paused objects are left unchanged."""

import json

import pytest
from tests.builders.machines import VERSION, Clusters, deployment
from tests.builders.pools import pool

from nodeyard.capabilities.pools import names

TIER = "node.cluster.x-k8s.io/tier"
OURS = {names.MANAGER, names.REPLICAS_MANAGER}
MERGED = {"nodes": {"workers": None, "workerPools": {"default": {"replicas": 2}}}}


@pytest.fixture(scope="module")
def before(lattices):
    """A legacy cluster with two workers, and a foreign MachineDeployment."""
    name, clusters = lattices.name("old"), Clusters(lattices.machines)
    clusters.cluster(name)
    workers, other = names.legacy_deployment(name), f"{name}-theirs"
    for each, count in ((workers, 2), (other, 1)):
        clusters.infrastructure_template(name, each)
        clusters.config_template(name, each, {"from": "before"})
        body = json.dumps(deployment(name, "default", count)).replace(names.deployment(name, "default"), each)
        lattices.rest.create(json.loads(body))
    for each, count in ((workers, 2), (other, 1)):
        lattices.machines.wait_for_nodes(name, each, count)
    return name


@pytest.fixture(scope="module")
def legacy(lattices, before):
    """The same after its LatticeCluster was applied, with the original Machines."""
    machines = _machines(lattices, before)
    lattices.cluster(before, version=VERSION, workers=2)
    lattices.ready(before)
    return before, machines


def _machines(lattices, name):
    found = lattices.machines.machines(name, names.legacy_deployment(name))
    return [each["metadata"]["name"] for each in found]


def _workers(lattices, name):
    return lattices.machines.deployment(name, names.legacy_deployment(name))


def _managers(obj):
    return {each["manager"] for each in obj["metadata"]["managedFields"]}


def test_the_workers_of_before_are_the_pool_default_with_the_machines_they_had(lattices, legacy):
    name, machines = legacy
    workers = _workers(lattices, name)
    assert workers["metadata"]["labels"][names.POOL] == "default"
    assert names.MANAGER in _managers(workers)
    assert lattices.deployment(name, "default") is None
    assert _machines(lattices, name) == machines
    told = lattices.pool(name, "default")
    assert (told["machineDeployment"], told["desired"], told["ready"]) == (names.legacy_deployment(name), 2, 2)


def test_naming_the_pool_that_workers_stood_for_changes_nothing(lattices, legacy):
    name, machines = legacy
    generation = _workers(lattices, name)["metadata"]["generation"]

    lattices.change(name, **MERGED)

    lattices.ready(name)
    assert _workers(lattices, name)["metadata"]["generation"] == generation
    assert lattices.deployment(name, "default") is None
    assert _machines(lattices, name) == machines


def test_a_pool_beside_the_workers_of_before_leaves_them_be_and_both_scale(lattices, legacy):
    name, machines = legacy
    lattices.change(name, **MERGED)

    lattices.change_pools(name, extra=pool(1), default={"replicas": 3})

    lattices.joined(name, "extra", 1)
    lattices.machines.wait_for_nodes(name, names.legacy_deployment(name), 3)
    assert set(machines) < set(_machines(lattices, name))
    assert lattices.deployment(name, "default") is None


def test_a_deployment_of_somebody_else_is_never_touched(lattices, legacy):
    name, _ = legacy
    lattices.ready(name)
    other = lattices.machines.deployment(name, f"{name}-theirs")
    assert not OURS & _managers(other)
    assert other["spec"]["replicas"] == 1
    for group_version, plural in ((names.BOOTSTRAP_API_VERSION, "kubeadmconfigtemplates"),):
        found = lattices.rest.get(lattices.path(name, plural, f"{name}-theirs", group_version))
        assert not OURS & _managers(found)
    assert "theirs" not in lattices.status(name)["workerPools"]


def test_nothing_is_written_while_the_cluster_is_paused_and_all_is_made_up_for_after(lattices, legacy):
    name, _ = legacy
    lattices.change(name, **MERGED)
    lattices.change_pools(name, extra=pool(1))
    lattices.joined(name, "extra", 1)
    lattices.machines.wait_for_nodes(name, names.legacy_deployment(name), 2)
    lattices.ready(name)
    lattices.pause(name, is_on=True)
    lattices.conditioned(name, "Ready", "False", "ClusterPaused")
    lattices.until(lambda: lattices.told(name, "ClusterPaused"), "it is told")
    contents, written = lattices.contents(name), lattices.operator.written()

    lattices.change_pools(name, extra=pool(2, labels={TIER: "gold"}), late=pool(1), default=None)

    lattices.conditioned(name, "Ready", "False", "ClusterPaused")
    assert lattices.pool(name, "extra")["phase"] == "Paused"
    assert lattices.contents(name) == contents
    sent = {each for each, count in lattices.operator.written().items() if count > written.get(each, 0)}
    assert sent == {f"patch {names.CLUSTER_PLURAL}.{names.GROUP}"}
    assert not any(node["spec"].get("unschedulable") for node in lattices.machines.nodes(
        name, names.legacy_deployment(name)))  # fmt: skip
    lattices.pause(name, is_on=False)
    lattices.joined(name, "late", 1)
    lattices.joined(name, "extra", 2)
    lattices.machines.wait_until_removed(name, names.legacy_deployment(name))


def test_workers_of_before_beside_a_spec_without_their_pool_stay_and_are_told_of(lattices):
    name, clusters = lattices.name("old"), Clusters(lattices.machines)
    clusters.cluster(name)
    workers = names.legacy_deployment(name)
    clusters.infrastructure_template(name, workers)
    clusters.config_template(name, workers, {"from": "before"})
    body = json.dumps(deployment(name, "default", 1)).replace(names.deployment(name, "default"), workers)
    lattices.rest.create(json.loads(body))
    lattices.machines.wait_for_nodes(name, workers, 1)
    machines = _machines(lattices, name)

    lattices.cluster(name, version=VERSION, workerPools={"a": pool(0)})

    lattices.ready(name)
    lattices.until(lambda: lattices.told(name, "WorkersUnclaimed"), "an event tells of it")
    assert _machines(lattices, name) == machines
    assert not OURS & _managers(_workers(lattices, name))
    assert "default" not in lattices.status(name)["workerPools"]
    (node,) = lattices.machines.nodes(name, workers)
    assert not node["spec"].get("unschedulable")
