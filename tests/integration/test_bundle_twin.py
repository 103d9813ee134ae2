"""A bundle of a cluster, served by the embedded server, has equal objects: `apiserver --load`."""

from __future__ import annotations

from nodeyard.apiserver.server import Server
from nodeyard.client.api import Client
from nodeyard.client.http_transport import HttpTransport
from nodeyard.client.kubeconfig import load_config
from nodeyard.process.clock import VirtualClock
from nodeyard.sim.embedded import connect

from ..builders.bundles import contents, copy_cluster


async def test_a_twin_has_the_objects_kinds_and_version_of_its_cluster(api, kubectl, tmp_path):
    kubectl("create", "configmap", "twin-settings", "--from-literal=a=b")
    kubectl("create", "deployment", "twin-web", "--image=web")
    client = Client(HttpTransport(load_config(api.kubeconfig)))
    gathered = await copy_cluster(client, tmp_path / "bundle.tgz")
    await client.close()

    server = Server(VirtualClock(), seed=1)
    server.load(gathered)
    await server.start(())
    await server.idle()

    again = await copy_cluster(connect(server), tmp_path / "again.tgz")
    found = contents(again)
    # Only objects that a server computes on request, such as ComponentStatuses, have no uid.
    stored = {name: each for name, each in contents(gathered).items() if "uid" in each["metadata"]}
    assert {name: found.get(name) for name in stored} == stored
    assert set(contents(gathered)) <= set(found)
    assert {each.gvr for each in again.resources} >= {
        each.gvr for each in gathered.resources if "list" in each.verbs and each.gvr in gathered.objects
    }
    assert again.version == gathered.version
    await server.stop()
