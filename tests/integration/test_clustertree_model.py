"""Random changes in a leaf: once it is quiet, the root's nodes equal a computation from scratch.

The whole loop in process, under virtual time: both servers, watches, plans, writes and leases. What is expected is
worked out here from plain lists of the leaf's objects, in fractions, with nothing of the capability's own arithmetic.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from contextlib import asynccontextmanager, suppress
from fractions import Fraction
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.builders.remote_clusters import Leaf
from tests.builders.tree_env import node_model, selector_model, whole_model

from nodeyard.apiserver.server import Server
from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.controller import CLUSTERTREE
from nodeyard.capabilities.clustertree.watched import CLUSTERS
from nodeyard.client.api import DeleteOptions
from nodeyard.client.errors import NotFound
from nodeyard.client.resources import CUSTOM_RESOURCE_DEFINITIONS, NODES, PODS
from nodeyard.kube.quantity import NANO, parse
from nodeyard.process.clock import VirtualClock
from nodeyard.runtime.manager import Manager
from nodeyard.runtime.reconcile.plan_executor import InlinePlanExecutor
from nodeyard.runtime.settings import Settings
from nodeyard.sim.embedded import connect

MACHINES = ("n1", "n2", "n3", "n4")
AMOUNTS = ("cpu", "memory", "pods")
MODELS = [node_model("n1"), selector_model("gpu"), whole_model()]
MIRRORS = {"n1": "n1", "kosmos-gpu-1": "gpu", "kosmos-east": "rest"}
"""The nodes of the root, and their leaf nodes."""
QUIET_SECONDS = 5.0
RECOVERY_SECONDS = 150.0
"""After a cut the backoff of reconnects grows to one minute."""

machines = st.tuples(
    st.just("machine"),
    st.sampled_from(MACHINES),
    st.fixed_dictionaries(
        {
            "cpu": st.sampled_from(("500m", "2", "4")),
            "memory": st.sampled_from(("1Gi", "1500M")),
            "ready": st.sampled_from(("True", "True", "True", "False", "Unknown")),
            "is_cordoned": st.sampled_from((False, False, True)),
            "pool": st.sampled_from(("gpu", "", "other")),
        }
    ),
)
pods = st.tuples(
    st.just("pod"),
    st.sampled_from("abcde"),
    st.fixed_dictionaries(
        {
            "node": st.sampled_from((*MACHINES, "gone", "")),
            "cpu": st.sampled_from(("0", "250m", "1", "3")),
            "phase": st.sampled_from(("Pending", "Running", "Running", "Succeeded")),
            "is_from_root": st.sampled_from((False, False, True)),
        }
    ),
)
ends = st.one_of(
    st.tuples(st.just("machine gone"), st.sampled_from(MACHINES), st.none()),
    st.tuples(st.just("pod gone"), st.sampled_from("abcde"), st.none()),
    st.tuples(st.just("pod finished"), st.sampled_from("abcde"), st.none()),
)
batches = st.lists(
    st.tuples(st.booleans(), st.lists(st.one_of(machines, machines, pods, pods, ends), min_size=1, max_size=6)),
    min_size=1,
    max_size=4,
)
"""The changes between two quiet points, and whether the connection is cut meanwhile."""


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(batches)
def test_whenever_idle_the_root_shows_the_amounts_computed_from_scratch(happenings):
    asyncio.run(_live(happenings))


async def _live(happenings):
    clock = VirtualClock()
    async with _grown(clock) as (root, leaf):
        for is_cut, batch in happenings:
            if is_cut:
                leaf.disconnect()
                await clock.advance(QUIET_SECONDS)
            for what, name, given_ in batch:
                await _HAPPEN[what](leaf.client, name, given_)
            if is_cut:
                leaf.reconnect()
                await clock.advance(RECOVERY_SECONDS)
            await clock.advance(QUIET_SECONDS)
            assert await _shown(root) == await _expected(leaf.client)


@asynccontextmanager
async def _grown(clock):
    """A root, and a leaf that three models mirror."""
    server, leaf = Server(clock, seed=1), Leaf(clock, seed=2)
    await server.start(())
    await leaf.server.start(())
    root = connect(server)
    await root.create(CUSTOM_RESOURCE_DEFINITIONS, CLUSTERTREE.definitions()[0])
    spec = {"kubeconfig": b64encode(_KUBECONFIG).decode(), "clusterTreeOptions": {"leafModels": MODELS}}
    kind = {"apiVersion": names.API_VERSION, "kind": names.KIND}
    await root.create(CLUSTERS.decoded_as(dict), {**kind, "metadata": {"name": "east"}, "spec": spec})
    manager = Manager(
        connect(server),
        [CLUSTERTREE],
        Settings(identity="one", leader_elect=False),
        clock=clock,
        random=Random(1),
        plan_executor=InlinePlanExecutor,
        connect=lambda _given: leaf.reached("first"),
    )
    async with manager.running():
        await clock.advance(QUIET_SECONDS)
        yield root, leaf
        stopping = asyncio.create_task(clock.advance(10))
    await stopping
    await leaf.server.stop()
    await server.stop()


_KUBECONFIG = json.dumps(
    {
        "clusters": [{"name": "c", "cluster": {"server": "https://leaf.example"}}],
        "users": [{"name": "u", "user": {"token": "first"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
).encode()


# changes


async def _machine(leaf, name, given_):
    with suppress(NotFound):
        await leaf.delete(NODES, name)
    has = {"cpu": given_["cpu"], "memory": given_["memory"], "pods": "3"}
    ready = {"type": "Ready", "status": given_["ready"], "reason": "Because"}
    await leaf.create(
        NODES,
        {
            "metadata": {"name": name, "labels": {"pool": given_["pool"]}},
            "spec": {"unschedulable": given_["is_cordoned"]},
            "status": {"capacity": has, "allocatable": has, "conditions": [ready]},
        },
    )


async def _pod(leaf, name, given_):
    await _pod_gone(leaf, name)
    requests = {"cpu": given_["cpu"]} if given_["cpu"] != "0" else {}
    spec = {"containers": [{"name": "main", "image": "none", "resources": {"requests": requests}}]}
    if given_["node"]:
        spec["nodeName"] = given_["node"]
    labels = {names.ROOT_POD: "true"} if given_["is_from_root"] else {}
    await leaf.create(PODS, {"metadata": {"name": name, "namespace": "default", "labels": labels}, "spec": spec})
    await leaf.patch(PODS, name, {"status": {"phase": given_["phase"]}}, "default", subresource="status")


async def _machine_gone(leaf, name, _given=None):
    with suppress(NotFound):
        await leaf.delete(NODES, name)


async def _pod_gone(leaf, name, _given=None):
    with suppress(NotFound):
        await leaf.delete(PODS, name, "default", DeleteOptions(grace_seconds=0))


async def _pod_finished(leaf, name, _given=None):
    with suppress(NotFound):
        await leaf.patch(PODS, name, {"status": {"phase": "Failed"}}, "default", subresource="status")


_HAPPEN = {
    "machine": _machine,
    "machine gone": _machine_gone,
    "pod": _pod,
    "pod gone": _pod_gone,
    "pod finished": _pod_finished,
}


# shown and expected resources


async def _shown(root):
    """Return resources without zeros, and the cordon, by node of the root."""
    found = {}
    for node in (await root.list(NODES)).items:
        has = node["status"].get("allocatable") or {}
        amounts = {name: _amount(has.get(name, "0")) for name in AMOUNTS}
        assert node["status"].get("capacity") == node["status"].get("allocatable")
        found[node["metadata"]["name"]] = amounts, bool(node["spec"].get("unschedulable"))
    return found


async def _expected(leaf):
    machines = {each["metadata"]["name"]: each for each in (await leaf.list(NODES)).items}
    pods = (await leaf.list(PODS)).items
    expected = {}
    for mirror, group in MIRRORS.items():
        members = [name for name, machine in machines.items() if _group_of(name, machine) == group]
        if group == "n1" and not members:
            continue
        free = {amount: _free(amount, [machines[name] for name in members], pods) for amount in AMOUNTS}
        is_cordoned = group == "n1" and bool(machines["n1"]["spec"].get("unschedulable"))
        expected[mirror] = free, is_cordoned
    return expected


def _group_of(name, machine):
    if name == "n1":
        return "n1"
    return "gpu" if machine["metadata"]["labels"].get("pool") == "gpu" else "rest"


def _free(amount, members, pods):
    counted = {
        machine["metadata"]["name"]: machine
        for machine in members
        if not machine["spec"].get("unschedulable")
        and any(each["type"] == "Ready" and each["status"] == "True" for each in machine["status"]["conditions"])
    }
    base = sum((_amount(machine["status"]["allocatable"][amount]) for machine in counted.values()), Fraction(0))
    taken = sum((_taken(amount, pod) for pod in pods if pod["spec"].get("nodeName") in counted), Fraction(0))
    return max(Fraction(0), base - taken)


def _taken(amount, pod):
    is_finished = pod["status"]["phase"] in ("Succeeded", "Failed")
    if is_finished or (pod["metadata"].get("labels") or {}).get(names.ROOT_POD) == "true":
        return Fraction(0)
    if amount == "pods":
        return Fraction(1)
    requests = pod["spec"]["containers"][0].get("resources", {}).get("requests") or {}
    return _amount(requests.get(amount, "0"))


def _amount(text):
    return Fraction(parse(text).nano, NANO)
