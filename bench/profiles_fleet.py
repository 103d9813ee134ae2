"""The fleet of the profiles benchmark: roles, their nodes, and two profiles.

All nodes share the two profiles, so a larger fleet has more nodes per profile. The service's operator is missing;
`report_all` stands in for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

import aiohttp
import msgspec

from bench.load import MERGE, Call, encode, send_all
from bench.observer import Observer, observe
from bench.replay import EVENTS, object_of
from nodeyard.capabilities.profiles import names
from nodeyard.kube.json import Object

IN_FLIGHT = 32
NAMESPACE = "default"
FIRST, SECOND = "shared-cpus", "dedicated-cpus"
CONFIGURATIONS = {
    FIRST: "[compute]\ncpu_shared_set = 4-12,^8,15\n[DEFAULT]\ncpu_allocation_ratio = 4.0\n",
    SECOND: "[compute]\ncpu_dedicated_set = 4-12,^8,15\n[DEFAULT]\ncpu_allocation_ratio = 1.0\n",
}
DEADLINE_SECONDS = 86_400
"""Longer than any measurement, because nodes do not report during one."""

NODES = f"/apis/{names.DATAPLANE_API_VERSION}/namespaces/{NAMESPACE}/{names.NODE_PLURAL}"
ROLES = f"/apis/{names.DATAPLANE_API_VERSION}/namespaces/{NAMESPACE}/{names.ROLE_PLURAL}"
COMPUTE_PROFILES = f"/apis/{names.NOVA_API_VERSION}/namespaces/{NAMESPACE}/{names.COMPUTE_PROFILE_PLURAL}"
COMPUTES = f"/apis/{names.NOVA_API_VERSION}/namespaces/{NAMESPACE}/{names.COMPUTE_PLURAL}"
CONFIG_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"


# objects


def role_name(number: int) -> str:
    return f"role-{number:02d}"


def node_name(number: int) -> str:
    return f"node-{number:05d}"


def members(role: int, nodes: range, roles: int) -> list[str]:
    """Return the names of those nodes that have the role."""
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


async def create_profiles_and_roles(session: aiohttp.ClientSession, roles: int) -> None:
    """Create the objects that nodes refer to."""
    calls = [Call("POST", COMPUTE_PROFILES, encode(profile(name))) for name in (FIRST, SECOND)]
    calls += [Call("POST", ROLES, encode(role(number))) for number in range(roles)]
    await send_all(session, calls, IN_FLIGHT)


async def fill(session: aiohttp.ClientSession, nodes: range, roles: int) -> None:
    await send_all(session, [Call("POST", NODES, encode(node(number, roles))) for number in nodes], IN_FLIGHT)


# edits and reports


async def set_profile(session: aiohttp.ClientSession, path: str, profile: str | None) -> None:
    """Set or remove the profile annotation of a role or node."""
    body = encode({"metadata": {"annotations": {names.COMPUTE_PROFILE: profile}}})
    await send_all(session, [Call("PATCH", path, body, MERGE)], 1)


def role_path(number: int) -> str:
    return f"{ROLES}/{role_name(number)}"


def node_path(name: str) -> str:
    return f"{NODES}/{name}"


async def report_all(session: aiohttp.ClientSession) -> None:
    """Report the wanted configuration as deployed on every service object."""
    async with session.get(COMPUTES) as response:
        listed = msgspec.json.decode(await response.read())["items"]
    await send_all(session, [_report(each) for each in listed if not _is_reported(each)], IN_FLIGHT)


def _wanted_hash(compute: Object) -> str:
    return str(compute["metadata"].get("annotations", {}).get(names.HASH, ""))


def _is_reported(compute: Object) -> bool:
    return bool(compute.get("status", {}).get("hash", {}).get(names.REPORTED_HASH) == _wanted_hash(compute))


def _report(compute: Object) -> Call:
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "Deployed",
        "message": "",
        "lastTransitionTime": compute["metadata"]["creationTimestamp"],
    }
    status = {"hash": {names.REPORTED_HASH: _wanted_hash(compute)}, "conditions": [ready]}
    return Call("PATCH", f"{COMPUTES}/{compute['metadata']['name']}/status", encode({"status": status}), MERGE)


async def delete_events(session: aiohttp.ClientSession) -> None:
    """Delete all Events, so that a replay can create them again under the same names."""
    await send_all(session, [Call("DELETE", f"{EVENTS}namespaces/{NAMESPACE}/events")], 1)


async def collect_garbage(session: aiohttp.ClientSession) -> None:
    """Run the server's garbage collection now. It costs as much as many writes, and would distort a measurement."""
    async with session.get("/debug/pprof/heap?gc=1") as response:
        response.raise_for_status()
        await response.read()


# observation


def observe_changes(session: aiohttp.ClientSession, path: str) -> AbstractAsyncContextManager[Observer]:
    """Note when each object of a collection first changes."""
    return observe(session, path, lambda _: True)


# writes


@dataclass(frozen=True)
class Cost:
    """Number of writes by purpose. Affected nodes are those whose profile changes."""

    computes: int
    configurations: int
    statuses: int
    """Status writes of affected nodes, counted like the two above."""
    profile_statuses: int
    """Status writes of profiles and roles."""
    events: int
    others: int
    """All other writes, such as those of unaffected nodes."""

    @staticmethod
    def of(calls: Sequence[Call], affected: Collection[str]) -> Cost:
        counted = Counter(_purpose(call, frozenset(affected)) for call in calls)
        return Cost(*(counted[purpose] for purpose in _PURPOSES))


_CONFIGURATION = names.config_name("", names.NOVA)
_PURPOSES = ("computes", "configurations", "statuses", "profile_statuses", "events", "others")


def _purpose(call: Call, affected: frozenset[str]) -> str:
    path = call.path.partition("?")[0]
    collection, _, name = object_of(call).rpartition("/")
    is_status = path.endswith("/status")
    if path.startswith(EVENTS):
        return "events"
    if is_status and collection in (ROLES, COMPUTE_PROFILES):
        return "profile_statuses"
    if collection == CONFIG_MAPS:
        node = name.removesuffix(_CONFIGURATION)
        return "configurations" if node in affected and node != name else "others"
    own = {(COMPUTES, False): "computes", (NODES, True): "statuses"}
    return own.get((collection, is_status), "others") if name in affected else "others"
