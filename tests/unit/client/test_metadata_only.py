"""Requests for metadata only; the original client is unchanged."""

from tests.unit.watch.builders import Script, bookmark, page

from nodeyard.client.api import Client
from nodeyard.client.metadata_only import metadata_only
from nodeyard.client.resources import CONFIG_MAPS
from nodeyard.kube.objects import PartialObject

PARTIAL = CONFIG_MAPS.decoded_as(PartialObject)


async def test_a_watch_asks_for_the_metadata_of_each_object(clock):
    script = Script(clock, [bookmark(5)])
    async with metadata_only(Client(script)).watch(PARTIAL) as events:
        assert (await anext(events)).resource_version == "5"
    accept = script.asked[0].headers["Accept"]
    assert accept == "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"


async def test_a_list_asks_for_the_list_of_them(clock):
    script = Script(clock, page(5))
    await metadata_only(Client(script)).list(PARTIAL)
    accept = script.asked[0].headers["Accept"]
    assert accept == "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"


async def test_requests_are_still_observed_and_the_client_itself_is_unchanged(clock):
    script = Script(clock, page(5), page(6))
    seen = []
    client = Client(script, observe=lambda verb, *_rest: seen.append(verb))
    await metadata_only(client).list(PARTIAL)
    await client.list(CONFIG_MAPS)
    assert seen == ["list", "list"]
    assert "Accept" not in script.asked[1].headers
