"""Owners that are named more than once."""

from __future__ import annotations

import pytest

from nodeyard.testing.session import JSON_PATCH

ADVICE = (
    "API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your "
    "requests; duplicate UID(s) observed: "
)


def warning(*uids: str, when: str = "") -> list[str]:
    return [f'299 - ".metadata.ownerReferences contains duplicate entries{when}; {ADVICE}{", ".join(uids)}"']


@pytest.fixture
def owner(http, configmaps) -> dict:
    uid = http.post(configmaps, {"metadata": {"name": "owner"}}).json["metadata"]["uid"]
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}


def owned(*owners: dict) -> dict:
    return {"metadata": {"name": "a", "ownerReferences": list(owners)}}


def test_a_new_object_keeps_each_owner_once(http, configmaps, owner):
    answer = http.post(configmaps, owned(owner, owner, owner))

    assert answer.status == 201
    assert answer.json["metadata"]["ownerReferences"] == [owner]
    assert answer.warnings == warning(owner["uid"], owner["uid"])
    assert http.get(f"{configmaps}/a").json["metadata"]["ownerReferences"] == [owner]


def test_an_updated_object_keeps_each_owner_once(http, configmaps, owner):
    http.post(configmaps, owned())

    answer = http.put(f"{configmaps}/a", owned(owner, owner))

    assert answer.json["metadata"]["ownerReferences"] == [owner]
    assert answer.warnings == warning(owner["uid"])


@pytest.mark.parametrize("content_type", ["application/merge-patch+json", JSON_PATCH])
def test_a_patched_object_keeps_each_owner_once(http, configmaps, owner, content_type):
    http.post(configmaps, owned())
    body = {"metadata": {"ownerReferences": [owner, owner]}}
    if content_type == JSON_PATCH:
        body = [{"op": "add", "path": "/metadata/ownerReferences", "value": [owner, owner]}]

    answer = http.patch(f"{configmaps}/a", body, content_type)

    assert answer.json["metadata"]["ownerReferences"] == [owner]
    assert answer.warnings == warning(owner["uid"], when=" after mutating admission happens")


def test_references_that_differ_are_both_kept(http, configmaps, owner):
    controlling = {**owner, "controller": True}

    answer = http.post(configmaps, owned(owner, controlling))

    assert answer.json["metadata"]["ownerReferences"] == [owner, controlling]
    assert answer.warnings == []
