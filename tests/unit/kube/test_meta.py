"""Readers of metadata accept missing fields."""

from nodeyard.kube import meta

OWNED = {
    "metadata": {
        "name": "p",
        "namespace": "d",
        "uid": "u",
        "labels": {"a": "b"},
        "generation": 3,
        "resourceVersion": "7",
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "ownerReferences": [{"uid": "1", "name": "x"}, {"uid": "2", "name": "y", "controller": True}],
    }
}


def test_existing_fields_are_read() -> None:
    assert (meta.name(OWNED), meta.namespace(OWNED), meta.uid(OWNED)) == ("p", "d", "u")
    assert (meta.generation(OWNED), meta.resource_version(OWNED)) == (3, "7")
    assert meta.labels(OWNED) == {"a": "b"}
    assert meta.is_deleting(OWNED)


def test_missing_fields_are_empty() -> None:
    for obj in ({}, {"metadata": None}, {"metadata": {"labels": None}}):
        assert (meta.name(obj), meta.namespace(obj), meta.uid(obj), meta.generation(obj)) == ("", "", "", 0)
        assert not meta.labels(obj)
        assert not meta.annotations(obj)
        assert meta.finalizers(obj) == meta.owner_references(obj) == []
        assert meta.controller_of(obj) is None
        assert not meta.is_deleting(obj)


def test_the_controller_is_the_owner_that_manages() -> None:
    controller = meta.controller_of(OWNED)
    assert controller is not None
    assert controller["name"] == "y"
