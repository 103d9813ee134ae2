"""Deleting a namespace. Conditions and texts are those that kube-controller-manager v1.36 wrote."""

import pytest

from nodeyard.apiserver.errors import ApiError

URL = "/api/v1/namespaces/shop"


async def conditions(yard):
    namespace = await yard.get(URL)
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


async def test_an_empty_namespace_goes_at_once(yard):
    await yard.namespace("shop")
    deleted = await yard.delete(URL)
    assert deleted["status"]["phase"] == "Terminating"
    await yard.settle()
    assert await yard.get(URL) is None


async def test_everything_in_a_namespace_goes_with_it(yard):
    await yard.namespace("shop")
    await yard.config_map("one", "shop")
    await yard.config_map("two", "shop")
    await yard.pod("unbound", "shop")
    await yard.config_map("elsewhere")
    await yard.delete(URL)
    await yard.settle()
    assert await yard.get(URL) is None
    assert (await yard.get("/api/v1/namespaces/shop/configmaps"))["items"] == []
    assert await yard.get("/api/v1/namespaces/default/configmaps/elsewhere") is not None


async def test_custom_resources_go_too(yard):
    await yard.definition()
    await yard.namespace("shop")
    await yard.custom("mine", "shop")
    await yard.custom("held", "shop", metadata={"finalizers": ["example.com/a"]})
    await yard.delete(URL)
    await yard.settle()
    _, _, message = (await conditions(yard))["NamespaceContentRemaining"]
    assert message == "Some resources are remaining: fleets.example.com has 1 resource instances"
    fleet = "/apis/example.com/v1/namespaces/shop/fleets/held"
    await yard.patch(fleet, {"metadata": {"finalizers": None}})
    await yard.settle()
    assert await yard.get(URL) is None


async def test_finalizers_hold_the_namespace_and_it_says_which(yard):
    await yard.namespace("shop")
    await yard.config_map("one", "shop", finalizers=["example.com/a"])
    await yard.config_map("two", "shop", finalizers=["example.com/a", "example.com/b"])
    await yard.delete(URL)
    await yard.settle()
    assert await conditions(yard) == {
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
        await yard.patch(f"{URL}/configmaps/{name}", {"metadata": {"finalizers": None}})
    await yard.settle()
    assert await yard.get(URL) is None


async def test_the_condition_follows_what_remains(yard):
    await yard.namespace("shop")
    for name in ("one", "two"):
        await yard.config_map(name, "shop", finalizers=["example.com/a"])
    await yard.delete(URL)
    await yard.settle()
    await yard.patch(f"{URL}/configmaps/one", {"metadata": {"finalizers": None}})
    await yard.pass_time(8)
    _, _, message = (await conditions(yard))["NamespaceContentRemaining"]
    assert message == "Some resources are remaining: configmaps. has 1 resource instances"


async def test_pods_go_before_everything_else(yard):
    await yard.namespace("shop")
    await yard.config_map("needed-by-the-pod", "shop")
    await yard.pod("worker", "shop", node="n1", ready=True)
    await yard.delete(URL)
    await yard.settle()
    assert (await yard.get(f"{URL}/pods/worker"))["metadata"]["deletionTimestamp"]
    assert "deletionTimestamp" not in (await yard.get(f"{URL}/configmaps/needed-by-the-pod"))["metadata"]
    assert await conditions(yard) == FINE
    await yard.delete(f"{URL}/pods/worker", gracePeriodSeconds=0)
    await yard.settle()
    assert await yard.get(URL) is None


async def test_pods_that_outlive_their_grace_period_are_reported(yard):
    await yard.namespace("shop")
    await yard.pod("worker", "shop", node="n1", ready=True)
    await yard.delete(URL)
    await yard.pass_time(60)
    status, reason, message = (await conditions(yard))["NamespaceDeletionContentFailure"]
    assert (status, reason) == ("True", "ContentDeletionFailed")
    assert message == (
        "Failed to delete all resource types, 1 remaining: unexpected items still remain in namespace: shop for gvr: "
        "/v1, Resource=pods"
    )


async def test_a_finalizer_of_somebody_else_keeps_the_empty_namespace(yard):
    await yard.namespace("shop")
    namespace = await yard.get(URL)
    namespace["spec"]["finalizers"] = ["kubernetes", "example.com/other"]
    await yard.call("PUT", f"{URL}/finalize", namespace)
    await yard.config_map("one", "shop")
    await yard.delete(URL)
    await yard.settle()
    assert (await yard.get(URL))["spec"]["finalizers"] == ["example.com/other"]
    assert (await yard.get(f"{URL}/configmaps"))["items"] == []


async def test_a_namespace_that_was_leaving_before_the_controllers_started_is_emptied_too(idle_yard):
    await idle_yard.namespace("shop")
    await idle_yard.config_map("one", "shop")
    await idle_yard.delete(URL)
    assert await idle_yard.get(URL) is not None
    await idle_yard.server.controllers.start(["namespace-controller"])
    await idle_yard.settle()
    assert await idle_yard.get(URL) is None


async def test_nothing_new_comes_into_a_namespace_that_is_leaving(yard):
    await yard.namespace("shop")
    await yard.config_map("one", "shop", finalizers=["example.com/a"])
    await yard.delete(URL)
    await yard.settle()
    with pytest.raises(ApiError) as refused:
        await yard.config_map("two", "shop")
    assert refused.value.code == 403
