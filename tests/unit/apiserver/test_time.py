"""Effects of time on watches and lists, on a clock that jumps."""

from __future__ import annotations

import asyncio
import json

import pytest

from nodeyard.apiserver.server import Server
from nodeyard.apiserver.transport import User, request
from nodeyard.process.clock import VirtualClock

ADMIN = User("admin", ("system:masters",))
PATH = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def server(clock: VirtualClock):
    server = Server(clock, seed=1)
    await server.start(())
    yield server
    await server.stop()


async def ask(server: Server, method: str, url: str, body=b""):
    return await server.handle(request(method, url, body, user=ADMIN))


class Reader:
    """Collects the events of a watch in the background."""

    def __init__(self, stream) -> None:
        self.events: list[dict] = []
        self.task = asyncio.create_task(self._read(stream))

    async def _read(self, stream) -> None:
        async for chunk in stream:
            self.events += [json.loads(line) for line in chunk.splitlines()]


async def test_a_quiet_watch_is_bookmarked_every_minute(server, clock):
    revision = (await ask(server, "GET", PATH)).json()["metadata"]["resourceVersion"]
    response = await ask(server, "GET", f"{PATH}?watch=1&allowWatchBookmarks=true&resourceVersion={revision}")
    reader = Reader(response.stream)
    await ask(server, "POST", "/api/v1/namespaces", {"metadata": {"name": "elsewhere"}})

    await clock.advance(125)

    assert [event["type"] for event in reader.events] == ["BOOKMARK", "BOOKMARK"]
    assert int(reader.events[-1]["object"]["metadata"]["resourceVersion"]) > int(revision)
    reader.task.cancel()


async def test_bookmarks_are_sent_only_on_request(server, clock):
    response = await ask(server, "GET", f"{PATH}?watch=1&resourceVersion=0")
    reader = Reader(response.stream)

    await clock.advance(300)

    assert reader.events == []
    reader.task.cancel()


async def test_a_watch_ends_when_its_time_is_up(server, clock):
    response = await ask(server, "GET", f"{PATH}?watch=1&timeoutSeconds=40")
    reader = Reader(response.stream)

    await clock.advance(39)
    assert not reader.task.done()
    await clock.advance(2)
    assert reader.task.done()


async def test_a_watch_from_a_compacted_revision_gets_410_in_its_stream(server):
    old = (await ask(server, "GET", PATH)).json()["metadata"]["resourceVersion"]
    await ask(server, "POST", PATH, {"metadata": {"name": "a"}})
    server.store.compact()

    response = await ask(server, "GET", f"{PATH}?watch=1&resourceVersion={old}")

    assert response.status == 200
    events = [json.loads(chunk) async for chunk in response.stream]
    assert [event["type"] for event in events] == ["ERROR"]
    assert (events[0]["object"]["code"], events[0]["object"]["reason"]) == (410, "Expired")


async def test_a_forgotten_continue_token_can_continue_at_the_present(server):
    for name in "abc":
        await ask(server, "POST", PATH, {"metadata": {"name": name}})
    first = (await ask(server, "GET", f"{PATH}?limit=1")).json()
    await ask(server, "POST", PATH, {"metadata": {"name": "d"}})
    server.store.compact()

    expired = await ask(server, "GET", f"{PATH}?limit=1&continue={first['metadata']['continue']}")
    rest = await ask(server, "GET", f"{PATH}?continue={expired.json()['metadata']['continue']}")

    assert (expired.status, expired.json()["reason"]) == (410, "Expired")
    assert [item["metadata"]["name"] for item in rest.json()["items"]] == ["b", "c", "d"]


async def test_an_exact_list_of_a_forgotten_revision_is_expired(server):
    old = (await ask(server, "GET", PATH)).json()["metadata"]["resourceVersion"]
    await ask(server, "POST", PATH, {"metadata": {"name": "a"}})
    server.store.compact()

    response = await ask(server, "GET", f"{PATH}?resourceVersion={old}&resourceVersionMatch=Exact")

    assert (response.status, response.json()["reason"]) == (410, "Expired")


async def test_the_same_seed_gives_the_same_identities(clock):
    async def uid() -> str:
        server = Server(clock, seed=7)
        await server.call("POST", "/api/v1/namespaces", {"metadata": {"name": "default"}})
        answer = await ask(server, "POST", PATH, {"metadata": {"generateName": "x-"}})
        return answer.json()["metadata"]["uid"] + answer.json()["metadata"]["name"]

    assert await uid() == await uid()


async def test_several_clusters_live_in_one_process(clock):
    one, two = Server(clock), Server(clock)
    await one.call("POST", "/api/v1/nodes", {"metadata": {"name": "n"}})

    assert (await ask(one, "GET", "/api/v1/nodes/n")).status == 200
    assert (await ask(two, "GET", "/api/v1/nodes/n")).status == 404
