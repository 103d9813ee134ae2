"""Stand-in CRDs of other projects on the embedded server accept valid objects and reject invalid ones."""

import pytest
import pytest_asyncio

from nodeyard.apiserver.server import Server
from nodeyard.client import errors
from nodeyard.client.resources import NAMESPACES
from nodeyard.process.clock import SystemClock
from nodeyard.sim import stand_in_crds
from nodeyard.sim.embedded import connect
from nodeyard.sim.machine_defaults import MachineDeploymentDefaults

from ..builders.third_party_objects import (
    CONTROL,
    DEPLOYMENT,
    IMMUTABLE,
    NAMESPACE,
    REFUSED_BY_WEBHOOKS,
    SAMPLES,
    changed,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client():
    clock = SystemClock()
    server = Server(clock, plugins=[MachineDeploymentDefaults()])
    await server.start()
    client = connect(server)
    await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    await stand_in_crds.install(client, clock)
    yield client
    await server.stop()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def catalog(client):
    return await client.catalog()


def resource(catalog, obj):
    return catalog.by_kind(obj["apiVersion"], obj["kind"]).resource


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
async def test_a_sample_is_accepted_or_rejected_as_expected(client, catalog, sample):
    if sample.fits:
        await client.create(resource(catalog, sample.object), sample.object, dry_run=True)
        return
    with pytest.raises((errors.BadRequest, errors.Invalid)):
        await client.create(resource(catalog, sample.object), sample.object, dry_run=True)


@pytest.mark.parametrize("obj", REFUSED_BY_WEBHOOKS.values(), ids=REFUSED_BY_WEBHOOKS)
async def test_objects_that_webhooks_would_refuse_are_refused(client, catalog, obj):
    with pytest.raises(errors.Invalid):
        await client.create(resource(catalog, obj), obj, dry_run=True)


@pytest.mark.parametrize(("obj", "path", "value"), IMMUTABLE.values(), ids=IMMUTABLE)
async def test_templates_do_not_change(client, catalog, obj, path, value):
    made = await client.create(resource(catalog, obj), obj)
    with pytest.raises(errors.Invalid, match="immutable"):
        await client.update(resource(catalog, obj), changed(made, path, value))


async def test_an_even_control_plane_is_refused(client, catalog):
    with pytest.raises(errors.Invalid, match="even number"):
        await client.create(resource(catalog, CONTROL), changed(CONTROL, "spec.replicas", 2), dry_run=True)


async def test_a_deployment_without_replicas_has_one_and_can_be_scaled(client, catalog):
    deployment = changed(DEPLOYMENT, "metadata.name", "scaled")
    del deployment["spec"]["replicas"]
    kind = resource(catalog, deployment)
    made = await client.create(kind, deployment)
    assert made["spec"]["replicas"] == 1
    await client.patch(kind, "scaled", {"spec": {"replicas": 4}}, NAMESPACE, subresource="scale")
    assert (await client.get(kind, "scaled", NAMESPACE))["spec"]["replicas"] == 4


async def test_installing_twice_changes_nothing(client):
    await stand_in_crds.install(client, SystemClock(), "flux")


async def test_every_field_of_a_stand_in_is_described():
    missing = []

    def walk(schema, path):
        for name, value in (schema.get("properties") or {}).items():
            if "description" not in value and name != "metadata":
                missing.append(f"{path}.{name}")
            walk(value, f"{path}.{name}")
        if "items" in schema:
            walk(schema["items"], f"{path}[]")

    for definition in stand_in_crds.definitions():
        for version in definition["spec"]["versions"]:
            walk(version["schema"]["openAPIV3Schema"], definition["spec"]["names"]["kind"])
    assert missing == []


async def test_an_unknown_group_of_stand_ins_is_named():
    with pytest.raises(LookupError, match='no stand-ins "azure"; there are: cluster-api'):
        stand_in_crds.definitions("azure")
