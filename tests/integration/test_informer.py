"""Watches over TLS on both servers: the cache equals the server's objects, also after many faults."""

import asyncio
import itertools
from contextlib import asynccontextmanager
from random import Random

import pytest

from nodeyard.client.api import Client
from nodeyard.client.http_transport import HttpTransport
from nodeyard.client.kubeconfig import load_config
from nodeyard.client.resources import CONFIG_MAPS, NAMESPACES
from nodeyard.kube.objects import PartialObject
from nodeyard.plan.model import ObjectRef
from nodeyard.process.backoff import Backoff
from nodeyard.process.clock import SystemClock
from nodeyard.runtime.capability import Watch
from nodeyard.testing.embedded import EmbeddedServer
from nodeyard.testing.faults import DoubleEvents, Drop, FaultProxy, HalfOpen, Status, TruncateEvents
from nodeyard.watch import InformerFactory
from nodeyard.watch.cache import Cache
from nodeyard.watch.reflector import InformerKey, Reflector

SOON = 20.0
WATCH = "watch=true"
_numbers = itertools.count(1)


@asynccontextmanager
async def connected(kubeconfig, **options):
    client = Client(HttpTransport(load_config(kubeconfig)), **options)
    try:
        yield client
    finally:
        await client.close()


class Space:
    """ConfigMaps of one test, in a namespace of their own with a label of their own."""

    def __init__(self, client, name):
        self.client, self.name = client, name
        self.selector = f"informer-test={name}"

    async def make(self, name, **data):
        metadata = {"name": name, "namespace": self.name, "labels": {"informer-test": self.name}}
        return await self.client.create(CONFIG_MAPS, {"metadata": metadata, "data": data})

    async def change(self, name, **data):
        return await self.client.patch(CONFIG_MAPS, name, {"data": data}, self.name)

    async def delete(self, name):
        return await self.client.delete(CONFIG_MAPS, name, self.name)

    async def truth(self):
        return versions((await self.client.list(CONFIG_MAPS, self.name, labels=self.selector)).items)


@asynccontextmanager
async def a_space(kubeconfig):
    async with connected(kubeconfig) as client:
        name = f"informer-{next(_numbers)}"
        await client.create(NAMESPACES, {"metadata": {"name": name}})
        yield Space(client, name)
        await client.delete(NAMESPACES, name)


@pytest.fixture
async def space(api):
    async with a_space(api.kubeconfig) as space:
        yield space


class Follower:
    """Build an informer of a space with shorter timeouts than in production."""

    def __init__(self, client, space, idle_timeout):
        self.cache = Cache(dict)
        self._moved = asyncio.Event()
        self.cache.listen(lambda _change: self._moved.set())
        self.informer = Reflector(
            client,
            InformerKey(CONFIG_MAPS, label_selector=space.selector),
            self.cache,
            SystemClock(),
            Random(1),
            on_synced=self._moved.set,
            backoff=Backoff(first=0.01, most=0.1),
            idle_timeout=idle_timeout,
        )

    async def until(self, truth):
        async with asyncio.timeout(SOON):
            while not self.informer.is_synced or versions(self.cache.all()) != truth:
                self._moved.clear()
                await self._moved.wait()


@asynccontextmanager
async def following(kubeconfig, space, idle_timeout=0.5):
    async with connected(kubeconfig, timeout=2.0) as client:
        follower = Follower(client, space, idle_timeout)
        task = asyncio.create_task(follower.informer.run())
        try:
            yield follower
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def versions(objects):
    return {obj["metadata"]["name"]: obj["metadata"]["resourceVersion"] for obj in objects}


async def test_existing_and_changed_objects_are_in_the_cache(api, space):
    await space.make("a", x="1")
    await space.make("b", x="1")
    async with following(api.kubeconfig, space) as follower:
        await follower.until(await space.truth())
        await space.change("a", x="2")
        await space.delete("b")
        await space.make("c")
        await follower.until(await space.truth())
        assert follower.cache.get((space.name, "a"))["data"] == {"x": "2"}
        assert follower.informer.state.can_stream


async def test_a_server_that_refuses_to_stream_is_listed_in_pages(api, space, faults):
    await space.make("a")
    faults.add(Status(422), path="sendInitialEvents")
    async with following(faults.kubeconfig, space, idle_timeout=SOON) as follower:
        await follower.until(await space.truth())
        await space.make("b")
        await follower.until(await space.truth())
        assert not follower.informer.state.can_stream
        assert follower.informer.report().restarts == 0


