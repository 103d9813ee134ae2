"""Objects that are posted to a pod and stored nowhere: Eviction and Binding. What both need before they are obeyed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nodeyard.apiserver import errors
from nodeyard.apiserver.admission.attributes import Attributes
from nodeyard.apiserver.http import User
from nodeyard.apiserver.resources import GroupVersionKind, Resource
from nodeyard.kube.json import Json, Object

if TYPE_CHECKING:
    from nodeyard.apiserver.server import Server


@dataclass(frozen=True, slots=True)
class Posted:
    """Who asks what of which pod."""

    user: User
    namespace: str
    name: str
    object: Object
    dry_run: bool

    def attributes(self, server: Server, subresource: str, kind: GroupVersionKind) -> Attributes:
        """What admission is told."""
        options: Object = {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"}
        if self.dry_run:
            options["dryRun"] = ["All"]
        return Attributes(
            operation="CREATE",
            resource=pods_resource(server),
            version="v1",
            subresource=subresource,
            namespace=self.namespace,
            name=self.name,
            object=self.object,
            old=None,
            user=self.user,
            dry_run=self.dry_run,
            options=options,
            kind=kind,
        )


def of_kind(body: Json, kind: GroupVersionKind, accepted: Sequence[str], namespace: str) -> Object:
    """The body as an object of this kind in the namespace of the URL; 400 where it says otherwise."""
    if not isinstance(body, dict):
        raise errors.bad_request(f"the object provided is unrecognized (must be of type {kind.kind})")
    name, api_version = body.get("kind") or kind.kind, body.get("apiVersion") or kind.api_version
    if name != kind.kind or api_version not in accepted:
        version = api_version.rpartition("/")[2]
        raise errors.bad_request(
            f'{name} in version "{version}" cannot be handled as a {kind.kind}: no kind "{name}" is registered for '
            f'version "{api_version}" in scheme "pkg/runtime/scheme.go:111"'
        )
    metadata = body.get("metadata") or {}
    if metadata.get("namespace", "") not in ("", namespace):
        text = "the namespace of the provided object does not match the namespace sent on the request"
        raise errors.bad_request(text)
    metadata = {**metadata, "namespace": namespace}
    return {**body, "kind": kind.kind, "apiVersion": api_version, "metadata": metadata}


def pods_resource(server: Server) -> Resource:
    resource = server.registry.get("", "pods")
    assert resource is not None
    return resource
