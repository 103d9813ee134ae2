"""The fleet of the spares benchmark: spare nodes, and ten templates that want all of them."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime

import aiohttp
import msgspec

from bench.load import Call, encode, send_all
from bench.observer import Observer, observe
from bench.replay import NODES, TEMPLATES, Metadata
from nodeyard.capabilities.spares import names
from nodeyard.kube.json import Object
from nodeyard.kube.timestamps import format_rfc3339
from nodeyard.sim.nodes import conditions, spare_node

IN_FLIGHT = 32
COUNT_OF_TEMPLATES = 10
ZONES = ("zone-a", "zone-b", "zone-c")
TIMEOUT_SECONDS = 90.0
STRATEGIC = "application/strategic-merge-patch+json"
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


def spare(number: int) -> Object:
    return spare_node(f"node-{number:05d}", datetime.now(UTC), zone=ZONES[number % len(ZONES)])


def newcomer(number: int) -> Object:
    """Build a newly registered spare: it has the taint, but not yet the label."""
    obj = spare_node(f"newcomer-{number:03d}", datetime.now(UTC), zone=ZONES[number % len(ZONES)])
    labels = {name: value for name, value in obj["metadata"]["labels"].items() if name != names.SPARE_LABEL}
    return {**obj, "metadata": {**obj["metadata"], "labels": labels}}


def template(number: int, nodes: int) -> Object:
    name = f"template-{number}"
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {"name": name},
        "spec": {
            "nodes": nodes,
            "priority": number,
            "selector": {"matchLabels": {"kubernetes.io/arch": "amd64"}},
            "template": {
                "metadata": {"labels": {"fleet.example.com/team": name}, "annotations": {"fleet.example.com/by": name}},
                "spec": {"taints": [{"key": "fleet.example.com/team", "value": name, "effect": "NoSchedule"}]},
            },
        },
    }


async def fill(session: aiohttp.ClientSession, nodes: int) -> None:
    await send_all(session, (Call("POST", NODES, encode(spare(number))) for number in range(nodes)), IN_FLIGHT)


async def create_templates(session: aiohttp.ClientSession, nodes: int, further: int = 0) -> None:
    """Create the templates. Together they want `nodes` nodes, the last one `further` more."""
    wanted = [nodes // COUNT_OF_TEMPLATES] * COUNT_OF_TEMPLATES
    wanted[-1] += further
    calls = [Call("POST", TEMPLATES, encode(template(number, each))) for number, each in enumerate(wanted)]
    await send_all(session, calls, len(calls))


async def metadata(session: aiohttp.ClientSession) -> dict[str, Metadata]:
    """Return the metadata of all nodes and templates by path."""
    found: dict[str, Metadata] = {}
    for path in (NODES, TEMPLATES):
        async with session.get(path, headers={"Accept": _METADATA_LIST}) as response:
            listed = msgspec.json.decode(await response.read())
        found |= {f"{path}/{item['metadata']['name']}": item["metadata"] for item in listed["items"]}
    return found


async def claimed_by_status(session: aiohttp.ClientSession) -> int:
    """Return the sum of status.currentNodes."""
    async with session.get(TEMPLATES) as response:
        listed = msgspec.json.decode(await response.read())
    return sum(item.get("status", {}).get("currentNodes", 0) for item in listed["items"])


def observe_claims(session: aiohttp.ClientSession) -> AbstractAsyncContextManager[Observer]:
    """Watch whole nodes, like a scheduler, and note when each is claimed."""
    return observe(session, NODES, lambda node: names.TEMPLATE_LABEL in node.labels)


@asynccontextmanager
async def heartbeats(session: aiohttp.ClientSession, nodes: int, rate: float) -> AsyncIterator[Iterator[int]]:
    """Post node statuses at a fixed rate, like kubelets. Yields a counter of those sent."""
    sent = itertools.count()

    async def post() -> None:
        async with asyncio.TaskGroup() as posts:
            for number in itertools.cycle(range(nodes)):
                posts.create_task(send_all(session, [_heartbeat(number)], 1))
                next(sent)
                await asyncio.sleep(1 / rate)

    task = asyncio.create_task(post())
    try:
        yield sent
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _heartbeat(number: int) -> Call:
    now = format_rfc3339(datetime.now(UTC))
    posted = [{"type": each["type"], "lastHeartbeatTime": now} for each in conditions(now, is_ready=False)]
    path = f"{NODES}/node-{number:05d}/status"
    return Call("PATCH", path, encode({"status": {"conditions": posted}}), STRATEGIC)
