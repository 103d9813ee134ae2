"""Eviction, answer by answer as kube-apiserver v1.36 gave them."""

import pytest

from nodeyard.apiserver.errors import ApiError

PODS = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
WEB = {"app": "web"}
SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
TWO_BUDGETS = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
VIOLATION = "Cannot evict pod as it would violate the pod's disruption budget."


async def refusal(awaitable):
    with pytest.raises(ApiError) as refused:
        await awaitable
    return refused.value


async def web(yard, *names, ready=True, phase="Running", **metadata):
    for name in names:
        await yard.pod(name, node="n1", ready=ready, phase=phase, labels=WEB, **metadata)


async def budget(yard, name="web", **spec):
    await yard.budget(name, WEB, **(spec or {"minAvailable": 1}))
    await yard.settle()


async def budget_status(yard, name="web"):
    return (await yard.get(f"{BUDGETS}/{name}"))["status"]


async def test_a_pod_without_a_budget_is_deleted_with_the_reason_in_its_status(yard):
    await web(yard, "a")
    assert await yard.evict("a") == SUCCESS
    pod = await yard.get(f"{PODS}/a")
    assert pod["metadata"]["deletionTimestamp"] == yard.moment(30)
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 30
    assert pod["status"]["conditions"][-1] == {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastProbeTime": None,
        "lastTransitionTime": yard.moment(),
    }


async def test_the_grace_period_of_the_eviction_counts(yard):
    await web(yard, "a")
    await yard.evict("a", gracePeriodSeconds=5)
    assert (await yard.get(f"{PODS}/a"))["metadata"]["deletionTimestamp"] == yard.moment(5)


async def test_an_eviction_uses_up_the_budget(idle_yard):
    yard = idle_yard
    await yard.server.controllers.start(["disruption-controller"])
    await web(yard, "a", "b", "c")
    await budget(yard, minAvailable=1)
    await yard.server.controllers.stop()
    await yard.evict("a")
    status = await budget_status(yard)
    assert status["disruptionsAllowed"] == 1
    assert status["disruptedPods"] == {"a": yard.moment()}
    assert status["conditions"][0]["reason"] == "SufficientPods"
    await yard.evict("b")
    status = await budget_status(yard)
    assert status["disruptionsAllowed"] == 0
    assert list(status["disruptedPods"]) == ["a", "b"]
    assert status["conditions"][0]["reason"] == "InsufficientPods"
    error = await refusal(yard.evict("c"))
    assert error.code == 429


async def test_the_controller_completes_what_the_eviction_began(yard):
    await web(yard, "a", "b")
    await budget(yard)
    await yard.evict("a")
    await yard.settle()
    status = await budget_status(yard)
    assert "disruptedPods" not in status
    assert (status["currentHealthy"], status["disruptionsAllowed"]) == (1, 0)


async def test_a_budget_that_is_used_up_refuses_with_429(yard):
    await web(yard, "a")
    await budget(yard)
    error = await refusal(yard.evict("a"))
    assert error.status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": VIOLATION,
        "reason": "TooManyRequests",
        "details": {
            "causes": [
                {
                    "reason": "DisruptionBudget",
                    "message": "The disruption budget web needs 1 healthy pods and has 1 currently",
                }
            ]
        },
        "code": 429,
    }
    assert error.headers == []
    assert "deletionTimestamp" not in (await yard.get(f"{PODS}/a"))["metadata"]


async def test_a_budget_not_yet_counted_asks_to_come_back_in_ten_seconds(idle_yard):
    await web(idle_yard, "a")
    await budget(idle_yard)
    error = await refusal(idle_yard.evict("a"))
    assert error.code == 429
    assert error.details == {
        "causes": [
            {
                "reason": "DisruptionBudget",
                "message": "The disruption budget web is still being processed by the server.",
            }
        ],
        "retryAfterSeconds": 10,
    }
    assert ("Retry-After", "10") in error.headers


async def test_two_budgets_for_one_pod_are_an_error_of_the_server(yard):
    await web(yard, "a", "b", "c")
    await budget(yard, "one")
    await budget(yard, "two")
    for query in ("", "?dryRun=All"):
        error = await refusal(yard.evict("a", query=query))
        assert error.status() == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": TWO_BUDGETS,
            "code": 500,
        }


@pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
async def test_a_finished_pod_is_evicted_without_a_budget(yard, phase):
    await web(yard, "a", ready=True, phase=phase)
    await budget(yard)
    assert await yard.evict("a") == SUCCESS


async def test_a_pod_on_its_way_out_may_be_evicted_again(yard):
    await web(yard, "a", finalizers=["example.com/held"])
    await yard.delete(f"{PODS}/a")
    await budget(yard)
    assert await yard.evict("a") == SUCCESS


async def test_a_pod_not_ready_is_guarded_while_too_few_are_healthy(yard):
    await web(yard, "a", ready=False)
    await budget(yard)
    error = await refusal(yard.evict("a"))
    assert error.details["causes"][0]["message"] == "The disruption budget web needs 1 healthy pods and has 0 currently"


async def test_a_pod_not_ready_may_go_while_the_others_are_well(yard):
    await web(yard, "ill", ready=False)
    await web(yard, "well")
    await budget(yard)
    assert (await budget_status(yard))["disruptionsAllowed"] == 0
    assert await yard.evict("ill") == SUCCESS
    assert "disruptedPods" not in await budget_status(yard)


