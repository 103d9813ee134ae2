"""Remote clusters over TLS, on both servers: a root and a leaf, each a whole API server."""

import base64
import itertools
import json

import pytest
from tests.builders import remote_clusters
from tests.builders.operators import operator, until
from tests.builders.remote_clusters import SEEN

from nodeyard.app.dry_planner import dry_planning
from nodeyard.client.api import Client
from nodeyard.client.errors import NotFound
from nodeyard.client.http_transport import HttpTransport
from nodeyard.client.kubeconfig import load_config
from nodeyard.client.resources import CONFIG_MAPS, NAMESPACES, NODES, SECRETS
from nodeyard.plan.brake import Limit
from nodeyard.plan.model import to_wire
from nodeyard.plan.render import render_plan
from nodeyard.testing.controlplane import ControlPlane
from nodeyard.testing.embedded import EmbeddedServer
from nodeyard.testing.faults import Drop, FaultProxy, HalfOpen, TruncateEvents

LOOK = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}
WRITE = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch", "patch"]}
IDENTIFY = {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]}

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def leaf(api):
    """A second server."""
    with ControlPlane() if api.is_real else EmbeddedServer() as server:
        yield server


@pytest.fixture
def wire(leaf):
    """A proxy between the operator and the leaf."""
    with FaultProxy(leaf.url, leaf.authority.pem, leaf.admin_token) as proxy:
        yield proxy


class Env:
    """Root and leaf of one test; its objects are deleted after it."""

    def __init__(self, root, leaf):
        self.root, self.leaf = root, leaf
        self.group = f"clusters-{next(_numbers)}"
        self._nodes = []

    def name(self, word):
        return f"{self.group}-{word}"

    def operating(self, api):
        settings = {"leader_elect": False}
        capability = remote_clusters.leaves(self.group)
        return operator(api.kubeconfig, capability=capability, install_crds=False, settings=settings)

    async def add_leaf(self, word, kubeconfig):
        await self.root.create(SECRETS, remote_clusters.secret(self.name(word), self.group, text_of(kubeconfig)))

    async def change_leaf(self, word, kubeconfig):
        data = remote_clusters.secret(self.name(word), self.group, text_of(kubeconfig))["data"]
        await self.root.patch(SECRETS, self.name(word), {"data": data}, "default")

    async def remove_leaf(self, word):
        await self.root.delete(SECRETS, self.name(word), "default")

    async def add_node(self, word):
        name = self.name(word)
        self._nodes.append(name)
        await self.leaf.create(NODES, remote_clusters.node(name, zone=self.group))

    async def is_seen(self, word):
        async def is_labelled():
            found = await self.leaf.get(NODES, self.name(word))
            return found["metadata"]["labels"].get(SEEN) == "yes"

        await until(is_labelled, f"{word} is labelled in the leaf")

    async def reports(self, word, **wanted):
        """Wait for this report about a leaf."""

        async def is_so():
            try:
                report = (await self.root.get(CONFIG_MAPS, self.name(word), "default"))["data"]
            except NotFound:
                return None
            return report if wanted.items() <= report.items() else None

        return await until(is_so, f"{word} is reported as {wanted}", timeout=40.0)

    async def close(self):
        for resource in (SECRETS, CONFIG_MAPS):
            page = await self.root.list(resource, "default", labels=f"{remote_clusters.GROUP}={self.group}")
            for each in page.items:
                await self.root.delete(resource, each["metadata"]["name"], "default")
        for name in self._nodes:
            await self.leaf.delete(NODES, name)


def text_of(kubeconfig):
    return kubeconfig if isinstance(kubeconfig, str) else kubeconfig.read_text()


@pytest.fixture
async def env(api, leaf):
    clients = [Client(HttpTransport(load_config(server.kubeconfig))) for server in (api, leaf)]
    env = Env(*clients)
    yield env
    await env.close()
    for client in clients:
        await client.close()


async def uid_of(client):
    return (await client.get(NAMESPACES, "kube-system"))["metadata"]["uid"]


async def test_a_leaf_is_watched_and_written_to(api, leaf, env):
    await env.add_node("n1")
    await env.add_leaf("oak", leaf.kubeconfig)
    async with env.operating(api):
        await env.is_seen("n1")
        own = await uid_of(env.root)
        report = await env.reports("oak", connected="true", synced="true", own=own)
        assert report["uid"] == await uid_of(env.leaf) != own
        await env.add_node("n2")
        await env.is_seen("n2")


async def test_new_credentials_are_taken_up_without_a_restart(api, leaf, env):
    may_look = leaf.user(env.name("looks"), rules=[LOOK, IDENTIFY])
    may_write = leaf.user(env.name("writes"), rules=[WRITE, IDENTIFY])
    await env.add_node("n1")
    await env.add_leaf("oak", may_look)
    async with env.operating(api):
        await env.reports("oak", connected="true", synced="true")
        await env.change_leaf("oak", may_write)
        await env.is_seen("n1")


