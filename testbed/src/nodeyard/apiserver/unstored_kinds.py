"""Requests whose objects are never stored: Eviction, Binding and the like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nodeyard.apiserver import errors
from nodeyard.apiserver.admission.attributes import Attributes
from nodeyard.apiserver.request_context import RequestContext
from nodeyard.apiserver.resources import GroupVersionKind, Resource
from nodeyard.kube.json import Object

if TYPE_CHECKING:
    from nodeyard.apiserver.server import Server


@dataclass(frozen=True, slots=True)
class Posted:
    """A request for a pod with such an object."""

    context: RequestContext
    name: str
    object: Object
    dry_run: bool

    def attributes(self, server: Server, subresource: str, kind: GroupVersionKind) -> Attributes:
        """Return the attributes for admission."""
        options: Object = {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"}
        if self.dry_run:
            options["dryRun"] = ["All"]
        return Attributes(
            operation="CREATE",
            resource=pods_resource(server),
            version="v1",
            subresource=subresource,
            namespace=self.context.namespace,
            name=self.name,
            object=self.object,
            old=None,
            user=self.context.user,
            work=self.context.work,
            is_large=self.context.is_large,
            dry_run=self.dry_run,
            options=options,
            kind=kind,
            warnings=self.context.warnings,
            audit=self.context.audit,
        )


def set_namespace(body: Object, namespace: str) -> Object:
    """Return the object in the namespace of the URL; raise a 400 if it has another one."""
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
