"""Support bundles of everything that a server serves, and the comparison of two of them."""

from __future__ import annotations

from pathlib import Path

from nodeyard.bundle.model import GVR, HOST, ClusterState, ServedResource
from nodeyard.bundle.reader import read_bundle
from nodeyard.bundle.writer import BundleWriter
from nodeyard.client.api import Client
from nodeyard.kube.json import Object
from nodeyard.process.clock import EPOCH


def write_bundle(
    path: Path, resources: list[ServedResource], objects: dict[GVR, list[Object]], version: Object | None = None
) -> ClusterState:
    """Write a bundle of one cluster, and return it as the reader decodes it."""
    with BundleWriter(path, created_at=EPOCH, nodeyard_version="0.1.0") as writer:
        writer.add_cluster(HOST, resources, version)
        for gvr, found in objects.items():
            writer.add_objects(HOST, gvr, found)
    return read_bundle(path).cluster


async def copy_cluster(client: Client, path: Path) -> ClusterState:
    """Write a bundle of all objects that the client can list."""
    resources: list[ServedResource] = []
    objects: dict[GVR, list[Object]] = {}
    listed: set[tuple[str, str]] = set()
    for known in (await client.catalog()).known:
        served = ServedResource.of(known)
        resources.append(served)
        if "list" not in served.verbs or (served.group, served.resource) in listed:
            continue
        listed.add((served.group, served.resource))
        identity = {"apiVersion": served.gvr.api_version, "kind": served.kind}
        page = await client.list(known.resource)
        objects[served.gvr] = [{**each, **identity} for each in page.items]
    return write_bundle(path, resources, objects, await client.server_version())


def contents(cluster: ClusterState) -> dict[str, Object]:
    """Return all objects by resource and key."""
    return {
        f"{gvr}/{each['metadata'].get('namespace', '')}/{each['metadata']['name']}": each
        for gvr, found in cluster.objects.items()
        for each in found
    }