async def test_a_pod_not_ready_may_always_go_where_the_budget_says_so(yard):
    await web(yard, "ill", ready=False)
    await budget(yard, minAvailable=1, unhealthyPodEvictionPolicy="AlwaysAllow")
    assert await yard.evict("ill") == SUCCESS


async def test_a_budget_that_could_not_be_counted_says_why(yard):
    stranger = {"apiVersion": "example.com/v1", "kind": "Fleet", "name": "f", "uid": "f", "controller": True}
    await web(yard, "a", ownerReferences=[stranger])
    await budget(yard, maxUnavailable=1)
    await yard.settle()
    status = {**await budget_status(yard), "observedGeneration": 1}
    await yard.patch(f"{BUDGETS}/web/status", {"status": status})
    error = await refusal(yard.evict("a"))
    assert error.details["causes"][0]["message"] == (
        "The disruption budget web does not allow evicting pods currently because it failed sync: "
        'no matches for kind "Fleet" in version "example.com/v1"'
    )


@pytest.mark.parametrize("options", [{"query": "?dryRun=All"}, {"dryRun": ["All"]}], ids=["query", "body"])
async def test_a_dry_run_changes_nothing(yard, options):
    await web(yard, "a", "b")
    await budget(yard)
    before = yard.server.store.revision
    assert await yard.evict("a", **options) == SUCCESS
    assert yard.server.store.revision == before


async def test_a_dry_run_is_refused_like_any_other(yard):
    await web(yard, "a")
    await budget(yard)
    assert (await refusal(yard.evict("a", query="?dryRun=All"))).code == 429


async def test_a_pod_that_is_not_there_is_not_found(yard):
    error = await refusal(yard.evict("nobody"))
    assert (error.code, error.message) == (404, 'pods "nobody" not found')


@pytest.mark.parametrize("query", ["", "?dryRun=All"])
async def test_a_uid_that_is_another_conflicts(yard, query):
    await web(yard, "a")
    uid = (await yard.get(f"{PODS}/a"))["metadata"]["uid"]
    error = await refusal(yard.evict("a", query=query, preconditions={"uid": "x"}))
    assert error.code == 409
    assert error.message == (
        'Operation cannot be fulfilled on Pod "a": the UID in the precondition (x) does not match the UID in record '
        f"({uid}). The object might have been deleted and then recreated"
    )
    assert error.details == {"name": "a", "kind": "Pod"}


async def test_a_revision_that_is_another_conflicts(yard):
    await web(yard, "a")
    revision = (await yard.get(f"{PODS}/a"))["metadata"]["resourceVersion"]
    error = await refusal(yard.evict("a", preconditions={"resourceVersion": "1"}))
    assert error.message == (
        'Operation cannot be fulfilled on Pod "a": the ResourceVersion in the precondition (1) does not match the '
        f"ResourceVersion in record ({revision}). The object might have been modified"
    )
    assert await yard.evict("a", preconditions={"resourceVersion": revision}) == SUCCESS


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"metadata": {"name": "b"}}, "name in URL does not match name in Eviction object"),
        ({"metadata": {}}, "name in URL does not match name in Eviction object"),
        (
            {"metadata": {"name": "a", "namespace": "other"}},
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            {"apiVersion": "v1", "kind": "Eviction", "metadata": {"name": "a"}},
            'Eviction in version "v1" cannot be handled as a Eviction: no kind "Eviction" is registered for version '
            '"v1" in scheme "pkg/runtime/scheme.go:111"',
        ),
    ],
)
async def test_a_body_that_is_no_eviction_of_this_pod_is_a_bad_request(yard, body, message):
    await web(yard, "a")
    error = await refusal(yard.call("POST", f"{PODS}/a/eviction", body))
    assert (error.code, error.message) == (400, message)


@pytest.mark.parametrize("kind", [{}, {"apiVersion": "policy/v1beta1", "kind": "Eviction"}], ids=["none", "v1beta1"])
async def test_the_kind_may_be_left_out_and_the_old_version_is_taken(yard, kind):
    await web(yard, "a")
    assert await yard.call("POST", f"{PODS}/a/eviction", {**kind, "metadata": {"name": "a"}}) == SUCCESS


async def test_options_that_make_no_sense_are_invalid(yard):
    await web(yard, "a")
    error = await refusal(yard.evict("a", dryRun=["Some"]))
    assert error.code == 422
    assert error.message == (
        'DeleteOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"'
    )
    error = await refusal(yard.evict("a", ignoreStoreReadErrorWithClusterBreakingPotential=True))
    assert error.message == (
        'Eviction.policy "a" is invalid: deleteOptions.ignoreStoreReadErrorWithClusterBreakingPotential: Invalid '
        "value: true: can not be set for pod eviction, try after removing the option"
    )


async def test_in_a_namespace_that_is_leaving_nothing_is_evicted(yard):
    await yard.namespace("shop")
    await yard.pod("a", "shop", node="n1", ready=True)
    await yard.delete("/api/v1/namespaces/shop")
    await yard.settle()
    error = await refusal(yard.evict("a", "shop"))
    assert error.code == 403
    assert error.details["causes"][0]["reason"] == "NamespaceTerminating"
