"""The surfaces of pools, affinity and profiles on the caches of a server."""

import pytest
from tests.builders.dashboard import local_page
from tests.builders.operators import until
from tests.builders.placements import affinity_class_body
from tests.builders.pools import pool

from nodeyard.capabilities.affinity.controller import AFFINITY
from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.controller import POOLS
from nodeyard.capabilities.profiles.controller import PROFILES
from nodeyard.dashboard import live, planner, tiles
from nodeyard.testing import third_party_crds


@pytest.fixture
def profile_crds(api):
    third_party_crds.install(api.rest, list(PROFILES.definitions()))


def row_of(snapshot, node):
    columns = snapshot["nodes"]["columns"]
    rows = (dict(zip(columns, row, strict=True)) for row in snapshot["nodes"]["rows"])
    return next((row for row in rows if row["name"] == node), {})


def about(snapshot, section, name):
    return next((each for each in snapshot[section] if each["object"]["name"] == name), None)


async def test_a_pool_its_scaling_and_an_unplaced_service_are_on_the_page(api, pools_env):
    prod = pools_env.cluster(pools_env.name(), workerPools={"gpu": pool(1, labels={"tier": "gpu"}), "web": pool(1)})
    async with local_page(api.kubeconfig, POOLS) as page:
        (node,) = pools_env.wait_for_nodes(prod, "gpu", 1)
        name = node["metadata"]["name"]
        await page.until_snapshot(lambda snapshot: row_of(snapshot, name).get("pool") == f"{prod}/gpu", 60)
        service = pools_env.service(pools_env.name("svc"), {"tier": "none"})
        item = await page.until_snapshot(lambda snapshot: about(snapshot, "attention", service), 60)
        assert (item["kind"], item["reason"]) == ("Unplaced", "NoPoolFits")

        pools_env.machines.hold_joins(names.deployment(prod, "web"))
        pools_env.change_pools(prod, web={"replicas": 2})
        deployment = names.deployment(prod, "web")
        row = await page.until_snapshot(lambda snapshot: about(snapshot, "rollouts", deployment), 60)
        assert (row["kind"], row["done"], row["total"], row["state"]) == ("Pool", 1, 2, "Scaling")
        pools_env.machines.release_joins(names.deployment(prod, "web"))
        await page.until_snapshot(lambda snapshot: not about(snapshot, "rollouts", deployment), 60)


class Failures:
    """Stands in for a logger and keeps the failures."""

    def __init__(self):
        self.kept = []

    def exception(self, event, **details):
        self.kept.append((event, details))

    def __getattr__(self, _level):
        return lambda *_arguments, **_details: None


@pytest.fixture
def failures(monkeypatch):
    failures = Failures()
    for module in (live, planner, tiles):
        monkeypatch.setattr(module, "_log", failures)
    return failures


@pytest.fixture
def published(monkeypatch):
    """The capabilities whose surface was read."""
    read, plain = set(), live.Live._publish_surface

    def publish(self, name, surface, view):
        plain(self, name, surface, view)
        read.add(name)

    monkeypatch.setattr(live.Live, "_publish_surface", publish)
    return read


async def test_no_surface_fails_on_the_caches_of_a_server(
    api, pool_crds, affinity_crds, profile_crds, spares_env, failures, published
):
    label = f"{spares_env.name}-class"
    node = spares_env.node("classed", **{"in": label})
    api.rest.create(affinity_class_body(label, {"in": label}))
    try:
        async with local_page(api.kubeconfig, POOLS, AFFINITY, PROFILES) as page:
            await page.until_snapshot(lambda snapshot: label in row_of(snapshot, node).get("class", ""), 60)

            async def explained():
                found = await page.get("why", kind="AffinityClass", name=label)
                return next(iter(found.get("answers", ())), None)

            async def are_read():
                return published == {"pools", "affinity", "profiles"}

            answer = await until(explained, "the class is explained", 40)
            assert [each["state"] for each in answer["ladder"]].count("decided") == 1
            await until(are_read, "all surfaces are read", 40)
    finally:
        api.rest.call("DELETE", f"/apis/cozystack.io/v1alpha1/affinityclasses/{label}")
    assert failures.kept == []
