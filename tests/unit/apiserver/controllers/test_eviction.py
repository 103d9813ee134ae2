"""Eviction; the expected answers are those of kube-apiserver v1.36."""

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


async def web(env, *names, ready=True, phase="Running", **metadata):
    for name in names:
        await env.pod(name, node="n1", ready=ready, phase=phase, labels=WEB, **metadata)


async def budget(env, name="web", **spec):
    await env.budget(name, WEB, **(spec or {"minAvailable": 1}))
    await env.settle()


async def budget_status(env, name="web"):
    return (await env.get(f"{BUDGETS}/{name}"))["status"]


async def test_a_pod_without_a_budget_is_deleted_with_the_reason_in_its_status(env):
    await web(env, "a")
    assert await env.evict("a") == SUCCESS
    pod = await env.get(f"{PODS}/a")
    assert pod["metadata"]["deletionTimestamp"] == env.moment(30)
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 30
    assert pod["status"]["conditions"][-1] == {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastProbeTime": None,
        "lastTransitionTime": env.moment(),
    }


async def test_the_grace_period_of_the_eviction_counts(env):
    await web(env, "a")
    await env.evict("a", gracePeriodSeconds=5)
    assert (await env.get(f"{PODS}/a"))["metadata"]["deletionTimestamp"] == env.moment(5)


async def test_an_eviction_uses_up_the_budget(idle_env):
    env = idle_env
    await env.server.controllers.start(["disruption-controller"])
    await web(env, "a", "b", "c")
    await budget(env, minAvailable=1)
    await env.server.controllers.stop()
    await env.evict("a")
    status = await budget_status(env)
    assert status["disruptionsAllowed"] == 1
    assert status["disruptedPods"] == {"a": env.moment()}
    assert status["conditions"][0]["reason"] == "SufficientPods"
    await env.evict("b")
    status = await budget_status(env)
    assert status["disruptionsAllowed"] == 0
    assert list(status["disruptedPods"]) == ["a", "b"]
    assert status["conditions"][0]["reason"] == "InsufficientPods"
    error = await refusal(env.evict("c"))
    assert error.code == 429


async def test_the_controller_completes_what_the_eviction_began(env):
    await web(env, "a", "b")
    await budget(env)
    await env.evict("a")
    await env.settle()
    status = await budget_status(env)
    assert "disruptedPods" not in status
    assert (status["currentHealthy"], status["disruptionsAllowed"]) == (1, 0)


async def test_a_budget_that_is_used_up_refuses_with_429(env):
    await web(env, "a")
    await budget(env)
    error = await refusal(env.evict("a"))
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
    assert "deletionTimestamp" not in (await env.get(f"{PODS}/a"))["metadata"]


async def test_an_uncounted_budget_asks_for_a_retry_in_ten_seconds(idle_env):
    await web(idle_env, "a")
    await budget(idle_env)
    error = await refusal(idle_env.evict("a"))
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


async def test_two_budgets_for_one_pod_are_an_error_of_the_server(env):
    await web(env, "a", "b", "c")
    await budget(env, "one")
    await budget(env, "two")
    for query in ("", "?dryRun=All"):
        error = await refusal(env.evict("a", query=query))
        assert error.status() == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": TWO_BUDGETS,
            "code": 500,
        }


@pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
async def test_a_finished_pod_is_evicted_without_a_budget(env, phase):
    await web(env, "a", ready=True, phase=phase)
    await budget(env)
    assert await env.evict("a") == SUCCESS


async def test_a_terminating_pod_may_be_evicted_again(env):
    await web(env, "a", finalizers=["example.com/held"])
    await env.delete(f"{PODS}/a")
    await budget(env)
    assert await env.evict("a") == SUCCESS


async def test_a_pod_not_ready_is_guarded_while_too_few_are_healthy(env):
    await web(env, "a", ready=False)
    await budget(env)
    error = await refusal(env.evict("a"))
    assert error.details["causes"][0]["message"] == "The disruption budget web needs 1 healthy pods and has 0 currently"


async def test_an_unready_pod_may_be_evicted_while_the_others_are_healthy(env):
    await web(env, "ill", ready=False)
    await web(env, "well")
    await budget(env)
    assert (await budget_status(env))["disruptionsAllowed"] == 0
    assert await env.evict("ill") == SUCCESS
    assert "disruptedPods" not in await budget_status(env)


