"""The real CRDs of other projects on the real server accept and reject the same samples as the stand-ins."""

import pytest
import pytest_asyncio
from tests.builders.operators import until

from nodeyard.client import errors
from nodeyard.client.api import Client
from nodeyard.client.http_transport import HttpTransport
from nodeyard.client.kubeconfig import load_config
from nodeyard.client.resources import NAMESPACES
from nodeyard.sim import stand_in_crds as stand_ins
from nodeyard.testing import ControlPlane, third_party_crds

from ..builders.third_party_objects import NAMESPACE, REFUSED_BY_WEBHOOKS, SAMPLES

pytestmark = [pytest.mark.real, pytest.mark.asyncio(loop_scope="module")]

SOURCES = ("kubeadm-bootstrap", "kubeadm-control-plane", "docker", "aws", "proxmox", "flux-helm")


@pytest.fixture(scope="module")
def plane():
    with ControlPlane(cluster_api=True) as plane:
        third_party_crds.install(plane.rest, third_party_crds.definitions(*SOURCES))
        yield plane


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(plane):
    client = Client(HttpTransport(load_config(plane.kubeconfig)))
    await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    yield client
    await client.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def catalog(client):
    objects = [*(sample.object for sample in SAMPLES), *REFUSED_BY_WEBHOOKS.values()]

    async def whole():
        catalog = await client.catalog()
        return catalog if all(catalog.by_kind(obj["apiVersion"], obj["kind"]) for obj in objects) else None

    return await until(whole, "every kind is listed")


def resource(catalog, obj):
    return catalog.by_kind(obj["apiVersion"], obj["kind"]).resource


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
async def test_a_sample_is_accepted_or_rejected_alike(client, catalog, sample):
    if sample.fits:
        await client.create(resource(catalog, sample.object), sample.object, dry_run=True)
        return
    with pytest.raises((errors.BadRequest, errors.Invalid)):
        await client.create(resource(catalog, sample.object), sample.object, dry_run=True)


@pytest.mark.parametrize("obj", REFUSED_BY_WEBHOOKS.values(), ids=REFUSED_BY_WEBHOOKS)
async def test_the_projects_webhooks_refuse_it(client, catalog, obj):
    with pytest.raises((errors.AdmissionDenied, errors.Invalid)):
        await client.create(resource(catalog, obj), obj, dry_run=True)


def names(definition):
    chosen = definition["spec"]["names"]
    return {key: chosen.get(key) for key in ("kind", "plural", "singular", "shortNames", "listKind")}


async def test_stand_ins_have_the_names_versions_and_subresources_of_the_real_ones():
    real = {one["metadata"]["name"]: one for one in third_party_crds.definitions("cluster-api", *SOURCES)}
    for stand_in in stand_ins.definitions():
        upstream = real[stand_in["metadata"]["name"]]
        assert names(stand_in) == names(upstream)
        assert stand_in["spec"]["scope"] == upstream["spec"]["scope"]
        versions = {one["name"]: one for one in upstream["spec"]["versions"]}
        for version in stand_in["spec"]["versions"]:
            assert version["storage"] == versions[version["name"]]["storage"]
            assert (version.get("subresources") or {}) == (versions[version["name"]].get("subresources") or {})


async def test_every_field_of_a_stand_in_is_one_of_the_real_ones():
    real = {one["metadata"]["name"]: one for one in third_party_crds.definitions("cluster-api", *SOURCES)}
    strange = []

    def compare(ours, theirs, path):
        for name, value in (ours.get("properties") or {}).items():
            if name not in (theirs.get("properties") or {}):
                strange.append(f"{path}.{name}")
                continue
            compare(value, theirs["properties"][name], f"{path}.{name}")
        if "items" in ours:
            compare(ours["items"], theirs["items"], f"{path}[]")

    for stand_in in stand_ins.definitions():
        versions = {one["name"]: one for one in real[stand_in["metadata"]["name"]]["spec"]["versions"]}
        for version in stand_in["spec"]["versions"]:
            upstream = versions[version["name"]]["schema"]["openAPIV3Schema"]
            compare(version["schema"]["openAPIV3Schema"], upstream, stand_in["spec"]["names"]["kind"])
    assert strange == []
