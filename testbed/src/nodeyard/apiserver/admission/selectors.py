"""The namespaceSelector and objectSelector of webhooks and policies."""

from __future__ import annotations

from nodeyard.apiserver import errors
from nodeyard.apiserver.admission.attributes import Attributes
from nodeyard.apiserver.admission.namespaces import NAMESPACES, Namespaces, namespace_of
from nodeyard.kube.json import Object
from nodeyard.kube.selectors import LabelSelector, SelectorError, from_object

EVERYTHING = LabelSelector()


class ObjectScope:
    """A namespaceSelector and an objectSelector. An invalid one fails the writes that it is evaluated for."""

    __slots__ = ("_fault", "_namespace", "_object")

    def __init__(self, spec: Object) -> None:
        self._fault = ""
        self._namespace = self._object = EVERYTHING
        try:
            self._namespace = from_object(spec.get("namespaceSelector") or {})
            self._object = from_object(spec.get("objectSelector") or {})
        except SelectorError as fault:
            self._fault = str(fault)

    def includes(self, attributes: Attributes, namespaces: Namespaces) -> bool:
        """True if the write matches; raises a 404 if its namespace is needed and missing."""
        if self._fault:
            raise errors.internal(self._fault)
        return self._includes_object(attributes) and self._includes_namespace(attributes, namespaces)

    def _includes_object(self, attributes: Attributes) -> bool:
        selector = self._object
        return selector.empty or _selects(selector, attributes.object) or _selects(selector, attributes.old)

    def _includes_namespace(self, attributes: Attributes, namespaces: Namespaces) -> bool:
        selector = self._namespace
        if selector.empty:
            return True
        if attributes.resource.key == NAMESPACES:
            if attributes.object is not None and not attributes.subresource:
                return _selects(selector, attributes.object)
        elif not attributes.namespace:
            # Cluster-scoped objects match every namespaceSelector.
            return True
        name = namespace_of(attributes)
        namespace = namespaces.get(name)
        if namespace is None:
            raise errors.not_found("", "namespaces", name)
        return selector.matches(namespace.labels)


def _selects(selector: LabelSelector, obj: Object | None) -> bool:
    return obj is not None and selector.matches((obj.get("metadata") or {}).get("labels") or {})
