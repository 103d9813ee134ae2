"""Objects that are posted to a pod and stored nowhere: Eviction and Binding. What both need before they are obeyed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nodeyard.apiserver import declared, errors
from nodeyard.apiserver.admission.attributes import Attributes
from nodeyard.apiserver.calls import Call
from nodeyard.apiserver.resources import GroupVersionKind, Resource
from nodeyard.kube.json import Object

if TYPE_CHECKING:
    from nodeyard.apiserver.server import Server


@dataclass(frozen=True, slots=True)
class Posted:
    """Who asks what of which pod."""

    call: Call
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
            namespace=self.call.namespace,
            name=self.name,
            object=self.object,
            old=None,
            user=self.call.user,
            dry_run=self.dry_run,
            options=options,
            kind=kind,
            warnings=self.call.warnings,
            audit=self.call.audit,
        )


def of_kind(body: Object, kind: GroupVersionKind, accepted: Sequence[str], namespace: str) -> Object:
    """The body as an object of this kind in the namespace of the URL; 400 where it says otherwise."""
    api_version = body.get("apiVersion")
    if body.get("kind") != kind.kind or api_version not in accepted:
        body = declared.built_in(body, kind)
    metadata = body.get("metadata") or {}
    if metadata.get("namespace", "") not in ("", namespace):
        text = "the namespace of the provided object does not match the namespace sent on the request"
        raise errors.bad_request(text)
    metadata = {**metadata, "namespace": namespace}
    return {**body, "metadata": metadata}


def pods_resource(server: Server) -> Resource:
    resource = server.registry.get("", "pods")
    assert resource is not None
    return resource
