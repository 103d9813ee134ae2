"""Objects that were stored under a schema that has changed since."""

from __future__ import annotations

import pytest

from nodeyard.apiserver.crds.reprune import repruner
from nodeyard.apiserver.crds.resource import resource_of
from nodeyard.apiserver.resources import Resource
from nodeyard.apiserver.selection import selectable
from nodeyard.apiserver.store import Store, Stored

STRING = {"type": "string"}
SELECTED = [{"jsonPath": ".spec.a"}]


def foos(spec: dict, selected: list[dict] | None = None, **more: object) -> Resource:
    root = {"type": "object", "properties": {"spec": {"type": "object", **spec}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": root}, **more}
    if selected:
        version["selectableFields"] = selected
    names = {"plural": "foos", "kind": "Foo"}
    spec = {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]}
    return resource_of({"metadata": {"name": "foos.example.com"}, "spec": spec})


def properties(**fields: dict) -> dict:
    return {"properties": fields}


def committed(store: Store, resource: Resource, spec: dict) -> Stored:
    obj = {"kind": "Foo", "apiVersion": "example.com/v1", "metadata": {"name": "x", "uid": "1"}, "spec": spec}
    return store.commit(resource.key, obj, selectable(resource, obj), expect=None)


@pytest.mark.parametrize(
    ("before", "after", "spec", "expected"),
    [
        (properties(a=STRING, old=STRING), properties(a=STRING), {"a": "1", "old": "y"}, {"a": "1"}),
        (properties(a=STRING), properties(a=STRING, b={**STRING, "default": "z"}), {"a": "1"}, {"a": "1", "b": "z"}),
        (
            properties(in_={"type": "object", **properties(a=STRING, old=STRING)}),
            properties(in_={"type": "object", **properties(a=STRING)}),
            {"in_": {"a": "1", "old": "y"}},
            {"in_": {"a": "1"}},
        ),
        (
            properties(in_={"type": "object", **properties(a={**STRING, "default": "z"})}),
            properties(in_={"type": "object", "default": {}, **properties(a={**STRING, "default": "z"})}),
            {},
            {"in_": {"a": "z"}},
        ),
        (
            properties(items={"type": "array", "items": {"type": "object", **properties(old=STRING)}}),
            properties(items={"type": "array", "items": {"type": "object", **properties(new=STRING)}}),
            {"items": [{"old": "y"}]},
            {"items": [{}]},
        ),
        (
            properties(a={**STRING, "nullable": True}, old=STRING),
            properties(a={**STRING, "nullable": True}),
            {"a": None, "old": "y"},
            {"a": None},
        ),
        (
            {"x-kubernetes-preserve-unknown-fields": True},
            properties(a=STRING),
            {"a": "1", "any": {"thing": 1}},
            {"a": "1"},
        ),
    ],
    ids=["gone", "default", "below", "default above", "items", "null", "closed"],
)
def test_an_object_is_read_as_the_new_schema_has_it(before, after, spec, expected):
    old, new = foos(before), foos(after)
    reprune = repruner(old, new)

    assert reprune(committed(Store(), old, spec)).object()["spec"] == expected


def test_a_field_that_has_become_selectable_is_known_of_old_objects():
    old, new = foos(properties(a=STRING)), foos(properties(a=STRING), SELECTED)

    assert repruner(old, new)(committed(Store(), old, {"a": "1"})).fields["spec.a"] == "1"


def test_a_change_that_does_not_concern_an_object_returns_the_same_object():
    old, new = foos(properties(a=STRING)), foos(properties(a=STRING, b=STRING))
    stored = committed(Store(), old, {"a": "1"})

    assert repruner(old, new)(stored) is stored


def test_changes_outside_schemas_and_fields_reprune_nothing():
    columns = [{"name": "A", "type": "string", "jsonPath": ".spec.a"}]

    assert repruner(foos(properties(a=STRING)), foos(properties(a=STRING), additionalPrinterColumns=columns)) is None


def test_objects_are_reread_at_their_revisions_without_watch_events():
    store, heard = Store(), []
    old, new = foos(properties(a=STRING)), foos(properties(a=STRING, b={**STRING, "default": "z"}))
    before = committed(store, old, {"a": "1"})
    store.listen(lambda _, event: heard.append(event))

    reprune = repruner(old, new)
    store.reread(new.key, [(before, reprune(before))])

    after = store.get(new.key, "", "x")
    assert after.object()["spec"] == {"a": "1", "b": "z"}
    assert (after.revision, after.object()["metadata"]) == (before.revision, before.object()["metadata"])
    assert (store.revision, heard) == (before.revision, [])
