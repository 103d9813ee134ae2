"""The status of PodDisruptionBudgets, kept by the controller."""

BUDGET = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/web"
PODS = "/api/v1/namespaces/default/pods"
WEB = {"app": "web"}


async def status(env):
    return (await env.get(BUDGET))["status"]


async def counts(env):
    found = await status(env)
    return tuple(found[name] for name in ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed"))


async def pods(env, count, *, ready=True, controller=None):
    metadata = {"labels": WEB}
    if controller is not None:
        metadata["ownerReferences"] = [env.owner(controller, controller=True)]
    for number in range(count):
        await env.pod(f"web-{number}", node="n1", ready=ready, **metadata)


async def test_a_budget_counts_the_pods_it_selects(env):
    await pods(env, 3)
    await env.pod("other", node="n1", ready=True, labels={"app": "other"})
    await env.budget("web", WEB, minAvailable=2)
    await env.settle()
    assert await counts(env) == (3, 2, 3, 1)
    found = await status(env)
    assert found["observedGeneration"] == 1
    [condition] = found["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "DisruptionAllowed",
        "True",
        "SufficientPods",
    )


async def test_the_count_follows_the_pods(env):
    await env.budget("web", WEB, minAvailable=1)
    await env.settle()
    assert await counts(env) == (0, 1, 0, 0)
    await pods(env, 2)
    await env.settle()
    assert await counts(env) == (2, 1, 2, 1)
    await env.set_ready("web-0", ready=False)
    await env.settle()
    assert await counts(env) == (2, 1, 1, 0)
    await env.patch(f"{PODS}/web-1", {"metadata": {"labels": {"app": "other"}}})
    await env.settle()
    assert await counts(env) == (1, 1, 0, 0)


async def test_a_pod_on_its_way_out_is_not_healthy(env):
    await pods(env, 2)
    await env.budget("web", WEB, minAvailable=1)
    await env.delete(f"{PODS}/web-0")
    await env.settle()
    assert await counts(env) == (2, 1, 1, 0)


async def test_a_percentage_is_of_the_replicas_that_controllers_want(env):
    replica_set = await env.workload("replicasets", "web", 10)
    await pods(env, 4, controller=replica_set)
    await env.budget("web", WEB, minAvailable="25%")
    await env.settle()
    assert await counts(env) == (10, 3, 4, 1)


async def test_a_deployment_counts_in_place_of_its_replica_set(env):
    deployment = await env.workload("deployments", "web", 6)
    references = [env.owner(deployment, controller=True)]
    replica_set = await env.workload("replicasets", "web-abc", 2, ownerReferences=references)
    await pods(env, 5, controller=replica_set)
    await env.budget("web", WEB, maxUnavailable=2)
    await env.settle()
    assert await counts(env) == (6, 4, 5, 1)


async def test_a_stateful_set_counts(env):
    stateful_set = await env.workload("statefulsets", "web", 3)
    await pods(env, 3, controller=stateful_set)
    await env.budget("web", WEB, maxUnavailable=1)
    await env.settle()
    assert await counts(env) == (3, 2, 3, 1)


async def test_a_custom_controller_counts_by_its_scale(env):
    await env.definition(has_scale=True)
    fleet = await env.custom("fleet", spec={"replicas": 8})
    await pods(env, 5, controller=fleet)
    await env.budget("web", WEB, minAvailable="50%")
    await env.settle()
    assert await counts(env) == (8, 4, 5, 1)


async def test_a_custom_controller_without_scale_makes_the_budget_fail(env):
    await env.definition()
    fleet = await env.custom("fleet")
    await pods(env, 1, controller=fleet)
    await env.budget("web", WEB, minAvailable="50%")
    await env.settle()
    assert await failure(env) == (
        "False",
        "SyncFailed",
        "fleets.example.com does not implement the scale subresource",
    )


async def test_pods_without_a_controller_do_not_count_for_max_unavailable(env):
    await pods(env, 2)
    await env.budget("web", WEB, maxUnavailable=1)
    await env.settle()
    assert await counts(env) == (0, 0, 2, 0)


async def failure(env):
    [condition] = (await status(env))["conditions"]
    return condition["status"], condition["reason"], condition["message"]


async def test_a_controller_without_scale_makes_the_budget_fail(env):
    node = await env.node("n1", ready="True")
    await pods(env, 1, controller=node)
    await env.budget("web", WEB, maxUnavailable=1)
    await env.settle()
    assert await failure(env) == ("False", "SyncFailed", "nodes does not implement the scale subresource")
    assert (await status(env))["disruptionsAllowed"] == 0


async def test_a_controller_of_an_unknown_kind_makes_the_budget_fail(env):
    stranger = {"apiVersion": "example.com/v1", "kind": "Fleet", "metadata": {"name": "f", "uid": "f"}}
    await pods(env, 1, controller=stranger)
    await env.budget("web", WEB, maxUnavailable=1)
    await env.settle()
    assert await failure(env) == ("False", "SyncFailed", 'no matches for kind "Fleet" in version "example.com/v1"')


async def test_a_failed_budget_recovers(env):
    replica_set = await env.workload("replicasets", "web", 1)
    await env.delete("/apis/apps/v1/namespaces/default/replicasets/web", "Orphan")
    await env.settle()
    reference = env.owner(replica_set, controller=True)
    await env.server.controllers.stop()
    await env.server.controllers.start(["disruption-controller"])
    await env.pod("web-0", node="n1", ready=True, labels=WEB, ownerReferences=[reference])
    await env.budget("web", WEB, maxUnavailable=1)
    await env.settle()
    assert await failure(env) == ("False", "SyncFailed", 'found no controllers for pod "web-0"')
    await env.patch(f"{PODS}/web-0", {"metadata": {"ownerReferences": None}})
    await env.settle()
    assert await failure(env) == ("False", "InsufficientPods", "")


async def test_a_change_of_the_budget_is_observed(env):
    await pods(env, 3)
    await env.budget("web", WEB, minAvailable=3)
    await env.settle()
    await env.patch(BUDGET, {"spec": {"minAvailable": 1}})
    await env.settle()
    assert await counts(env) == (3, 1, 3, 2)
    assert (await status(env))["observedGeneration"] == 2


async def test_an_eviction_that_did_not_come_is_forgotten_after_two_minutes(env):
    await pods(env, 2)
    await env.budget("web", WEB, minAvailable=1)
    await env.settle()
    granted = {**await status(env), "disruptionsAllowed": 0, "disruptedPods": {"web-0": env.moment()}}
    await env.patch(f"{BUDGET}/status", {"status": granted})
    await env.settle()
    assert await counts(env) == (2, 1, 1, 0)
    await env.pass_time(119)
    assert "disruptedPods" in await status(env)
    await env.pass_time(2)
    assert "disruptedPods" not in await status(env)
    assert await counts(env) == (2, 1, 2, 1)


async def test_the_disruption_target_condition_is_removed_if_no_disruption_follows(env):
    await pods(env, 1)
    ready = {"type": "Ready", "status": "True"}
    told = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": env.moment(), "reason": "Somebody"}
    await env.patch(f"{PODS}/web-0/status", {"status": {"conditions": [ready, told]}})
    await env.pass_time(119)
    assert (await env.get(f"{PODS}/web-0"))["status"]["conditions"][1]["status"] == "True"
    await env.pass_time(2)
    assert (await env.get(f"{PODS}/web-0"))["status"]["conditions"][1]["status"] == "False"


async def test_a_status_that_stays_right_is_written_once(env):
    await pods(env, 2)
    await env.budget("web", WEB, minAvailable=1)
    await env.settle()
    before = (await env.get(BUDGET))["metadata"]["resourceVersion"]
    await env.patch(f"{PODS}/web-0", {"metadata": {"annotations": {"note": "new"}}})
    await env.settle()
    assert (await env.get(BUDGET))["metadata"]["resourceVersion"] == before


async def test_budgets_in_other_namespaces_are_not_concerned(env):
    await env.namespace("elsewhere")
    await pods(env, 2)
    await env.budget("web", WEB, "elsewhere", minAvailable=1)
    await env.settle()
    found = await env.get("/apis/policy/v1/namespaces/elsewhere/poddisruptionbudgets/web")
    assert found["status"]["expectedPods"] == 0
