"""CRDs: missing ones are installed, and missing fields are reported."""

import asyncio
import copy

import pytest
from tests.builders.labels import LABELS, definition

from nodeyard.apiserver.server import Server
from nodeyard.client.errors import Forbidden, NotFound, TransportError
from nodeyard.client.resources import API_SERVICES, CUSTOM_RESOURCE_DEFINITIONS
from nodeyard.client.transport import Response
from nodeyard.runtime.crds import Installed, install, missing_fields
from nodeyard.sim.embedded import connect

NAME = "labelrules.labels.test"


@pytest.fixture
async def client(clock):
    server = Server(clock)
    await server.start(())
    yield connect(server)
    await server.stop()


async def installed(client, clock):
    installing = asyncio.create_task(install(client, [LABELS], clock))
    await clock.advance(60)
    return await installing


def spec_of(found):
    return found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]


async def test_missing_crds_are_installed_and_established(client, clock):
    result = await installed(client, clock)
    assert (result.created, result.missing) == ((NAME,), {})
    found = await client.get(CUSTOM_RESOURCE_DEFINITIONS, NAME)
    assert {"Established"} <= {each["type"] for each in found["status"]["conditions"] if each["status"] == "True"}


async def test_a_second_time_changes_nothing(client, clock):
    await installed(client, clock)
    before = await client.get(CUSTOM_RESOURCE_DEFINITIONS, NAME)
    assert (await installed(client, clock)).created == ()
    after = await client.get(CUSTOM_RESOURCE_DEFINITIONS, NAME)
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


async def test_anothers_definition_is_left_as_it_is_and_its_gaps_are_named(client, clock):
    foreign = copy.deepcopy(definition())
    del spec_of(foreign)["properties"]["notBefore"]
    await client.create(CUSTOM_RESOURCE_DEFINITIONS, foreign)
    result = await installed(client, clock)
    assert (result.created, result.missing) == ((), {NAME: (".spec.notBefore",)})
    assert "notBefore" not in spec_of(await client.get(CUSTOM_RESOURCE_DEFINITIONS, NAME))["properties"]


def registration(service=None):
    spec = {"group": "labels.test", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10}
    return {"metadata": {"name": "v1.labels.test"}, "spec": {**spec, **({"service": service} if service else {})}}


async def test_a_kind_that_another_server_has_gets_no_definition(client, clock):
    await client.create(API_SERVICES, registration({"namespace": "cozy-system", "name": "cozystack-api"}))

    result = await installed(client, clock)

    assert (result.created, result.aggregated) == ((), {NAME: "v1.labels.test"})
    with pytest.raises(NotFound):
        await client.get(CUSTOM_RESOURCE_DEFINITIONS, NAME)


async def test_a_group_that_this_server_has_itself_gets_its_definitions(client, clock):
    await client.create(API_SERVICES, registration())

    assert (await installed(client, clock)).created == (NAME,)


async def test_a_definition_that_is_there_is_used_whoever_serves_its_group_now(client, clock):
    await installed(client, clock)
    await client.create(API_SERVICES, registration({"namespace": "cozy-system", "name": "cozystack-api"}))

    assert (await installed(client, clock)) == Installed((), {})


async def test_without_the_right_to_see_who_serves_a_group_definitions_are_installed(client, clock):
    inner = client.transport.send

    async def send(request):
        if "apiservices" in request.path:
            return Response(403, {}, b'{"kind": "Status", "code": 403, "message": "no right"}')
        return await inner(request)

    client.transport.send = send

    assert (await installed(client, clock)).created == (NAME,)


def schema(**properties):
    return {"type": "object", "properties": properties}


def crd(spec, version="v1"):
    whole = {"schema": {"openAPIV3Schema": schema(spec=spec)}, "name": version}
    return {"spec": {"versions": [whole]}}


def missing(ours, theirs):
    return list(missing_fields(crd(ours), crd(theirs)))


def test_fields_inside_lists_and_maps_are_compared():
    ours = schema(
        taints={"type": "array", "items": schema(key={}, effect={})}, pools={"additionalProperties": schema(size={})}
    )
    theirs = schema(taints={"type": "array", "items": schema(key={})}, pools={"additionalProperties": schema()})
    assert missing(ours, theirs) == [".spec.taints[].effect", ".spec.pools{}.size"]


def test_an_unstructured_schema_lacks_no_field():
    assert missing(schema(deep=schema(er={})), schema(deep={"x-kubernetes-preserve-unknown-fields": True})) == []


def test_a_missing_version_is_named_as_a_whole():
    assert list(missing_fields(crd({}, "v2"), crd({}))) == ["v2 (the whole version)"]


async def test_a_server_that_fails_for_a_while_is_asked_again(client, clock):
    """Regression: one failed GET ended the process."""
    asked, send = [], client.transport.send

    async def failing(request):
        asked.append(request.method)
        if len(asked) == 1:
            raise TransportError(f"{request.method} {request.path}: cannot connect to it: refused", may_have_run=False)
        if len(asked) in (2, 4, 6):
            return Response(500, {}, b"")
        return await send(request)

    client.transport.send = failing
    assert (await installed(client, clock)).created == (NAME,)


async def test_a_permanent_refusal_is_not_retried(client, clock):
    async def refusing(_request):
        return Response(403, {}, b"")

    client.transport.send = refusing
    with pytest.raises(Forbidden):
        await installed(client, clock)
