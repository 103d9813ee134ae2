"""The data plane that profiles is measured on: roles, their nodes, two profiles, and who watches what becomes of them.

All nodes have the same two profiles, as in the design: the larger the fleet, the more have one of them. Nobody plays
the service's operator but where `report` does it once, for all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

import aiohttp
import msgspec

from bench.load import MERGE, Call, encoded, send
from bench.replay import EVENTS, object_of
from bench.servers import Running
from bench.sightings import Sightings, sightings
from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.controller import PROFILES
from nodeyard.client.api import Client
from nodeyard.client.http_transport import HttpTransport
from nodeyard.client.kubeconfig import load_kubeconfig
from nodeyard.kube.json import Object
from nodeyard.process.clock import SystemClock
from nodeyard.runtime.crds import install as install_kinds

IN_FLIGHT = 32
NAMESPACE = "default"
FIRST, SECOND = "shared-cpus", "dedicated-cpus"
CONFIGURATIONS = {
    FIRST: "[compute]\ncpu_shared_set = 4-12,^8,15\n[DEFAULT]\ncpu_allocation_ratio = 4.0\n",
    SECOND: "[compute]\ncpu_dedicated_set = 4-12,^8,15\n[DEFAULT]\ncpu_allocation_ratio = 1.0\n",
}
DEADLINE_SECONDS = 86_400
"""Nobody reports while it is measured."""

NODES = f"/apis/{names.DATAPLANE_API_VERSION}/namespaces/{NAMESPACE}/{names.NODE_PLURAL}"
ROLES = f"/apis/{names.DATAPLANE_API_VERSION}/namespaces/{NAMESPACE}/{names.ROLE_PLURAL}"
COMPUTE_PROFILES = f"/apis/{names.NOVA_API_VERSION}/namespaces/{NAMESPACE}/{names.COMPUTE_PROFILE_PLURAL}"
COMPUTES = f"/apis/{names.NOVA_API_VERSION}/namespaces/{NAMESPACE}/{names.COMPUTE_PLURAL}"
CONFIG_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"


# what there is


async def install(server: Running) -> None:
    client = Client(HttpTransport(load_kubeconfig([server.kubeconfig])))
    try:
        await install_kinds(client, [PROFILES], SystemClock())
    finally:
        await client.close()


def role_name(number: int) -> str:
    return f"role-{number:02d}"


def node_name(number: int) -> str:
    return f"node-{number:05d}"


def members(role: int, nodes: range, roles: int) -> list[str]:
    """The names of a role's nodes, of these."""
    return [node_name(number) for number in nodes if number % roles == role]


def profile(name: str) -> Object:
    return {
        "apiVersion": names.NOVA_API_VERSION,
        "kind": names.COMPUTE_PROFILE_KIND,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "customComputeServiceConfig": CONFIGURATIONS[name],
            "maxUnavailable": "100%",
            "progressDeadlineSeconds": DEADLINE_SECONDS,
        },
    }


def role(number: int) -> Object:
    annotations = {names.CELL: "nova-cell1", names.COMPUTE_PROFILE: FIRST}
    return {
        "apiVersion": names.DATAPLANE_API_VERSION,
        "kind": names.ROLE_KIND,
        "metadata": {"name": role_name(number), "namespace": NAMESPACE, "annotations": annotations},
        "spec": {"nodeTemplate": {"ansibleUser": "cloud-admin", "managementNetwork": "ctlplane"}},
    }


def node(number: int, roles: int) -> Object:
    return {
        "apiVersion": names.DATAPLANE_API_VERSION,
        "kind": names.NODE_KIND,
        "metadata": {"name": node_name(number), "namespace": NAMESPACE},
        "spec": {"role": role_name(number % roles), "hostName": node_name(number)},
    }


async def found(opened: aiohttp.ClientSession, roles: int) -> None:
    """What nodes refer to."""
    calls = [Call("POST", COMPUTE_PROFILES, encoded(profile(name))) for name in (FIRST, SECOND)]
    calls += [Call("POST", ROLES, encoded(role(number))) for number in range(roles)]
    await send(opened, calls, IN_FLIGHT)