async def test_a_leaf_without_a_readable_uid_can_be_used(api, leaf, env):
    kubeconfig = leaf.user(env.name("nodes-only"), rules=[WRITE])
    await env.add_node("n1")
    await env.add_leaf("oak", kubeconfig)
    async with env.operating(api):
        await env.is_seen("n1")
        report = await env.reports("oak", connected="true", synced="true")
        assert (report["uid"], report["error"]) == ("", "")


async def test_a_missing_right_there_is_reported(api, leaf, env):
    kubeconfig = leaf.user(env.name("blind"), rules=[IDENTIFY])
    await env.add_leaf("oak", kubeconfig)
    async with env.operating(api):

        async def is_told():
            report = await env.reports("oak", connected="true", synced="false")
            return "cannot watch nodes: forbidden" in report["trouble"]

        await until(is_told, "what the watch lacks is reported")


async def test_a_kubeconfig_that_would_run_a_program_is_refused(api, leaf, env):
    await env.add_leaf("evil", remote_clusters.exec_kubeconfig(leaf.url))
    await env.add_leaf("oak", leaf.kubeconfig)
    async with env.operating(api):
        await env.reports("evil", connected="false", synced="false")
        report = await until(lambda: _error(env, "evil"), "an error is reported")
        assert "commands are not allowed in this kubeconfig" in report["error"]
        await env.reports("oak", connected="true")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"server": "https://127.0.0.1:1"}, "cannot connect"),
        ({"certificate-authority-data": base64.b64encode(b"junk").decode()}, "contains no PEM certificate"),
        ({"server": "https://127.0.0.1:99999"}, "refused"),
        ({"proxy-url": "http://127.0.0.1:1"}, "proxy-url"),
    ],
    ids=["nobody-there", "bad-authority", "bad-port", "proxy"],
)
async def test_the_fault_of_a_kubeconfig_is_reported(api, leaf, env, change, says):
    config = json.loads(leaf.kubeconfig.read_text())
    config["clusters"][0]["cluster"] |= change
    await env.add_leaf("odd", json.dumps(config))
    async with env.operating(api):
        report = await env.reports("odd", connected="false", synced="false")
        if not report["error"]:
            report = await until(lambda: _error(env, "odd"), "an error is reported")
        assert says in report["error"]
        assert leaf.admin_token not in str(report)


async def _error(env, word):
    report = (await env.root.get(CONFIG_MAPS, env.name(word), "default"))["data"]
    return report if report["error"] else None


async def test_a_leaf_that_reconnects_resumes_where_it_was(api, env, wire):
    await env.add_node("n1")
    await env.add_leaf("oak", wire.kubeconfig)
    async with env.operating(api) as running:
        await env.is_seen("n1")
        await env.reports("oak", connected="true")
        wire.add(TruncateEvents(), path="watch=true")
        wire.add(Drop())
        await env.add_node("n2")
        report = await env.reports("oak", connected="false")
        assert env.name("n1") in report["nodes"]
        assert report["error"]
        checks = running.manager.health().ready
        assert [check() for check in checks.values()] == [""] * len(checks)
        wire.clear()
        await env.reports("oak", connected="true", error="")
        await env.is_seen("n2")


async def test_a_leaf_that_is_no_longer_named_is_disconnected(api, leaf, env):
    await env.add_node("n1")
    await env.add_leaf("oak", leaf.kubeconfig)
    async with env.operating(api) as running:
        await env.is_seen("n1")
        await env.remove_leaf("oak")

        async def is_gone():
            return env.name("oak") not in (await running.metrics.render()).decode()

        await until(is_gone, "the leaf is not measured any more")
        gone = running.manager.controllers[0].view.cluster(env.name("oak"))
        assert (gone.all("Node"), gone.is_connected) == ((), False)


async def test_a_plan_shows_what_would_be_done_in_a_leaf_and_no_secret(api, leaf, env):
    await env.add_node("n1")
    await env.add_leaf("oak", leaf.kubeconfig)
    capability = remote_clusters.leaves(env.group)
    async with dry_planning(env.root, [capability]) as inspection:
        [look] = inspection.plans(Limit())
        text = render_plan(look.braked.now)
        assert f"Patch Node {env.name('oak')}:{env.name('n1')}" in text
        assert inspection.unreachable == []
        wire_form = json.dumps(to_wire(look.braked.now))
        assert f'"cluster": "{env.name("oak")}"' in wire_form
        assert leaf.admin_token not in text + wire_form


async def test_a_plan_says_which_leaf_could_not_be_reached(api, leaf, env, wire):
    await env.add_leaf("oak", leaf.kubeconfig)
    await env.add_leaf("silent", wire.kubeconfig)
    await env.add_leaf("evil", remote_clusters.exec_kubeconfig(leaf.url))
    wire.add(HalfOpen())
    async with dry_planning(env.root, [remote_clusters.leaves(env.group)]) as inspection:
        assert len(inspection.plans(Limit())) == 3
        evil, silent = inspection.unreachable
        assert (evil.cluster, silent.cluster) == (env.name("evil"), env.name("silent"))
        assert "commands are not allowed" in str(evil)
        assert str(silent).endswith("no answer in 5 s")
