"""Deleting a namespace. Conditions and texts are those that kube-controller-manager v1.36 wrote."""

import pytest

from nodeyard.apiserver.errors import ApiError

URL = "/api/v1/namespaces/shop"


async def conditions(env):
    namespace = await env.get(URL)
    return {c["type"]: (c["status"], c["reason"], c["message"]) for c in namespace["status"]["conditions"]}


FINE = {
    "NamespaceDeletionDiscoveryFailure": ("False", "ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "False",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "False",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("False", "ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("False", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}


async def test_an_empty_namespace_goes_at_once(env):
    await env.namespace("shop")
    deleted = await env.delete(URL)
    assert deleted["status"]["phase"] == "Terminating"
    await env.settle()
    assert await env.get(URL) is None


async def test_all_objects_of_a_namespace_are_deleted_with_it(env):
    await env.namespace("shop")
    await env.config_map("one", "shop")
    await env.config_map("two", "shop")
    await env.pod("unbound", "shop")
    await env.config_map("elsewhere")
    await env.delete(URL)
    await env.settle()
    assert await env.get(URL) is None
    assert (await env.get("/api/v1/namespaces/shop/configmaps"))["items"] == []
    assert await env.get("/api/v1/namespaces/default/configmaps/elsewhere") is not None


async def test_custom_resources_go_too(env):
    await env.definition()
    await env.namespace("shop")
    await env.custom("mine", "shop")
    await env.custom("held", "shop", metadata={"finalizers": ["example.com/a"]})
    await env.delete(URL)
    await env.settle()
    _, _, message = (await conditions(env))["NamespaceContentRemaining"]
    assert message == "Some resources are remaining: fleets.example.com has 1 resource instances"
    fleet = "/apis/example.com/v1/namespaces/shop/fleets/held"
    await env.patch(fleet, {"metadata": {"finalizers": None}})
    await env.settle()
    assert await env.get(URL) is None


async def test_finalizers_hold_the_namespace_and_it_says_which(env):
    await env.namespace("shop")
    await env.config_map("one", "shop", finalizers=["example.com/a"])
    await env.config_map("two", "shop", finalizers=["example.com/a", "example.com/b"])
    await env.delete(URL)
    await env.settle()
    assert await conditions(env) == {
        **FINE,
        "NamespaceContentRemaining": (
            "True",
            "SomeResourcesRemain",
            "Some resources are remaining: configmaps. has 2 resource instances",
        ),
        "NamespaceFinalizersRemaining": (
            "True",
            "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining: example.com/a in 2 resource instances, "
            "example.com/b in 1 resource instances",
        ),
    }
    for name in ("one", "two"):
        await env.patch(f"{URL}/configmaps/{name}", {"metadata": {"finalizers": None}})
    await env.settle()
    assert await env.get(URL) is None


async def test_the_condition_follows_what_remains(env):
    await env.namespace("shop")
    for name in ("one", "two"):
        await env.config_map(name, "shop", finalizers=["example.com/a"])
    await env.delete(URL)
    await env.settle()
    await env.patch(f"{URL}/configmaps/one", {"metadata": {"finalizers": None}})
    await env.pass_time(8)
    _, _, message = (await conditions(env))["NamespaceContentRemaining"]
    assert message == "Some resources are remaining: configmaps. has 1 resource instances"


async def test_pods_are_deleted_before_all_other_objects(env):
    await env.namespace("shop")
    await env.config_map("needed-by-the-pod", "shop")
    await env.pod("worker", "shop", node="n1", ready=True)
    await env.delete(URL)
    await env.settle()
    assert (await env.get(f"{URL}/pods/worker"))["metadata"]["deletionTimestamp"]
    assert "deletionTimestamp" not in (await env.get(f"{URL}/configmaps/needed-by-the-pod"))["metadata"]
    assert await conditions(env) == FINE
    await env.delete(f"{URL}/pods/worker", gracePeriodSeconds=0)
    await env.settle()
    assert await env.get(URL) is None


async def test_pods_that_outlive_their_grace_period_are_reported(env):
    await env.namespace("shop")
    await env.pod("worker", "shop", node="n1", ready=True)
    await env.delete(URL)
    await env.pass_time(60)
    status, reason, message = (await conditions(env))["NamespaceDeletionContentFailure"]
    assert (status, reason) == ("True", "ContentDeletionFailed")
    assert message == (
        "Failed to delete all resource types, 1 remaining: unexpected items still remain in namespace: shop for gvr: "
        "/v1, Resource=pods"
    )


async def test_a_foreign_finalizer_keeps_the_empty_namespace(env):
    await env.namespace("shop")
    namespace = await env.get(URL)
    namespace["spec"]["finalizers"] = ["kubernetes", "example.com/other"]
    await env.call("PUT", f"{URL}/finalize", namespace)
    await env.config_map("one", "shop")
    await env.delete(URL)
    await env.settle()
    assert (await env.get(URL))["spec"]["finalizers"] == ["example.com/other"]
    assert (await env.get(f"{URL}/configmaps"))["items"] == []


async def test_a_namespace_that_was_leaving_before_the_controllers_started_is_emptied_too(idle_env):
    await idle_env.namespace("shop")
    await idle_env.config_map("one", "shop")
    await idle_env.delete(URL)
    assert await idle_env.get(URL) is not None
    await idle_env.server.controllers.start(["namespace-controller"])
    await idle_env.settle()
    assert await idle_env.get(URL) is None


async def test_nothing_is_created_in_a_terminating_namespace(env):
    await env.namespace("shop")
    await env.config_map("one", "shop", finalizers=["example.com/a"])
    await env.delete(URL)
    await env.settle()
    with pytest.raises(ApiError) as refused:
        await env.config_map("two", "shop")
    assert refused.value.code == 403
