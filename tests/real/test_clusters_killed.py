"""A leaf that is a real control plane, killed and started again under an operator that watches it."""

import pytest
from tests.builders import remote_clusters
from tests.builders.operators import operator, until

from nodeyard.client.api import Client
from nodeyard.client.errors import NotFound
from nodeyard.client.http_transport import HttpTransport
from nodeyard.client.kubeconfig import load_config
from nodeyard.client.resources import CONFIG_MAPS, NODES, SECRETS
from nodeyard.testing.controlplane import ControlPlane
from nodeyard.testing.embedded import EmbeddedServer

pytestmark = pytest.mark.real


async def test_a_leaf_that_is_killed_and_started_again_is_found_again():
    with EmbeddedServer() as root, ControlPlane() as leaf:
        here = Client(HttpTransport(load_config(root.kubeconfig)))
        there = Client(HttpTransport(load_config(leaf.kubeconfig)))
        await here.create(SECRETS, remote_clusters.secret("oak", "g", leaf.kubeconfig.read_text()))
        await there.create(NODES, remote_clusters.node("n1"))

        async def report(**wanted):
            async def is_so():
                try:
                    found = (await here.get(CONFIG_MAPS, "oak", "default"))["data"]
                except NotFound:
                    return None
                return found if wanted.items() <= found.items() else None

            return await until(is_so, f"the leaf is reported as {wanted}", timeout=60.0)

        capability, settings = remote_clusters.leaves("g"), {"leader_elect": False}
        async with operator(root.kubeconfig, capability=capability, install_crds=False, settings=settings):
            await report(connected="true", nodes="n1")
            leaf.kill()
            assert (await report(connected="false", nodes="n1"))["error"]
            leaf.start()
            await there.create(NODES, remote_clusters.node("n2"))
            await report(connected="true", error="", nodes="n1,n2")
        await here.close()
        await there.close()
