"""Finds the object that a person names, and asks every capability about it."""

from __future__ import annotations

from collections.abc import Iterable

from nodeyard.app.capabilities import choose
from nodeyard.app.inspection import inspecting
from nodeyard.cli.cluster import connected, served, tell_unreached
from nodeyard.cli.failures import Failure
from nodeyard.client.api import Client
from nodeyard.client.config import Config
from nodeyard.client.errors import NotFound
from nodeyard.plan.model import Decision, ObjectRef
from nodeyard.plan.reasons import Messages
from nodeyard.runtime.capability import Capability
from nodeyard.runtime.roots import ref_of


async def ask(config: Config, kind: str, name: str, namespace: str) -> list[tuple[str, Decision, Messages]]:
    async with connected(config) as client:
        able, _ = await served(client, choose(()))
        ref = await _find_alias(client, able, kind, name) or await _find(client, kind, name, namespace)
        async with inspecting(client, able) as inspection:
            tell_unreached(inspection)
            await inspection.meet(ref)
            return inspection.why(ref)


async def _find_alias(client: Client, capabilities: Iterable[Capability], word: str, name: str) -> ObjectRef | None:
    """What a capability's own word means, also where that object is not there yet; None where it is no such word."""
    meant = next((each.aliases[word] for each in capabilities if word in each.aliases), None)
    if meant is None:
        return None
    refs = meant(name)
    if not refs:
        raise Failure(f'"{name}" names no {word}; write it as {word}/CLUSTER/NAME')
    for ref in refs:
        resource = (await client.catalog()).by_kind(ref.api_version, ref.kind)
        try:
            if resource is not None:
                return ref_of(await client.get(resource.resource, ref.name, ref.namespace), ref.api_version, ref.kind)
        except NotFound:
            continue
    return refs[0]


async def _find(client: Client, kind: str, name: str, namespace: str) -> ObjectRef:
    """UnknownResource where the word is none or may be several, NotFound where the object is not there."""
    resource = (await client.catalog()).find(kind).resource
    found = await client.get(resource, name, namespace if resource.namespaced else "")
    return ref_of(found, resource.api_version, resource.kind)