async def test_an_unready_pod_may_always_be_evicted_under_always_allow(env):
    await web(env, "ill", ready=False)
    await budget(env, minAvailable=1, unhealthyPodEvictionPolicy="AlwaysAllow")
    assert await env.evict("ill") == SUCCESS


async def test_a_budget_that_could_not_be_counted_says_why(env):
    stranger = {"apiVersion": "example.com/v1", "kind": "Fleet", "name": "f", "uid": "f", "controller": True}
    await web(env, "a", ownerReferences=[stranger])
    await budget(env, maxUnavailable=1)
    await env.settle()
    status = {**await budget_status(env), "observedGeneration": 1}
    await env.patch(f"{BUDGETS}/web/status", {"status": status})
    error = await refusal(env.evict("a"))
    assert error.details["causes"][0]["message"] == (
        "The disruption budget web does not allow evicting pods currently because it failed sync: "
        'no matches for kind "Fleet" in version "example.com/v1"'
    )


@pytest.mark.parametrize("options", [{"query": "?dryRun=All"}, {"dryRun": ["All"]}], ids=["query", "body"])
async def test_a_dry_run_changes_nothing(env, options):
    await web(env, "a", "b")
    await budget(env)
    before = env.server.store.revision
    assert await env.evict("a", **options) == SUCCESS
    assert env.server.store.revision == before


async def test_a_dry_run_is_refused_like_any_other(env):
    await web(env, "a")
    await budget(env)
    assert (await refusal(env.evict("a", query="?dryRun=All"))).code == 429


async def test_a_missing_pod_is_not_found(env):
    error = await refusal(env.evict("nobody"))
    assert (error.code, error.message) == (404, 'pods "nobody" not found')


@pytest.mark.parametrize("query", ["", "?dryRun=All"])
async def test_a_uid_that_is_another_conflicts(env, query):
    await web(env, "a")
    uid = (await env.get(f"{PODS}/a"))["metadata"]["uid"]
    error = await refusal(env.evict("a", query=query, preconditions={"uid": "x"}))
    assert error.code == 409
    assert error.message == (
        'Operation cannot be fulfilled on Pod "a": the UID in the precondition (x) does not match the UID in record '
        f"({uid}). The object might have been deleted and then recreated"
    )
    assert error.details == {"name": "a", "kind": "Pod"}


async def test_a_revision_that_is_another_conflicts(env):
    await web(env, "a")
    revision = (await env.get(f"{PODS}/a"))["metadata"]["resourceVersion"]
    error = await refusal(env.evict("a", preconditions={"resourceVersion": "1"}))
    assert error.message == (
        'Operation cannot be fulfilled on Pod "a": the ResourceVersion in the precondition (1) does not match the '
        f"ResourceVersion in record ({revision}). The object might have been modified"
    )
    assert await env.evict("a", preconditions={"resourceVersion": revision}) == SUCCESS


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
async def test_a_body_that_is_no_eviction_of_this_pod_is_a_bad_request(env, body, message):
    await web(env, "a")
    error = await refusal(env.call("POST", f"{PODS}/a/eviction", body))
    assert (error.code, error.message) == (400, message)


@pytest.mark.parametrize("kind", [{}, {"apiVersion": "policy/v1beta1", "kind": "Eviction"}], ids=["none", "v1beta1"])
async def test_the_kind_is_optional_and_the_old_version_is_accepted(env, kind):
    await web(env, "a")
    assert await env.call("POST", f"{PODS}/a/eviction", {**kind, "metadata": {"name": "a"}}) == SUCCESS


async def test_contradictory_delete_options_are_invalid(env):
    await web(env, "a")
    error = await refusal(env.evict("a", dryRun=["Some"]))
    assert error.code == 422
    assert error.message == (
        'DeleteOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"'
    )
    error = await refusal(env.evict("a", ignoreStoreReadErrorWithClusterBreakingPotential=True))
    assert error.message == (
        'Eviction.policy "a" is invalid: deleteOptions.ignoreStoreReadErrorWithClusterBreakingPotential: Invalid '
        "value: true: can not be set for pod eviction, try after removing the option"
    )


async def test_nothing_is_evicted_in_a_terminating_namespace(env):
    await env.namespace("shop")
    await env.pod("a", "shop", node="n1", ready=True)
    await env.delete("/api/v1/namespaces/shop")
    await env.settle()
    error = await refusal(env.evict("a", "shop"))
    assert error.code == 403
    assert error.details["causes"][0]["reason"] == "NamespaceTerminating"
