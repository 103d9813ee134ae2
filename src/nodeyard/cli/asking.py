"""Finds the object that a person names, and asks every capability about it."""

from __future__ import annotations

from nodeyard.app.capabilities import choose
from nodeyard.app.inspection import inspecting
from nodeyard.cli.cluster import connected, served
from nodeyard.client.api import Client
from nodeyard.client.config import Config
from nodeyard.plan.model import Decision, ObjectRef
from nodeyard.plan.reasons import Messages
from nodeyard.runtime.roots import ref_of


async def ask(config: Config, kind: str, name: str, namespace: str) -> list[tuple[str, Decision, Messages]]:
    async with connected(config) as client:
        ref = await _find(client, kind, name, namespace)
        able, _ = await served(client, choose(()))
        async with inspecting(client, able) as inspection:
            return inspection.why(ref)


async def _find(client: Client, kind: str, name: str, namespace: str) -> ObjectRef:
    """UnknownResource where the word is none or may be several, NotFound where the object is not there."""
    resource = (await client.catalog()).find(kind).resource
    found = await client.get(resource, name, namespace if resource.namespaced else "")
    return ref_of(found, resource.api_version, resource.kind)
