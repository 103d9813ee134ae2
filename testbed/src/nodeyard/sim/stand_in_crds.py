"""Stand-in CRDs for kinds of other projects: Cluster API with its providers, and Flux.

They are short and our own. They check what matters to a client that writes such objects: required fields, types,
limits, and rules of the projects' webhooks that CEL can express. A real server has the real CRDs
(`testing.third_party_crds`); a test compares the two on the same objects.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Final

from nodeyard.client.api import Client
from nodeyard.client.errors import AlreadyExists
from nodeyard.client.resources import CUSTOM_RESOURCE_DEFINITIONS
from nodeyard.kube.json import Json, Object
from nodeyard.kube.manifests import load, load_all
from nodeyard.process.clock import Clock

GROUPS: Final = ("cluster-api", "kubeadm", "docker", "aws", "proxmox", "flux")
OLDER: Final = ("proxmox-v1alpha1",)
"""Older versions of kinds in the groups above, for a server that has those instead."""
STAGED: Final = {"providers": ("cluster-api", "kubeadm", "docker", "aws", "proxmox"), "releases": ("flux",)}
"""The groups that stages need."""
_POLL_SECONDS: Final = 0.1


def definitions(*groups: str) -> list[Object]:
    """Return the CRDs of these groups, of all if none is named."""
    return [definition for group in groups or GROUPS for definition in _load(group)]


def groups_of(stages: Iterable[str]) -> tuple[str, ...]:
    """Return the groups that these stages need."""
    return tuple(dict.fromkeys(group for stage in stages for group in STAGED.get(stage, ())))


async def install(client: Client, clock: Clock, *groups: str) -> None:
    """Create the CRDs of these groups that do not exist yet, and wait until they are established."""
    wanted = definitions(*groups)
    for definition in wanted:
        try:
            await client.create(CUSTOM_RESOURCE_DEFINITIONS, definition)
        except AlreadyExists:
            continue
    for definition in wanted:
        name = definition["metadata"]["name"]
        while not _is_established(await client.get(CUSTOM_RESOURCE_DEFINITIONS, name)):
            await clock.sleep(_POLL_SECONDS)


@cache
def _load(group: str) -> list[Object]:
    directory = files("nodeyard.sim") / "crds"
    if group not in (*GROUPS, *OLDER):
        raise LookupError(f'no stand-ins "{group}"; there are: {", ".join(GROUPS)}')
    shared = load((directory / "shared.yaml").read_text())
    return [_resolved(document, shared) for document in load_all((directory / f"{group}.yaml").read_text())]


def _resolved(value: Json, shared: Object) -> Json:
    """Replace each `$ref` by the shared schema that it names; keys beside it override."""
    if isinstance(value, list):
        return [_resolved(item, shared) for item in value]
    if not isinstance(value, dict):
        return value
    resolved = {key: _resolved(item, shared) for key, item in value.items() if key != "$ref"}
    if "$ref" in value:
        return {**_resolved(shared[value["$ref"]], shared), **resolved}
    return resolved


def _is_established(definition: Object) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)
