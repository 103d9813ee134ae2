"""NamespaceLifecycle: nothing new in a namespace that is not there or is going away, and some namespaces never go."""

from __future__ import annotations

from nodeyard.apiserver import errors
from nodeyard.apiserver.admission import refusals
from nodeyard.apiserver.admission.attributes import Attributes
from nodeyard.apiserver.admission.namespaces import NAMESPACES, Namespaces
from nodeyard.apiserver.admission.plugins import Mutating

IMMORTAL = frozenset({"default", "kube-system", "kube-public"})


class NamespaceLifecycle(Mutating):
    """Speaks before anything else: what it refuses no webhook shall see."""

    def __init__(self, namespaces: Namespaces) -> None:
        self._namespaces = namespaces

    async def mutate(self, attributes: Attributes) -> None:
        if attributes.resource.key == NAMESPACES:
            if attributes.operation == "DELETE" and attributes.name in IMMORTAL:
                raise refusals.forbidden(attributes, "this namespace may not be deleted")
            return
        name = attributes.namespace
        if not name or attributes.operation in ("DELETE", "CONNECT"):
            return
        namespace = self._namespaces.get(name)
        if namespace is None:
            raise errors.not_found("", "namespaces", name)
        if namespace.is_terminating and attributes.operation == "CREATE":
            why = f"unable to create new content in namespace {name} because it is being terminated"
            error = refusals.forbidden(attributes, why)
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {name} is being terminated",
                "field": "metadata.namespace",
            }
            error.details = {**(error.details or {}), "causes": [cause]}
            raise error