async def test_after_many_faults_the_cache_equals_the_server(api, space, faults):
    rules = [
        faults.add(Drop(), path=WATCH, chance=0.3),
        faults.add(Status(429), path=WATCH, chance=0.2),
        faults.add(Status(500), path="configmaps", method="GET", chance=0.2),
        faults.add(TruncateEvents(), path=WATCH, chance=0.1),
        faults.add(DoubleEvents(), path=WATCH, chance=0.3),
        faults.add(HalfOpen(), path=WATCH, chance=0.03),
    ]
    async with following(faults.kubeconfig, space) as follower, asyncio.timeout(60):
        await churn(space, until=lambda writes: writes >= 150 and all(rule.hits for rule in rules))
        faults.clear()
        await follower.until(await space.truth())
        assert follower.informer.restarts > 0


async def churn(space, until):
    """Create, change and delete without a pause."""
    random = Random(3)
    alive = set()
    for writes in itertools.count():
        if until(writes):
            return
        name = f"c{random.randrange(12)}"
        if name not in alive:
            await space.make(name, n=str(writes))
            alive.add(name)
        elif random.random() < 0.3:
            await space.delete(name)
            alive.remove(name)
        else:
            await space.change(name, n=str(writes))


async def test_a_half_open_watch_is_detected_and_closed(api, space, faults):
    await space.make("a")
    async with following(faults.kubeconfig, space) as follower:
        await follower.until(await space.truth())
        stalled = faults.add(HalfOpen(), path=WATCH, times=1)
        await space.make("b")
        await follower.until(await space.truth())
        assert stalled.hits == 1
        assert follower.informer.restarts > 0


async def test_history_that_was_forgotten_is_listed_again_with_its_deletions():
    with EmbeddedServer() as server, FaultProxy(server.url, server.authority.pem, server.admin_token, 1) as faults:
        async with a_space(server.kubeconfig) as space, following(faults.kubeconfig, space) as follower:
            for name in ("stays", "goes", "changes"):
                await space.make(name)
            await follower.until(await space.truth())
            relisted = []
            follower.cache.listen(lambda change: relisted.append((change.old or change.new)["metadata"]["name"]))
            faults.add(Status(500), path=WATCH)
            faults.add(TruncateEvents(), path=WATCH, times=1)
            await space.change("changes", x="1")
            await space.delete("goes")
            await space.make("comes")
            server.compact()
            faults.clear()
            await follower.until(await space.truth())
            assert sorted(relisted) == ["changes", "comes", "goes"]


async def test_own_writes_are_seen_at_once_and_confirmed_by_the_watch(api, space):
    await space.make("a")
    async with connected(api.kubeconfig) as client:
        informers = InformerFactory(client, SystemClock(), Random(1))
        watch = Watch(CONFIG_MAPS, keys=lambda _old, _new: [], label_selector=space.selector)
        view = informers.register((watch,))
        task = asyncio.create_task(informers.run())
        async with asyncio.timeout(SOON):
            await informers.wait_for_sync()
        ref = ObjectRef(api_version="v1", kind="ConfigMap", namespace=space.name, name="a")
        for number in range(20):
            informers.record_write(ref, await space.change("a", n=str(number)))
            assert view.get("ConfigMap", "a", space.name)["data"]["n"] == str(number)
        informers.record_deletion(ref, await space.delete("a"))
        assert view.all("ConfigMap") == ()
        await confirmed(informers, space)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def confirmed(informers, space):
    """Wait until the watch delivers a new object, and thus everything before it."""
    arrived = asyncio.Event()
    [informer] = informers.all
    informer.cache.listen(lambda change: arrived.set() if change.new else None)
    await space.make("later")
    async with asyncio.timeout(SOON):
        await arrived.wait()
    assert informer.report().unconfirmed == 0


async def test_metadata_alone_is_streamed_and_listed(api, space, faults):
    await space.make("a", x="1")
    faults.add(Status(422), path="sendInitialEvents", times=1)
    for kubeconfig in (api.kubeconfig, faults.kubeconfig):
        async with connected(kubeconfig) as client:
            informers = InformerFactory(client, SystemClock(), Random(1))
            watch = Watch(CONFIG_MAPS, keys=lambda _old, _new: [], label_selector=space.selector, metadata_only=True)
            view = informers.register((watch,))
            task = asyncio.create_task(informers.run())
            async with asyncio.timeout(SOON):
                await informers.wait_for_sync()
            [found] = view.all("ConfigMap")
            assert isinstance(found, PartialObject)
            assert found.metadata.name == "a"
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
