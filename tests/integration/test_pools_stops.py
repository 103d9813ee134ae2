"""Blocked progress: an upgrade at a paused or failing pool, an unusable class, two MachineDeployments of one pool."""

import pytest
from tests.builders.pools import pool

from nodeyard.capabilities.pools import names

OLD, NEW = "v1.34.0", "v1.35.0"


@pytest.fixture(scope="module")
def prod(lattices):
    name = lattices.cluster(lattices.name(), version=OLD, workerPools={"alpha": pool(1), "beta": pool(1)})
    for each in ("alpha", "beta"):
        lattices.joined(name, each, 1)
    lattices.ready(name)
    return name


def pause(lattices, name, pool_id, *, is_on):
    path = lattices.path(name, "machinedeployments", names.deployment(name, pool_id))
    lattices.patch(path, {"metadata": {"annotations": {names.PAUSED_ANNOTATION: "" if is_on else None}}})


def test_an_upgrade_stops_before_a_paused_pool_and_waits_for_one_that_does_not_come_up(lattices, prod):
    pause(lattices, prod, "alpha", is_on=True)
    lattices.change(prod, provider={"kubernetes": {"version": NEW}})

    lattices.conditioned(prod, "VersionCurrent", "False", "VersionStopped")
    assert (
        lattices.condition(prod, "VersionCurrent")["message"] == f"Upgrade to {NEW} stopped at pool alpha: it is paused"
    )
    assert [lattices.pool(prod, each)["version"] for each in ("alpha", "beta")] == [OLD, OLD]
    _, planned = lattices.nodeyard("plan")
    assert "VersionStopped" in planned

    lattices.machines.hold_joins(names.deployment(prod, "alpha"))
    pause(lattices, prod, "alpha", is_on=False)
    lattices.until(lambda: lattices.pool(prod, "alpha")["version"] == NEW, "the first pool is told")
    lattices.until(lambda: len(lattices.machines.machines(prod, names.deployment(prod, "alpha"))) == 2, "it grows")
    lattices.conditioned(prod, "VersionCurrent", "False", "VersionWaits")
    waits = f"Upgrade to {NEW} is waiting for pool alpha: 0 of 1 Machines run it"
    assert lattices.condition(prod, "VersionCurrent")["message"] == waits
    assert lattices.pool(prod, "beta")["version"] == OLD

    lattices.machines.release_joins(names.deployment(prod, "alpha"))
    lattices.conditioned(prod, "VersionCurrent", "True")
    for each in ("alpha", "beta"):
        lattices.joined(prod, each, 1)


def test_a_class_without_an_entry_for_the_provider_blocks_its_pool_alone(lattices, prod):
    unfit = lattices.node_class(lattices.name("unfit"), aws={"instanceType": "m5.large"})
    lattices.change_pools(prod, gamma=pool(1, nodeClass=unfit))

    lattices.conditioned(prod, "Accepted", "False", "NodeClassUnfit")
    assert "add spec.providers.docker" in lattices.condition(prod, "Accepted")["message"]
    assert lattices.deployment(prod, "gamma") is None
    lattices.change_pools(prod, beta={"replicas": 2})
    lattices.joined(prod, "beta", 2)

    lattices.change_class(unfit, docker={})
    lattices.joined(prod, "gamma", 1)


def test_of_two_deployments_of_one_pool_neither_is_deleted_and_the_condition_names_both(lattices, prod):
    """An incomplete migration from the legacy MachineDeployment."""
    lattices.change_pools(prod, default=pool(1))
    lattices.joined(prod, "default", 1)
    there = lattices.deployment(prod, "default")
    spec = {**there["spec"], "replicas": 0}
    labels = {names.CLUSTER_NAME_LABEL: prod, names.DEPLOYMENT_NAME_LABEL: names.legacy_deployment(prod)}
    spec |= {"selector": {"matchLabels": labels}}
    spec["template"] = {**spec["template"], "metadata": {"labels": labels}}
    metadata = {"name": names.legacy_deployment(prod), "namespace": names.namespace(prod)}
    legacy = {"apiVersion": names.CAPI_API_VERSION, "kind": "MachineDeployment", "metadata": metadata, "spec": spec}
    lattices.rest.create(legacy)

    lattices.conditioned(prod, "Accepted", "False", "TwoMachineDeployments")
    message = lattices.condition(prod, "Accepted")["message"]
    assert f"{names.deployment(prod, 'default')} is used, {names.legacy_deployment(prod)} is left unchanged" in message
    other = lattices.machines.deployment(prod, names.legacy_deployment(prod))
    assert names.MANAGER not in {each["manager"] for each in other["metadata"]["managedFields"]}
    assert len(lattices.machines.nodes(prod, names.deployment(prod, "default"))) == 1
