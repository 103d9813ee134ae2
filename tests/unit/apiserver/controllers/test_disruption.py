"""The status of PodDisruptionBudgets, kept by the controller."""

BUDGET = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/web"
PODS = "/api/v1/namespaces/default/pods"
WEB = {"app": "web"}


async def status(yard):
    return (await yard.get(BUDGET))["status"]


async def counts(yard):
    found = await status(yard)
    return tuple(found[name] for name in ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed"))


async def pods(yard, count, *, ready=True, controller=None):
    metadata = {"labels": WEB}
    if controller is not None:
        metadata["ownerReferences"] = [yard.owner(controller, controller=True)]
    for number in range(count):
        await yard.pod(f"web-{number}", node="n1", ready=ready, **metadata)


async def test_a_budget_counts_the_pods_it_selects(yard):
    await pods(yard, 3)
    await yard.pod("other", node="n1", ready=True, labels={"app": "other"})
    await yard.budget("web", WEB, minAvailable=2)
    await yard.settle()
    assert await counts(yard) == (3, 2, 3, 1)
    found = await status(yard)
    assert found["observedGeneration"] == 1
    [condition] = found["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "DisruptionAllowed",
        "True",
        "SufficientPods",
    )


async def test_the_count_follows_the_pods(yard):
    await yard.budget("web", WEB, minAvailable=1)
    await yard.settle()
    assert await counts(yard) == (0, 1, 0, 0)
    await pods(yard, 2)
    await yard.settle()
    assert await counts(yard) == (2, 1, 2, 1)
    await yard.set_ready("web-0", ready=False)
    await yard.settle()
    assert await counts(yard) == (2, 1, 1, 0)
    await yard.patch(f"{PODS}/web-1", {"metadata": {"labels": {"app": "other"}}})
    await yard.settle()
    assert await counts(yard) == (1, 1, 0, 0)


async def test_a_pod_on_its_way_out_is_not_healthy(yard):
    await pods(yard, 2)
    await yard.budget("web", WEB, minAvailable=1)
    await yard.delete(f"{PODS}/web-0")
    await yard.settle()
    assert await counts(yard) == (2, 1, 1, 0)


async def test_a_share_is_taken_of_what_the_controllers_want(yard):
    replica_set = await yard.workload("replicasets", "web", 10)
    await pods(yard, 4, controller=replica_set)
    await yard.budget("web", WEB, minAvailable="25%")
    await yard.settle()
    assert await counts(yard) == (10, 3, 4, 1)


async def test_a_deployment_counts_in_place_of_its_replica_set(yard):
    deployment = await yard.workload("deployments", "web", 6)
    references = [yard.owner(deployment, controller=True)]
    replica_set = await yard.workload("replicasets", "web-abc", 2, ownerReferences=references)
    await pods(yard, 5, controller=replica_set)
    await yard.budget("web", WEB, maxUnavailable=2)
    await yard.settle()
    assert await counts(yard) == (6, 4, 5, 1)


async def test_a_stateful_set_counts(yard):
    stateful_set = await yard.workload("statefulsets", "web", 3)
    await pods(yard, 3, controller=stateful_set)
    await yard.budget("web", WEB, maxUnavailable=1)
    await yard.settle()
    assert await counts(yard) == (3, 2, 3, 1)


async def test_a_custom_controller_counts_by_its_scale(yard):
    await yard.definition(has_scale=True)
    fleet = await yard.custom("fleet", spec={"replicas": 8})
    await pods(yard, 5, controller=fleet)
    await yard.budget("web", WEB, minAvailable="50%")
    await yard.settle()
    assert await counts(yard) == (8, 4, 5, 1)


async def test_a_custom_controller_without_scale_makes_the_budget_fail(yard):
    await yard.definition()
    fleet = await yard.custom("fleet")
    await pods(yard, 1, controller=fleet)
    await yard.budget("web", WEB, minAvailable="50%")
    await yard.settle()
    assert await failure(yard) == (
        "False",
        "SyncFailed",
        "fleets.example.com does not implement the scale subresource",
    )


async def test_pods_without_a_controller_do_not_count_for_max_unavailable(yard):
    await pods(yard, 2)
    await yard.budget("web", WEB, maxUnavailable=1)
    await yard.settle()
    assert await counts(yard) == (0, 0, 2, 0)


async def failure(yard):
    [condition] = (await status(yard))["conditions"]
    return condition["status"], condition["reason"], condition["message"]


async def test_a_controller_without_scale_makes_the_budget_fail(yard):
    node = await yard.node("n1", ready="True")
    await pods(yard, 1, controller=node)
    await yard.budget("web", WEB, maxUnavailable=1)
    await yard.settle()
    assert await failure(yard) == ("False", "SyncFailed", "nodes does not implement the scale subresource")
    assert (await status(yard))["disruptionsAllowed"] == 0


async def test_a_controller_of_an_unknown_kind_makes_the_budget_fail(yard):
    stranger = {"apiVersion": "example.com/v1", "kind": "Fleet", "metadata": {"name": "f", "uid": "f"}}
    await pods(yard, 1, controller=stranger)
    await yard.budget("web", WEB, maxUnavailable=1)
    await yard.settle()
    assert await failure(yard) == ("False", "SyncFailed", 'no matches for kind "Fleet" in version "example.com/v1"')


async def test_a_failed_budget_recovers(yard):
    replica_set = await yard.workload("replicasets", "web", 1)
    await yard.delete("/apis/apps/v1/namespaces/default/replicasets/web", "Orphan")
    await yard.settle()
    reference = yard.owner(replica_set, controller=True)
    await yard.server.controllers.stop()
    await yard.server.controllers.start(["disruption-controller"])
    await yard.pod("web-0", node="n1", ready=True, labels=WEB, ownerReferences=[reference])
    await yard.budget("web", WEB, maxUnavailable=1)
    await yard.settle()
    assert await failure(yard) == ("False", "SyncFailed", 'found no controllers for pod "web-0"')
    await yard.patch(f"{PODS}/web-0", {"metadata": {"ownerReferences": None}})
    await yard.settle()
    assert await failure(yard) == ("False", "InsufficientPods", "")


async def test_a_change_of_the_budget_is_observed(yard):
    await pods(yard, 3)
    await yard.budget("web", WEB, minAvailable=3)
    await yard.settle()
    await yard.patch(BUDGET, {"spec": {"minAvailable": 1}})
    await yard.settle()
    assert await counts(yard) == (3, 1, 3, 2)
    assert (await status(yard))["observedGeneration"] == 2


async def test_an_eviction_that_did_not_come_is_forgotten_after_two_minutes(yard):
    await pods(yard, 2)
    await yard.budget("web", WEB, minAvailable=1)
    await yard.settle()
    granted = {**await status(yard), "disruptionsAllowed": 0, "disruptedPods": {"web-0": yard.moment()}}
    await yard.patch(f"{BUDGET}/status", {"status": granted})
    await yard.settle()
    assert await counts(yard) == (2, 1, 1, 0)
    await yard.pass_time(119)
    assert "disruptedPods" in await status(yard)
    await yard.pass_time(2)
    assert "disruptedPods" not in await status(yard)
    assert await counts(yard) == (2, 1, 2, 1)


async def test_a_pod_marked_for_a_disruption_that_did_not_come_loses_the_mark(yard):
    await pods(yard, 1)
    ready = {"type": "Ready", "status": "True"}
    told = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": yard.moment(), "reason": "Somebody"}
    await yard.patch(f"{PODS}/web-0/status", {"status": {"conditions": [ready, told]}})
    await yard.pass_time(119)
    assert (await yard.get(f"{PODS}/web-0"))["status"]["conditions"][1]["status"] == "True"
    await yard.pass_time(2)
    assert (await yard.get(f"{PODS}/web-0"))["status"]["conditions"][1]["status"] == "False"


async def test_a_status_that_stays_right_is_written_once(yard):
    await pods(yard, 2)
    await yard.budget("web", WEB, minAvailable=1)
    await yard.settle()
    before = (await yard.get(BUDGET))["metadata"]["resourceVersion"]
    await yard.patch(f"{PODS}/web-0", {"metadata": {"annotations": {"note": "new"}}})
    await yard.settle()
    assert (await yard.get(BUDGET))["metadata"]["resourceVersion"] == before


async def test_budgets_in_other_namespaces_are_not_concerned(yard):
    await yard.namespace("elsewhere")
    await pods(yard, 2)
    await yard.budget("web", WEB, "elsewhere", minAvailable=1)
    await yard.settle()
    found = await yard.get("/apis/policy/v1/namespaces/elsewhere/poddisruptionbudgets/web")
    assert found["status"]["expectedPods"] == 0
