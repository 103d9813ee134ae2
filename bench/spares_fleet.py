"""The fleet that spares is measured on: spare nodes, ten templates that want them all, and another watcher."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime

import aiohttp
import msgspec

from bench.load import Call, encoded, send
from bench.replay import NODES, TEMPLATES, Metadata
from bench.sightings import Sightings, sightings
from nodeyard.capabilities.spares import names
from nodeyard.kube.json import Object
from nodeyard.kube.timestamps import format_rfc3339
from nodeyard.sim.nodes import conditions, spare_node

IN_FLIGHT = 32
COUNT_OF_TEMPLATES = 10
ZONES = ("zone-a", "zone-b", "zone-c")
SECONDS = 90.0
STRATEGIC = "application/strategic-merge-patch+json"
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


def spare(number: int) -> Object:
    return spare_node(f"node-{number:05d}", datetime.now(UTC), zone=ZONES[number % len(ZONES)])


def newcomer(number: int) -> Object:
    """Just registered: it has the taint, and nobody has given it the label yet."""
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


async def fill(opened: aiohttp.ClientSession, nodes: int) -> None:
    await send(opened, (Call("POST", NODES, encoded(spare(number))) for number in range(nodes)), IN_FLIGHT)


async def ask(opened: aiohttp.ClientSession, nodes: int, further: int = 0) -> None:
    """Create the templates; together they want this many nodes, and the last of them further ones."""
    wanted = [nodes // COUNT_OF_TEMPLATES] * COUNT_OF_TEMPLATES
    wanted[-1] += further
    calls = [Call("POST", TEMPLATES, encoded(template(number, each))) for number, each in enumerate(wanted)]
    await send(opened, calls, len(calls))


async def metadata(opened: aiohttp.ClientSession) -> dict[str, Metadata]:
    """Of the nodes and templates there are, by path."""
    found: dict[str, Metadata] = {}
    for path in (NODES, TEMPLATES):
        async with opened.get(path, headers={"Accept": _METADATA_LIST}) as answer:
            listed = msgspec.json.decode(await answer.read())
        found |= {f"{path}/{item['metadata']['name']}": item["metadata"] for item in listed["items"]}
    return found


async def claimed_by_status(opened: aiohttp.ClientSession) -> int:
    """How many nodes the templates say they have."""
    async with opened.get(TEMPLATES) as answer:
        listed = msgspec.json.decode(await answer.read())
    return sum(item.get("status", {}).get("currentNodes", 0) for item in listed["items"])


def claims(opened: aiohttp.ClientSession) -> AbstractAsyncContextManager[Sightings]:
    """Another watcher, of whole nodes as a scheduler is: when each was first seen as claimed."""
    return sightings(opened, NODES, lambda node: names.TEMPLATE_LABEL in node.labels)


@asynccontextmanager
async def heartbeats(opened: aiohttp.ClientSession, nodes: int, rate: float) -> AsyncIterator[Iterator[int]]:
    """Kubelets that post their status, this many each second, none waiting for another; how many have been sent."""
    sent = itertools.count()

    async def post() -> None:
        async with asyncio.TaskGroup() as posts:
            for number in itertools.cycle(range(nodes)):
                posts.create_task(send(opened, [_heartbeat(number)], 1))
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
    return Call("PATCH", path, encoded({"status": {"conditions": posted}}), STRATEGIC)
