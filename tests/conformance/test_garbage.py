"""Owner references: dependents are deleted with their owner."""

from __future__ import annotations

import pytest


@pytest.fixture
def family(http, configmaps):
    owner = http.post(configmaps, {"metadata": {"name": "owner"}}).json["metadata"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["uid"]}
    http.post(
        configmaps, {"metadata": {"name": "child", "ownerReferences": [{**reference, "blockOwnerDeletion": True}]}}
    )
    return configmaps


def status(http, path: str) -> int:
    return http.get(path).status


def test_dependents_are_deleted_after_their_owner(http, family, eventually):
    http.delete(f"{family}/owner")

    assert status(http, f"{family}/owner") == 404
    eventually(lambda: status(http, f"{family}/child") == 404, "the child is collected")


def test_dependents_are_deleted_before_their_owner_in_the_foreground(http, family, eventually):
    http.patch(f"{family}/child", {"metadata": {"finalizers": ["x.y/z"]}})
    marked = http.delete(f"{family}/owner", query={"propagationPolicy": "Foreground"})
    eventually(lambda: "deletionTimestamp" in http.get(f"{family}/child").json["metadata"], "the child is asked to go")

    assert marked.json["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert status(http, f"{family}/owner") == 200
    http.patch(f"{family}/child", {"metadata": {"finalizers": None}})
    eventually(lambda: status(http, f"{family}/owner") == 404, "the owner follows")


def test_orphans_stay_and_lose_their_owner_reference(http, family, eventually):
    http.delete(f"{family}/owner", query={"propagationPolicy": "Orphan"})

    eventually(lambda: status(http, f"{family}/owner") == 404, "the owner is gone")
    assert "ownerReferences" not in http.get(f"{family}/child").json["metadata"]


def test_a_dependent_with_another_owner_stays(http, family, eventually):
    other = http.post(family, {"metadata": {"name": "other"}}).json["metadata"]
    child = http.get(f"{family}/child").json["metadata"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": other["uid"]}
    http.patch(f"{family}/child", {"metadata": {"ownerReferences": [*child["ownerReferences"], reference]}})

    http.delete(f"{family}/owner")

    eventually(
        lambda: [o["name"] for o in http.get(f"{family}/child").json["metadata"]["ownerReferences"]] == ["other"],
        "the reference to the dead owner is dropped",
    )


def test_a_dependent_of_an_owner_that_never_existed_is_collected(http, configmaps, eventually):
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "ghost",
        "uid": "11111111-2222-3333-4444-555555555555",
    }
    http.post(configmaps, {"metadata": {"name": "child", "ownerReferences": [reference]}})

    eventually(lambda: status(http, f"{configmaps}/child") == 404, "the child is collected")
