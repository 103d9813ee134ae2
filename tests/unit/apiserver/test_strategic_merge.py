"""Strategic merge patch: lists by type, and directives."""

from __future__ import annotations

from typing import Any

import pytest

from nodeyard.apiserver.kinds.compiler import schema
from nodeyard.apiserver.strategic_merge import strategic_merge_patch
from nodeyard.kube.patch import PatchError

DEPLOYMENT = schema("io.k8s.api.apps.v1.Deployment")
NODE = schema("io.k8s.api.core.v1.Node")
BUDGET = schema("io.k8s.api.policy.v1.PodDisruptionBudget")
CRD = schema("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition")


def deployment(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    pod = {"containers": list(containers), "volumes": [{"name": "v", "emptyDir": {}}]}
    return {"metadata": {"name": "d"}, "spec": {"strategy": {"type": "Recreate"}, "template": {"spec": pod}, **spec}}


def pods(**pod: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": pod}}}


def containers(obj: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = obj["spec"]["template"]["spec"]["containers"]
    return found


def names(obj: dict[str, Any]) -> list[str]:
    return [container["name"] for container in containers(obj)]


WEB = {"name": "web", "image": "web:1", "ports": [{"containerPort": 80}], "env": [{"name": "A", "value": "1"}]}
LOG = {"name": "log", "image": "log:1", "args": ["-v"]}
LIVE = deployment(WEB, LOG)


def test_items_are_merged_by_their_key_and_the_patch_comes_first() -> None:
    patched = strategic_merge_patch(
        DEPLOYMENT, LIVE, pods(containers=[{"name": "web", "image": "web:2"}, {"name": "new"}])
    )
    assert containers(patched) == [{**WEB, "image": "web:2"}, {"name": "new"}, LOG]


def test_a_server_only_item_keeps_its_place_before_its_successor() -> None:
    patched = strategic_merge_patch(DEPLOYMENT, LIVE, pods(containers=[{"name": "log", "image": "log:2"}]))
    assert names(patched) == ["web", "log"]


def test_lists_inside_items_are_merged_too() -> None:
    change = {"name": "web", "env": [{"name": "B", "value": "2"}], "ports": [{"containerPort": 81}]}
    web = containers(strategic_merge_patch(DEPLOYMENT, LIVE, pods(containers=[change])))[0]
    assert web["env"] == [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}]
    assert web["ports"] == [{"containerPort": 81}, {"containerPort": 80}]


def test_lists_without_a_strategy_are_replaced() -> None:
    patched = strategic_merge_patch(DEPLOYMENT, LIVE, pods(containers=[{"name": "log", "args": ["-q"]}]))
    assert containers(patched)[1]["args"] == ["-q"]


def test_taints_are_replaced_and_conditions_merged() -> None:
    node = {
        "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]},
        "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "r"}, {"type": "Disk", "status": "x"}]},
    }
    patch = {
        "spec": {"taints": [{"key": "b", "effect": "NoSchedule"}]},
        "status": {"conditions": [{"type": "Ready", "status": "False"}]},
    }
    patched = strategic_merge_patch(NODE, node, patch)
    assert patched["spec"]["taints"] == [{"key": "b", "effect": "NoSchedule"}]
    assert patched["status"]["conditions"] == [
        {"type": "Ready", "status": "False", "reason": "r"},
        {"type": "Disk", "status": "x"},
    ]


def test_finalizers_are_merged_as_a_set() -> None:
    node = {"metadata": {"finalizers": ["x/a", "x/b"]}}
    patched = strategic_merge_patch(NODE, node, {"metadata": {"finalizers": ["x/c", "x/a", "x/c"]}})
    assert patched["metadata"]["finalizers"] == ["x/c", "x/a", "x/b"]


def test_items_of_a_set_are_deleted_by_a_list_of_their_own() -> None:
    node = {"metadata": {"finalizers": ["x/a", "x/b", "x/c"]}}
    patched = strategic_merge_patch(NODE, node, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x/a", "x/c"]}})
    assert patched["metadata"]["finalizers"] == ["x/b"]


def test_a_deletion_that_meets_no_list_does_nothing() -> None:
    node = {"metadata": {"finalizers": ["x/a"]}}
    assert strategic_merge_patch(NODE, node, {"metadata": {"$deleteFromPrimitiveList/finalizers": "x/a"}}) is node
    assert strategic_merge_patch(NODE, {"metadata": {}}, {"metadata": {"$deleteFromPrimitiveList/finalizers": []}}) == {
        "metadata": {}
    }


def test_null_removes() -> None:
    assert "strategy" not in strategic_merge_patch(DEPLOYMENT, LIVE, {"spec": {"strategy": None}})["spec"]


def test_null_members_of_what_is_new_are_dropped() -> None:
    patched = strategic_merge_patch(DEPLOYMENT, LIVE, {"metadata": {"annotations": {"a": None, "b": "c"}}})
    assert patched["metadata"]["annotations"] == {"b": "c"}


def test_a_map_can_be_replaced_or_emptied_by_directive() -> None:
    live = {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}}
    patch = {"metadata": {"labels": {"$patch": "replace", "x": "y"}, "annotations": {"$patch": "delete"}}}
    assert strategic_merge_patch(NODE, live, patch) == {"metadata": {"labels": {"x": "y"}, "annotations": {}}}


def test_items_can_be_deleted_by_directive() -> None:
    patched = strategic_merge_patch(DEPLOYMENT, LIVE, pods(containers=[{"name": "web", "$patch": "delete"}]))
    assert containers(patched) == [LOG]


def test_a_list_can_be_replaced_by_directive() -> None:
    patched = strategic_merge_patch(DEPLOYMENT, LIVE, pods(containers=[{"$patch": "replace"}, {"name": "only"}]))
    assert containers(patched) == [{"name": "only"}]


def test_directives_without_a_target_are_dropped() -> None:
    patched = strategic_merge_patch(
        DEPLOYMENT, LIVE, pods(initContainers=[{"name": "a"}, {"name": "b", "$patch": "delete"}])
    )
    assert patched["spec"]["template"]["spec"]["initContainers"] == [{"name": "a"}]


def test_retain_keys_drops_every_other_member() -> None:
    live = deployment(WEB, strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}})
    patched = strategic_merge_patch(
        DEPLOYMENT, live, {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    )
    assert patched["spec"]["strategy"] == {"type": "Recreate"}


def test_retain_keys_works_in_items_too() -> None:
    volume = {"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}
    patched = strategic_merge_patch(DEPLOYMENT, LIVE, pods(volumes=[volume]))
    assert patched["spec"]["template"]["spec"]["volumes"] == [{"name": "v", "hostPath": {"path": "/x"}}]


@pytest.mark.parametrize(
    ("order", "changes", "arranged"),
    [
        pytest.param(["log", "web"], [{"name": "log", "image": "z"}], ["log", "web"], id="a-new-order"),
        pytest.param(["log", "web"], None, ["log", "web"], id="an-order-alone"),
        pytest.param(
            ["new", "log"],
            [{"name": "new"}],
            ["new", "web", "log"],
            id="the-server's-own-stay-before-what-they-preceded",
        ),
        pytest.param(["log"], [{"name": "web", "$patch": "delete"}], ["log"], id="deletions-need-no-place"),
    ],
)
def test_items_can_be_ordered(order: list[str], changes: Any, arranged: list[str]) -> None:
    pod: dict[str, Any] = {"$setElementOrder/containers": [{"name": name} for name in order]}
    if changes is not None:
        pod["containers"] = changes
    assert names(strategic_merge_patch(DEPLOYMENT, LIVE, pods(**pod))) == arranged


def test_an_ordered_list_that_is_new_is_taken_as_it_is() -> None:
    pod = {"$setElementOrder/initContainers": [{"name": "a"}], "initContainers": [{"name": "a"}]}
    patched = strategic_merge_patch(DEPLOYMENT, LIVE, pods(**pod))
    assert patched["spec"]["template"]["spec"]["initContainers"] == [{"name": "a"}]
    absent = pods(**{"$setElementOrder/initContainers": [{"name": "a"}]})
    assert strategic_merge_patch(DEPLOYMENT, LIVE, absent) is LIVE


def test_a_field_with_the_strategy_replace_is_replaced() -> None:
    live = {"spec": {"selector": {"matchLabels": {"a": "b"}}}}
    patch = {"spec": {"selector": {"matchLabels": {"c": "d"}}}}
    assert strategic_merge_patch(BUDGET, live, patch) == patch


@pytest.mark.parametrize(
    "patch",
    [
        None,
        {},
        {"metadata": {"name": "d"}},
        pods(containers=[{"name": "web", "image": "web:1"}]),
        pods(containers=[{"name": "web", "env": [{"name": "A", "value": "1"}]}]),
    ],
    ids=str,
)
def test_a_patch_that_changes_nothing_returns_its_target(patch: Any) -> None:
    assert strategic_merge_patch(DEPLOYMENT, LIVE, patch) is LIVE


def test_unpatched_parts_are_the_same_object() -> None:
    patched = strategic_merge_patch(DEPLOYMENT, LIVE, pods(containers=[{"name": "web", "image": "web:2"}]))
    assert patched["metadata"] is LIVE["metadata"]
    assert containers(patched)[1] is LOG
    assert WEB["image"] == "web:1"


@pytest.mark.parametrize(
    ("patch", "code", "message"),
    [
        ([], 400, "json: cannot unmarshal array into Go value of type map[string]interface {}"),
        ({"spec": {"$retainKeys": 5}}, 400, "invalid patch format of retainKeys"),
        ({"spec": {"$retainKeys": ["a"], "b": 1}}, 400, "invalid patch format of retainKeys"),
        ({"metadata": {"$deleteFromPrimitiveListx": []}}, 400, "invalid patch format of primitive list"),
        ({"metadata": {"$setElementOrderx": []}}, 400, "invalid patch format of setElementOrder list"),
        ({"metadata": {"$setElementOrder/x": 1}}, 500, "expected a []interface {}, but received a int64"),
        ({"metadata": {"$setElementOrder/labels": []}}, 500, "expected slice or array type, but got: struct"),
        ({"metadata": {"$patch": "frob", "a": None}}, 500, "unknown patch type: frob in map: map[$patch:frob a:<nil>]"),
        (pods(containers=[{"image": "x"}]), 500, "map: map[image:x] does not contain declared merge key: name"),
        (pods(containers=["x"]), 500, None),
        (pods(containers=[{"$patch": "merge"}]), 500, "merging lists cannot yet be specified in the patch"),
        (pods(containers=[{"$patch": 1}]), 500, "unknown patch type: 1 in map: map[$patch:1]"),
        (
            pods(containers=[{"$patch": "delete"}]),
            500,
            "map: map[$patch:delete] does not contain declared merge key: name",
        ),
        (
            pods(**{"$setElementOrder/containers": [{"name": "web"}], "containers": [{"name": "log"}]}),
            500,
            "The order in patch list:\n[map[name:log]]\n doesn't match $setElementOrder list:\n[map[name:web]]\n",
        ),
        (
            pods(**{"$setElementOrder/containers": ["web"], "containers": [{"name": "log"}]}),
            500,
            "expected a map[string]interface {}, but received a string",
        ),
    ],
    ids=str,
)
def test_an_invalid_patch_is_refused_with_the_message_of_the_server(patch: Any, code: int, message: str | None) -> None:
    with pytest.raises(PatchError) as caught:
        strategic_merge_patch(DEPLOYMENT, LIVE, patch)
    assert caught.value.code == code
    assert message is None or str(caught.value) == message


def test_lists_of_lists_are_unprocessable() -> None:
    node = {"metadata": {"finalizers": [["x"]]}}
    with pytest.raises(PatchError, match="the server rejected our request") as caught:
        strategic_merge_patch(NODE, node, {"metadata": {"finalizers": [["y"]]}})
    assert caught.value.code == 422


def test_items_of_different_types_do_not_merge() -> None:
    node = {"metadata": {"finalizers": ["x/a"]}}
    with pytest.raises(PatchError) as caught:
        strategic_merge_patch(NODE, node, {"metadata": {"finalizers": ["x/b", 5]}})
    assert str(caught.value) == "list element types are not identical: [[x/a] [x/b 5]]"


def test_objects_in_a_map_cannot_be_merged() -> None:
    live = {"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"properties": {"a": {"type": "x"}}}}}]}}
    properties = {"openAPIV3Schema": {"properties": {"a": {"type": "y"}}}}
    patched = strategic_merge_patch(CRD, live, {"spec": {"versions": [{"name": "v1", "schema": properties}]}})
    assert patched["spec"]["versions"] == [{"name": "v1", "schema": properties}]
    deep = schema("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps")
    with pytest.raises(PatchError, match="merging an object in json but data type is not struct, instead is: map"):
        strategic_merge_patch(deep, {"properties": {"a": {"type": "x"}}}, {"properties": {"a": {"type": "y"}}})