async def fill(opened: aiohttp.ClientSession, nodes: range, roles: int) -> None:
    await send(opened, [Call("POST", NODES, encoded(node(number, roles))) for number in nodes], IN_FLIGHT)


# what people and service operators do


async def choose(opened: aiohttp.ClientSession, path: str, profile: str | None) -> None:
    """Name a profile on a role or node, or name none any more."""
    body = encoded({"metadata": {"annotations": {names.COMPUTE_PROFILE: profile}}})
    await send(opened, [Call("PATCH", path, body, MERGE)], 1)


def role_path(number: int) -> str:
    return f"{ROLES}/{role_name(number)}"


def node_path(name: str) -> str:
    return f"{NODES}/{name}"


async def report(opened: aiohttp.ClientSession) -> None:
    """Every service object runs what it was told."""
    async with opened.get(COMPUTES) as answer:
        listed = msgspec.json.decode(await answer.read())["items"]
    await send(opened, [_report(each) for each in listed if not _is_reported(each)], IN_FLIGHT)


def _told(compute: Object) -> str:
    return str(compute["metadata"].get("annotations", {}).get(names.HASH, ""))


def _is_reported(compute: Object) -> bool:
    return bool(compute.get("status", {}).get("hash", {}).get(names.REPORTED_HASH) == _told(compute))


def _report(compute: Object) -> Call:
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "Deployed",
        "message": "",
        "lastTransitionTime": compute["metadata"]["creationTimestamp"],
    }
    status = {"hash": {names.REPORTED_HASH: _told(compute)}, "conditions": [ready]}
    return Call("PATCH", f"{COMPUTES}/{compute['metadata']['name']}/status", encoded({"status": status}), MERGE)


async def forget_events(opened: aiohttp.ClientSession) -> None:
    """What was told before is told again in the same words, under the same names."""
    await send(opened, [Call("DELETE", f"{EVENTS}namespaces/{NAMESPACE}/events")], 1)


async def collect_garbage(opened: aiohttp.ClientSession) -> None:
    """On the server: a pass of its collector costs as much as many writes, and would fall into one measurement or the
    other by chance."""
    async with opened.get("/debug/pprof/heap?gc=1") as answer:
        answer.raise_for_status()
        await answer.read()


# what is seen


def changes(opened: aiohttp.ClientSession, path: str) -> AbstractAsyncContextManager[Sightings]:
    """Another watcher: when each object of a kind first changed."""
    return sightings(opened, path, lambda _: True)


# what was written


@dataclass(frozen=True)
class Cost:
    """What a change was written for. The concerned nodes are those whose profile it changes."""

    computes: int
    configurations: int
    statuses: int
    """Of the concerned nodes; so are the two above."""
    memberships: int
    """Statuses of profiles and roles."""
    events: int
    others: int
    """Anything else: whatever belongs to another node, above all."""

    @staticmethod
    def of(calls: Sequence[Call], concerned: Collection[str]) -> Cost:
        counted = Counter(_purpose(call, frozenset(concerned)) for call in calls)
        return Cost(*(counted[purpose] for purpose in _PURPOSES))


_CONFIGURATION = names.config_name("", names.NOVA)
_PURPOSES = ("computes", "configurations", "statuses", "memberships", "events", "others")


def _purpose(call: Call, concerned: frozenset[str]) -> str:
    path = call.path.partition("?")[0]
    collection, _, name = object_of(call).rpartition("/")
    is_status = path.endswith("/status")
    if path.startswith(EVENTS):
        return "events"
    if is_status and collection in (ROLES, COMPUTE_PROFILES):
        return "memberships"
    if collection == CONFIG_MAPS:
        node = name.removesuffix(_CONFIGURATION)
        return "configurations" if node in concerned and node != name else "others"
    own = {(COMPUTES, False): "computes", (NODES, True): "statuses"}
    return own.get((collection, is_status), "others") if name in concerned else "others"
