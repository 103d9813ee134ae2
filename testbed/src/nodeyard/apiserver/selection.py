"""The selection of a list or watch: namespace and selectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from nodeyard.apiserver import errors
from nodeyard.apiserver.options import ListOptions
from nodeyard.apiserver.resources import Resource
from nodeyard.apiserver.store import Stored
from nodeyard.kube.json import Object
from nodeyard.kube.selectors import FieldSelector, LabelSelector, SelectorError, parse_fields, parse_labels


class Selection(NamedTuple):
    """Namespace and selectors; `matches` is None if the whole namespace is selected."""

    namespace: str
    name: str
    """The only name that can match, if a field selector names one."""
    matches: Callable[[Stored], bool] | None

    def includes(self, stored: Stored) -> bool:
        if self.namespace and stored.key.namespace != self.namespace:
            return False
        return self.matches is None or self.matches(stored)


def select(resource: Resource, namespace: str, options: ListOptions) -> Selection:
    try:
        labels = parse_labels(options.label_selector)
        fields = parse_fields(options.field_selector)
    except SelectorError as error:
        raise errors.bad_request(str(error)) from error
    _check_known(resource, fields)
    name = fields.exact("metadata.name") or ""
    return Selection(namespace, name, _matcher(labels, fields))


def selectable(resource: Resource, obj: Object) -> dict[str, str]:
    """Return every selectable field of an object with its value."""
    metadata = obj["metadata"]
    found = {"metadata.name": metadata["name"]}
    if resource.namespaced:
        found["metadata.namespace"] = metadata.get("namespace", "")
    found.update(resource.strategy.selectable(obj))
    for path, read in resource.selectable_fields.items():
        found[path] = read(obj)
    return found


def _check_known(resource: Resource, fields: FieldSelector) -> None:
    known = resource.strategy.field_labels()
    always = {"metadata.name", "metadata.namespace"}
    if resource.strategy.has_own_field_labels and not resource.namespaced:
        always.discard("metadata.namespace")
    for requirement in fields.requirements:
        field = requirement.field
        if field in always or field in resource.selectable_fields or field in known:
            continue
        raise errors.bad_request(resource.strategy.unknown_field_label(field))


def _matcher(labels: LabelSelector, fields: FieldSelector) -> Callable[[Stored], bool] | None:
    if labels.empty and fields.empty:
        return None
    if fields.empty:
        return lambda stored: labels.matches(stored.labels)
    if labels.empty:
        return lambda stored: fields.matches(stored.fields)
    return lambda stored: labels.matches(stored.labels) and fields.matches(stored.fields)
