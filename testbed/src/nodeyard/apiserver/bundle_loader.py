"""Loads a cluster of a support bundle, which may come from a stranger, into a server that has not started.

Objects keep what they had: uid, resourceVersion, timestamps, generation, status, managedFields. A kind whose
CustomResourceDefinition is not in the bundle is served as the discovery of the cluster describes it, with a schema
that takes anything. Everything is checked before the first object is stored.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from nodeyard.apiserver import events
from nodeyard.apiserver.crds.controller import DEFINITIONS
from nodeyard.apiserver.crds.resource import resource_of
from nodeyard.apiserver.discovery import VIRTUAL
from nodeyard.apiserver.kinds.go_struct import MalformedError, decode
from nodeyard.apiserver.kinds.table import definition_of
from nodeyard.apiserver.registry import Registry
from nodeyard.apiserver.resources import GroupResource, Resource
from nodeyard.apiserver.responses import canonical
from nodeyard.apiserver.selection import selectable
from nodeyard.apiserver.store import Key, Stored, restamp
from nodeyard.bundle.model import GVR, BundleError, ClusterState, ServedResource
from nodeyard.kube.json import Object, read_float

if TYPE_CHECKING:
    from nodeyard.apiserver.server import Server

_OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_SECRETS: Final = GroupResource("", "secrets")
_UNSTORED: Final = {GroupResource(group, plural) for group, _, plural, *_ in VIRTUAL}
_REVISION_DIGITS: Final = 18
_UIDS: Final = uuid.UUID("6a0c1f5e-5b1b-4f43-9d6f-1d6f5d1f7c11")
"""The namespace of the uids of objects that have none, as those of aggregated API servers."""

_decode = msgspec.json.Decoder(float_hook=read_float).decode
_encode = msgspec.json.Encoder().encode


def load_cluster(server: Server, cluster: ClusterState) -> dict[str, None]:
    """Load all objects of a cluster; return their namespaces. Raises BundleError if one of them cannot be served."""
    if server.store.revision > 1:
        raise BundleError("a bundle is loaded into a server without objects only")
    kinds = _Kinds(server.registry, cluster)
    loaded: dict[tuple[GroupResource, Key], Stored] = {}
    for gvr in kinds.sections:
        resource = kinds.find(gvr)
        for stored in _read(resource, gvr, cluster.objects[gvr].raw):
            if loaded.setdefault((resource.key, stored.key), stored) is not stored:
                raise BundleError(f"{_name(gvr, stored.key)}: is there twice")
    for definition in kinds.undefined:
        server.serve_kind(definition)
    revision = max((stored.revision for stored in loaded.values()), default=server.store.revision)
    for (key, _), stored in loaded.items():
        if not stored.revision:
            revision += 1
            stored = msgspec.structs.replace(stored, revision=revision, raw=restamp(stored.raw, revision))
        server.store.insert(key, stored)
    server.store.announce(revision)
    return dict.fromkeys(sorted({stored.key.namespace for stored in loaded.values()} - {""}))


class _Kinds:
    """The resources of the loaded cluster: built in, defined by its CRDs, or known from its discovery only."""

    def __init__(self, registry: Registry, cluster: ClusterState) -> None:
        self._known = {resource.key: resource for resource in registry}
        by_resource = {GroupResource(gvr.group, gvr.resource): gvr for gvr in cluster.objects}
        if len(by_resource) < len(cluster.objects):
            raise BundleError("the objects of a resource are there in two versions")
        if events.CORE in by_resource:
            by_resource.pop(events.OWN, None)  # The same events.
        self.sections = sorted(by_resource.values(), key=lambda gvr: (gvr.group, gvr.resource) != DEFINITIONS)
        if DEFINITIONS in by_resource:
            for definition in cluster.objects[by_resource[DEFINITIONS]]:
                self._define(definition)
        self.undefined = [
            _definition_of(served, by_resource.get(key)) for key, served in self._undescribed(cluster.resources)
        ]
        """Definitions for the kinds that neither the server nor a CRD in the bundle describes."""
        for definition in self.undefined:
            self._define(definition)

    def find(self, gvr: GVR) -> Resource:
        resource = self._known.get(GroupResource(gvr.group, gvr.resource))
        if resource is None:
            raise BundleError(f"{gvr}: has objects, but the cluster does not serve it")
        return resource

    def _define(self, definition: Object) -> None:
        name = definition["metadata"]["name"]
        try:
            decode(definition_of(DEFINITIONS.group, "v1", "CustomResourceDefinition") or "", definition)
            resource = resource_of(definition)
        except Exception as error:  # Of a stranger's schema anything may be wrong.
            raise BundleError(f"CustomResourceDefinition {name!a}: cannot be served: {error!r}") from error
        if resource.key in self._known:
            raise BundleError(f"CustomResourceDefinition {name!a}: the server or another one defines the kind")
        self._known[resource.key] = resource

    def _undescribed(self, resources: Iterable[ServedResource]) -> Iterator[tuple[GroupResource, list[ServedResource]]]:
        """Yield what the cluster stores and nothing describes, with its versions, the preferred one first."""
        found: dict[GroupResource, list[ServedResource]] = {}
        for served in resources:
            key = GroupResource(served.group, served.resource)
            if key not in self._known and key not in _UNSTORED and "list" in served.verbs:
                found.setdefault(key, []).append(served)
        return iter(found.items())


def _definition_of(versions: list[ServedResource], gathered: GVR | None) -> Object:
    """Return a definition that serves a kind in these versions and takes any content."""
    first = versions[0]
    stored = gathered.version if gathered else first.version
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{first.resource}.{first.group}"},
        "spec": {
            "group": first.group,
            "scope": "Namespaced" if first.namespaced else "Cluster",
            "names": {
                "kind": first.kind,
                "plural": first.resource,
                "singular": first.singular,
                "shortNames": list(first.short_names),
                "categories": list(first.categories),
            },
            "versions": [
                {
                    "name": each.version,
                    "served": True,
                    "storage": each.version == stored,
                    "subresources": _subresources(each),
                }
                for each in versions
            ],
        },
    }


def _subresources(served: ServedResource) -> Object:
    found: Object = {"status": {}} if "status" in served.subresources else {}
    if "scale" in served.subresources:
        found["scale"] = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    return found


def _read(resource: Resource, gvr: GVR, lines: Iterable[bytes]) -> Iterator[Stored]:
    for line in lines:
        obj = _decode(line)
        metadata = obj["metadata"]
        key = Key(metadata.get("namespace", ""), metadata["name"])
        try:
            yield _stored(resource, gvr, key, obj)
        except (MalformedError, ValueError) as error:
            raise BundleError(f"{_name(gvr, key)}: {error}") from None


def _stored(resource: Resource, gvr: GVR, key: Key, obj: Object) -> Stored:
    """Return the object as it is stored; revision 0 if it has none. Raises ValueError."""
    _check(resource, gvr, key, obj)
    metadata = dict(obj["metadata"])
    revision = metadata.get("resourceVersion") or "0"
    if not (revision.isascii() and revision.isdigit()) or len(revision) > _REVISION_DIGITS:
        raise ValueError(f"metadata.resourceVersion is {revision[:40]!a}, not a number below 10^18")
    if not metadata.get("uid"):
        metadata["uid"] = str(uuid.uuid5(_UIDS, f"{gvr}/{key.namespace}/{key.name}"))
    obj = canonical({**obj, "metadata": metadata}, resource.kind, resource.api_version(resource.storage_version))
    labels = metadata.get("labels") or {}
    return Stored(key, int(revision), metadata["uid"], _encode(obj), labels, selectable(resource, obj))


def _check(resource: Resource, gvr: GVR, key: Key, obj: Object) -> None:
    """Check the kind, the key, and the types of the fields of metadata and of built-in kinds."""
    if obj["kind"] != resource.kind:
        raise ValueError(f"kind is {obj['kind'][:100]!a}, not {resource.kind}")
    if bool(key.namespace) != resource.namespaced:
        raise ValueError("has a namespace" if key.namespace else "has no namespace")
    for part in key:
        if part in (".", "..") or "/" in part or "%" in part or not part.isprintable():
            raise ValueError("has a name that no path can have")
    if not key.name:
        raise ValueError("has no name")
    definition = None if resource.is_custom else definition_of(gvr.group, gvr.version, resource.kind)
    if definition is None:
        decode(_OBJECT_META, obj["metadata"])
    else:
        # The values of a Secret are hashes, not base64.
        decode(definition, {**obj, "data": None} if resource.key == _SECRETS else obj)


def _name(gvr: GVR, key: Key) -> str:
    return ascii(f"{gvr.resource}/{key.namespace}/{key.name}" if key.namespace else f"{gvr.resource}/{key.name}")[1:-1]
