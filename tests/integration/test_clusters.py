"""A capability with remote clusters on the whole loop, in process under virtual time."""

import asyncio
import logging
from contextlib import asynccontextmanager
from dataclasses import replace
from random import Random

import pytest
from tests.builders import remote_clusters
from tests.builders.remote_clusters import SEEN, RemoteClusters, node, secret

from nodeyard.apiserver.server import Server
from nodeyard.client.errors import NotFound
from nodeyard.client.resources import CONFIG_MAPS, NAMESPACES, NODES, SECRETS
from nodeyard.runtime.manager import Manager
from nodeyard.runtime.reconcile.plan_executor import InlinePlanExecutor
from nodeyard.runtime.settings import Settings
from nodeyard.sim.embedded import connect

OURS = ("cluster", "informer", "watches", "served", "contact", "reconcile")


class Env:
    """The host server, remote clusters, and an operator."""

    def __init__(self, server, remotes, clock):
        self.client = connect(server)
        self.forest = remotes
        self.clock = clock
        self._server = server

    @asynccontextmanager
    async def operating(self, capability=None, **settings):
        manager = Manager(
            connect(self._server),
            [capability or remote_clusters.leaves("g")],
            Settings(identity="one", leader_elect=False, **settings),
            clock=self.clock,
            random=Random(1),
            plan_executor=InlinePlanExecutor,
            connect=self.forest.connect,
        )
        async with manager.running():
            await self.clock.advance(1)
            yield manager
            stopping = asyncio.create_task(self.clock.advance(5))
        await stopping
        left = [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        assert [name for name in left if name.startswith(OURS)] == []

    async def name(self, leaf, kubeconfig):
        await self.client.create(SECRETS, secret(leaf, "g", kubeconfig))
        await self.clock.advance(2)

    async def rename(self, leaf, kubeconfig):
        data = secret(leaf, "g", kubeconfig)["data"]
        await self.client.patch(SECRETS, leaf, {"data": data}, "default")
        await self.clock.advance(2)

    async def report(self, leaf):
        try:
            return (await self.client.get(CONFIG_MAPS, leaf, "default"))["data"]
        except NotFound:
            return None


async def seen(leaf):
    page = await leaf.client.list(NODES)
    return {each["metadata"]["name"]: each["metadata"]["labels"].get(SEEN) for each in page.items}


async def uid_of(client):
    return (await client.get(NAMESPACES, "kube-system"))["metadata"]["uid"]


@pytest.fixture
async def env(clock):
    server, remotes = Server(clock, seed=1), RemoteClusters(clock)
    await server.start(())
    yield Env(server, remotes, clock)
    await remotes.stop()
    await server.stop()


async def test_a_named_cluster_is_connected_watched_and_written_to(env, clock):
    [oak] = await env.forest.add("oak")
    await oak.client.create(NODES, node("n1"))
    async with env.operating():
        await env.name("leaf-1", "oak first")
        assert await seen(oak) == {"n1": "yes"}
        report = await env.report("leaf-1")
        assert (report["connected"], report["error"], report["nodes"]) == ("true", "", "n1")
        await oak.client.create(NODES, node("n2"))
        await clock.advance(0.3)
        assert await seen(oak) == {"n1": "yes", "n2": "yes"}
        assert (await env.report("leaf-1"))["zone-a"] == "2"


async def test_a_view_knows_which_cluster_it_is_and_which_versions_are_served(env):
    [oak] = await env.forest.add("oak")
    async with env.operating():
        await env.name("leaf-1", "oak first")
        report = await env.report("leaf-1")
        assert report["uid"] == await uid_of(oak.client)
        assert report["own"] == await uid_of(env.client) != report["uid"]
        assert (report["versions"], report["own-versions"]) == ("v1", "v1")


async def test_a_remote_write_overlays_the_remote_cache(env, clock):
    [oak] = await env.forest.add("oak")
    async with env.operating():
        await env.name("leaf-1", "oak first")
        await oak.client.create(NODES, node("n1"))
        await clock.advance(1)
        patches = [path for method, path in oak.requests if method == "PATCH"]
        assert patches == ["/api/v1/nodes/n1"]


async def test_nodes_of_one_name_in_two_clusters_are_kept_apart(env):
    oak, elm = await env.forest.add("oak", "elm")
    for leaf in (oak, elm):
        await leaf.client.create(NODES, node("n1"))
    await elm.client.create(NODES, node("n2"))
    async with env.operating():
        await env.name("leaf-1", "oak first")
        await env.name("leaf-2", "elm first")
        assert (await env.report("leaf-1"))["nodes"] == "n1"
        assert (await env.report("leaf-2"))["nodes"] == "n1,n2"
        assert await seen(elm) == {"n1": "yes", "n2": "yes"}


async def test_new_credentials_of_the_same_cluster_cost_no_relist(env, clock):
    [oak] = await env.forest.add("oak")
    await oak.client.create(NODES, node("n1"))
    async with env.operating():
        await env.name("leaf-1", "oak first")
        oak.tokens = {"second"}
        oak.requests.clear()
        await env.rename("leaf-1", "oak second")
        await oak.client.create(NODES, node("n2"))
        await clock.advance(1)
        assert await seen(oak) == {"n1": "yes", "n2": "yes"}
        report = await env.report("leaf-1")
        assert (report["connected"], report["nodes"]) == ("true", "n1,n2")
        watches = [path for method, path in oak.requests if method == "WATCH"]
        assert len(watches) == 1, "the watch goes on where the old one ended"


async def test_another_cluster_under_the_same_name_shares_nothing_with_the_old_one(env):
    oak, elm = await env.forest.add("oak", "elm")
    await oak.client.create(NODES, node("of-oak"))
    await elm.client.create(NODES, node("of-elm"))
    async with env.operating():
        await env.name("leaf-1", "oak first")
        await env.rename("leaf-1", "elm first")
        report = await env.report("leaf-1")
        assert report["nodes"] == "of-elm"
        assert report["uid"] == await uid_of(elm.client)


async def test_a_cluster_counts_as_disconnected_until_it_is_known_which_one_it_is(env):
    await env.forest.add("oak", "elm")
    async with env.operating() as manager:
        await env.name("leaf-1", "oak first")
        view = manager.controllers[0].view.cluster("leaf-1")
        seen_states = set()

        async def look():
            while True:
                seen_states.add((view.is_connected, bool(view.uid)))
                await asyncio.sleep(0)

        looking = asyncio.create_task(look())
        await env.rename("leaf-1", "elm first")
        looking.cancel()
        assert (True, True) in seen_states
        assert (True, False) not in seen_states


async def test_no_action_planned_for_the_old_cluster_is_sent_to_the_new_one(env, clock):
    oak, elm = await env.forest.add("oak", "elm")
    await oak.client.create(NODES, node("n1"))
    await elm.client.create(NODES, node("n1", **{SEEN: "yes"}))
    oak.refuses_writes = True
    async with env.operating():
        await env.client.create(SECRETS, secret("leaf-1", "g", "oak first"))
        while ("PATCH", "/api/v1/nodes/n1") not in oak.requests:
            await clock.advance(0.05)
        await env.rename("leaf-1", "elm first")
        assert (await env.report("leaf-1"))["nodes"] == "n1"
        assert [method for method, _ in elm.requests if method == "PATCH"] == []
        await elm.client.create(NODES, node("n2"))
        await clock.advance(1)
        assert (await seen(elm))["n2"] == "yes"


async def test_rejected_credentials_are_reported_until_valid_ones_arrive(env):
    await env.forest.add("oak")
    async with env.operating():
        await env.name("leaf-1", "oak wrong")
        report = await env.report("leaf-1")
        assert report["connected"] == "false"
        assert report["error"] == "the credentials are rejected: the server answered 401"
        await env.rename("leaf-1", "oak first")
        assert (await env.report("leaf-1"))["connected"] == "true"


async def test_withdrawn_credentials_are_detected(env, clock):
    [oak] = await env.forest.add("oak")
    async with env.operating():
        await env.name("leaf-1", "oak first")
        oak.tokens = set()
        await clock.advance(20)
        assert "rejected" in (await env.report("leaf-1"))["error"]


async def test_a_kubeconfig_that_would_run_a_program_is_refused_and_costs_the_others_nothing(env):
    [oak] = await env.forest.add("oak")
    await oak.client.create(NODES, node("n1"))
    async with env.operating():
        await env.name("evil", remote_clusters.exec_kubeconfig("https://127.0.0.1:1"))
        await env.name("leaf-1", "oak first")
        report = await env.report("evil")
        assert report["connected"] == "false"
        assert report["error"].startswith("the kubeconfig is refused: kubeconfig of evil, user u: exec: ")
        assert await seen(oak) == {"n1": "yes"}


async def test_an_invalid_kubeconfig_ends_the_connection_of_the_valid_one(env):
    [oak] = await env.forest.add("oak")
    async with env.operating():
        await env.name("leaf-1", "oak first")
        await env.rename("leaf-1", remote_clusters.exec_kubeconfig("https://127.0.0.1:1"))
        assert (await env.report("leaf-1"))["connected"] == "false"
        oak.requests.clear()
        await oak.client.create(NODES, node("n1"))
        await env.clock.advance(60)
        assert await seen(oak) == {"n1": None}
        assert oak.requests == []


async def test_a_lost_and_restored_connection_is_reported_and_keeps_its_caches(env, clock):
    [oak] = await env.forest.add("oak")
    await oak.client.create(NODES, node("n1"))
    async with env.operating() as manager:
        await env.name("leaf-1", "oak first")
        known = manager.controllers[0].view.cluster("leaf-1")
        first = known.connected_at
        oak.disconnect()
        await clock.advance(5)
        report = await env.report("leaf-1")
        assert (report["connected"], report["nodes"], report["synced"]) == ("false", "n1", "true")
        assert "cut" in report["error"]
        await oak.client.create(NODES, node("n2"))
        oak.reconnect()
        await clock.advance(61)
        report = await env.report("leaf-1")
        assert (report["connected"], report["error"], report["nodes"]) == ("true", "", "n1,n2")
        assert first < known.connected_at <= clock.now()


async def test_a_cluster_that_does_not_respond_counts_as_disconnected(env, clock):
    [oak] = await env.forest.add("oak")
    async with env.operating():
        await env.name("leaf-1", "oak first")
        oak.is_hanging = True
        await clock.advance(30)
        assert (await env.report("leaf-1"))["error"] == "no answer in 5 s"


async def test_attempts_to_reach_a_dead_cluster_back_off(env, clock):
    [oak] = await env.forest.add("oak")
    oak.disconnect()
    async with env.operating():
        await env.name("leaf-1", "oak first")
        await clock.advance(600)
        oak.requests.clear()
        await clock.advance(600)
        assert 40 <= len(oak.requests) <= 85


async def test_dead_clusters_cost_the_others_nothing(env, clock):
    names = [f"dead-{number:02d}" for number in range(40)]
    for leaf in await env.forest.add(*names):
        leaf.is_hanging = True
    [oak] = await env.forest.add("oak")
    await oak.client.create(NODES, node("n1"))
    for name in names:
        await env.client.create(SECRETS, secret(name, "g", f"{name} first"))
    async with env.operating() as manager:
        await clock.advance(30)
        await env.client.create(SECRETS, secret("leaf-1", "g", "oak first"))
        await clock.advance(6)
        assert await seen(oak) == {"n1": "yes"}
        await oak.client.create(NODES, node("n2"))
        await clock.advance(0.3)
        assert await seen(oak) == {"n1": "yes", "n2": "yes"}
        assert {name: check() for name, check in manager.health().ready.items()} == {"synced": "", "watches": ""}


async def test_keys_that_wait_for_slow_clusters_do_not_hold_up_the_others(env, clock):
    names = [f"slow-{number}" for number in range(8)]
    for leaf in await env.forest.add(*names):
        leaf.hangs_on_writes = True
        await leaf.client.create(NODES, node("n1"))
    [oak] = await env.forest.add("oak")
    async with env.operating(grace=1.0):
        for name in names:
            await env.name(name, f"{name} first")
        await oak.client.create(NODES, node("n1"))
        await env.name("leaf-1", "oak first")
        assert await seen(oak) == {"n1": "yes"}


async def test_a_metric_shows_which_clusters_answer(env, clock):
    await env.forest.add("oak")
    [elm] = await env.forest.add("elm")
    elm.disconnect()
    async with env.operating() as manager:
        await env.name("leaf-1", "oak first")
        await env.name("leaf-2", "elm first")
        text = (await manager.metrics.render()).decode()
        assert 'nodeyard_cluster_connected{capability="leaves",cluster="leaf-1"} 1.0' in text
        assert 'nodeyard_cluster_connected{capability="leaves",cluster="leaf-2"} 0.0' in text
        await env.client.delete(SECRETS, "leaf-2", "default")
        await clock.advance(1)
        assert "leaf-2" not in (await manager.metrics.render()).decode()


async def test_a_cluster_that_is_not_named_any_more_is_disconnected_and_forgotten(env, clock):
    [oak] = await env.forest.add("oak")
    await oak.client.create(NODES, node("n1"))
    async with env.operating() as manager:
        await env.name("leaf-1", "oak first")
        await env.client.delete(SECRETS, "leaf-1", "default")
        await clock.advance(1)
        oak.requests.clear()
        await oak.client.create(NODES, node("n2"))
        await clock.advance(60)
        assert oak.requests == []
        gone = manager.controllers[0].view.cluster("leaf-1")
        assert (gone.all("Node"), gone.is_connected, gone.is_synced("Node")) == ((), False, False)


async def test_a_write_interrupted_by_a_lost_connection_is_retried(env, clock):
    [oak] = await env.forest.add("oak")
    await oak.client.create(NODES, node("n1"))
    oak.refuses_writes = True
    async with env.operating():
        await env.name("leaf-1", "oak first")
        assert await seen(oak) == {"n1": None}
        oak.disconnect()
        await clock.advance(10)
        oak.refuses_writes = False
        oak.reconnect()
        await clock.advance(70)
        assert await seen(oak) == {"n1": "yes"}


async def test_a_watch_there_can_depend_on_what_is_here(env, clock):
    def is_wanted(leaf):
        return "go" in leaf.cluster("").get("Secret", leaf.name, "default")["data"]

    [oak] = await env.forest.add("oak")
    await oak.client.create(NODES, node("n1"))
    capability = remote_clusters.leaves("g")
    [watch] = capability.remote.watches
    remote = replace(capability.remote, watches=(replace(watch, needed=is_wanted),))
    capability = replace(capability, remote=remote)
    async with env.operating(capability):
        await env.name("leaf-1", "oak first")
        report = await env.report("leaf-1")
        assert (report["connected"], report["synced"], report["nodes"]) == ("true", "false", "")
        await env.client.patch(SECRETS, "leaf-1", {"stringData": {"go": "on"}}, "default")
        await clock.advance(1)
        assert await seen(oak) == {"n1": "yes"}


async def test_a_bug_affects_one_cluster_and_only_for_a_while(env, clock):
    oak, elm = await env.forest.add("oak", "elm")
    async with env.operating() as manager:
        await env.name("leaf-1", "oak first")
        await env.name("leaf-2", "elm first")
        oak.fails_to_close = True
        oak.disconnect()
        await clock.advance(4)
        assert (await env.report("leaf-1"))["error"] == "reconnecting after an internal error, see the log"
        oak.reconnect()
        await oak.client.create(NODES, node("n1"))
        await elm.client.create(NODES, node("n1"))
        await clock.advance(0.5)
        assert await seen(elm) == {"n1": "yes"}
        await clock.advance(10)
        assert await seen(oak) == {"n1": "yes"}
        assert {name: check() for name, check in manager.health().live.items()} == {
            "leases": "",
            "loops": "",
            "plans": "",
        }


async def test_a_capability_that_cannot_say_which_clusters_it_needs_keeps_those_it_has(env, clock):
    capability = remote_clusters.leaves("g")

    def clusters(view):
        found = list(capability.remote.clusters(view))
        if len(found) > 1:
            raise ValueError("an unexpected error")
        return found

    [oak] = await env.forest.add("oak")
    async with env.operating(replace(capability, remote=replace(capability.remote, clusters=clusters))):
        await env.name("leaf-1", "oak first")
        await env.name("leaf-2", "oak first")
        await oak.client.create(NODES, node("n1"))
        await clock.advance(1)
        assert await seen(oak) == {"n1": "yes"}


async def test_a_write_with_a_lost_response_is_confirmed_on_its_own_cluster(env, clock):
    [oak] = await env.forest.add("oak")
    async with env.operating():
        await env.name("leaf-1", "oak first")
        oak.drop_answers = 1
        await oak.client.create(NODES, node("n1"))
        await clock.advance(2)
        assert await seen(oak) == {"n1": "yes"}
        tail = [method for method, path in oak.requests if path == "/api/v1/nodes/n1"]
        assert tail == ["PATCH", "GET"]


async def test_neither_logs_nor_errors_show_a_kubeconfig(env, clock, capfd, caplog):
    await env.forest.add("oak")
    caplog.set_level(logging.DEBUG)
    async with env.operating() as manager:
        await env.name("leaf-1", "oak s3cret-token")
        await env.name("evil", remote_clusters.exec_kubeconfig("https://127.0.0.1:1", "s3cret-argument"))
        await env.name("junk", '{"users": [{"name": "u", "user": {"token": "s3cret-junk"')
        await clock.advance(30)
        shown = [str(await env.report(name)) for name in ("leaf-1", "evil", "junk")]
        shown += [repr(each) for each in remote_clusters.leaves("g").remote.clusters(manager.controllers[0].view)]
    out, err = capfd.readouterr()
    assert len(shown) == 6
    assert "cluster disconnected" in out + err + caplog.text
    assert "s3cret" not in "".join([out, err, caplog.text, *shown])
