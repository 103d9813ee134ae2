"""The informers of a process on the embedded server under virtual time."""

import asyncio
from random import Random

from nodeyard.client.resources import CUSTOM_RESOURCE_DEFINITIONS, NODES, untyped
from nodeyard.kube.objects import Node
from nodeyard.process.clock import settle
from nodeyard.runtime.capability import Aggregate, Watch
from nodeyard.sim.embedded import connect
from nodeyard.watch import InformerFactory
from nodeyard.watch.subscription import EventHandlers

WIDGETS = untyped("example.dev", "v1", "widgets", "Widget", namespaced=False)
BY_ZONE = {"zone": lambda obj: [obj.metadata.labels["zone"]] if "zone" in obj.metadata.labels else []}
COUNT = Aggregate(
    name="nodes by zone",
    kind="Node",
    empty=int,
    group=BY_ZONE["zone"],
    add=lambda count, _node: count + 1,
    remove=lambda count, _node: count - 1,
)


def names_of(old, new):
    return [f"node/{(new or old).metadata.name}"]


NODE_WATCH = Watch(NODES.decoded_as(Node), keys=names_of, indexes=BY_ZONE)


class Harness:
    def __init__(self, clock, server):
        self.clock, self.server = clock, server
        self.client = connect(server)
        self.informers = InformerFactory(self.client, clock, Random(1))
        self.marked, self.synced = [], []
        self._task = None

    def register(self, *watches, aggregates=()):
        return self.informers.register(watches, aggregates, EventHandlers(self.mark, self.synced.append))

    def mark(self, key, _change, _watch):
        self.marked.append(key)

    async def start(self):
        self._task = asyncio.create_task(self.informers.run())
        await self.clock.advance(0.2)
        return self

    async def stop(self):
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    @property
    def running(self):
        return {report.resource for report in self.informers.reports()}

    async def make_node(self, name, **labels):
        return await self.client.create(NODES, {"metadata": {"name": name, "labels": labels}})

    async def define_widgets(self):
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        version = {"name": "v1", "served": True, "storage": True, "schema": schema}
        spec = {
            "group": "example.dev",
            "scope": "Cluster",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [version],
        }
        await self.client.create(
            CUSTOM_RESOURCE_DEFINITIONS, {"metadata": {"name": "widgets.example.dev"}, "spec": spec}
        )
        await settle()

    async def serve_widgets_as(self, name):
        """Serve the widgets in one more version."""
        found = await self.client.get(CUSTOM_RESOURCE_DEFINITIONS, "widgets.example.dev")
        versions = found["spec"]["versions"]
        further = {**versions[0], "name": name, "storage": False}
        await self.client.patch(
            CUSTOM_RESOURCE_DEFINITIONS, "widgets.example.dev", {"spec": {"versions": [*versions, further]}}
        )
        await settle()
