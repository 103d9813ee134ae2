"""`--install-crds` if an APIService serves one of our groups; on both servers."""

import copy
from dataclasses import replace

import pytest
from tests.builders import labels
from tests.builders.rule_webhooks import discard

from nodeyard.client.api import Client
from nodeyard.client.errors import NotFound
from nodeyard.client.http_transport import HttpTransport
from nodeyard.client.kubeconfig import load_config
from nodeyard.client.resources import API_SERVICES, CUSTOM_RESOURCE_DEFINITIONS
from nodeyard.process.clock import SystemClock
from nodeyard.runtime.capability import Kind
from nodeyard.runtime.crds import install

GROUP = "elsewhere.test"
NAME = f"labelrules.{GROUP}"
REGISTRATION = f"v1.{GROUP}"


def definition():
    made = copy.deepcopy(labels.definition())
    made["metadata"]["name"], made["spec"]["group"] = NAME, GROUP
    return made


CAPABILITY = replace(labels.LABELS, kinds=(Kind(replace(labels.RULES, group=GROUP), definition),))


@pytest.fixture
async def client(api):
    client = Client(HttpTransport(load_config(api.kubeconfig)))
    yield client
    await client.close()


@pytest.fixture
def clean(api):
    yield
    discard(api.rest, f"/apis/apiregistration.k8s.io/v1/apiservices/{REGISTRATION}")
    discard(api.rest, f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{NAME}")


async def register(client):
    spec = {"group": GROUP, "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10}
    service = {"namespace": "cozy-system", "name": "cozystack-api"}
    await client.create(API_SERVICES, {"metadata": {"name": REGISTRATION}, "spec": {**spec, "service": service}})


async def test_a_group_that_another_server_serves_gets_no_definition_and_the_server_is_named(clean, client):
    await register(client)

    result = await install(client, [CAPABILITY], SystemClock())

    assert (result.created, result.aggregated) == ((), {NAME: REGISTRATION})
    with pytest.raises(NotFound):
        await client.get(CUSTOM_RESOURCE_DEFINITIONS, NAME)


async def test_a_registration_caused_by_our_crd_is_not_mistaken_for_a_foreign_one(clean, client):
    """A real server creates an APIService without a Service for each group of CRDs."""
    first = await install(client, [CAPABILITY], SystemClock())

    again = await install(client, [CAPABILITY], SystemClock())

    assert (first.created, again.created, again.aggregated) == ((NAME,), (), {})
