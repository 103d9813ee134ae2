"""Pods that do not tolerate a NoExecute taint."""

PODS = "/api/v1/namespaces/default/pods"
NODE = "/api/v1/nodes/n1"
TAINT = {"key": "example.com/out", "effect": "NoExecute"}


async def taint(yard, *taints):
    await yard.patch(NODE, {"spec": {"taints": list(taints) or None}})
    await yard.settle()


async def is_leaving(yard, name):
    pod = await yard.get(f"{PODS}/{name}")
    return pod is None or "deletionTimestamp" in pod["metadata"]


async def pod(yard, name, node="n1", **toleration):
    spec = {}
    if toleration:
        spec["tolerations"] = [{"key": TAINT["key"], "operator": "Exists", "effect": "NoExecute", **toleration}]
    return await yard.pod(name, node=node, ready=True, spec=spec)


async def test_a_pod_that_does_not_tolerate_the_taint_is_deleted_with_the_reason_in_its_status(yard):
    await yard.node("n1", ready="True")
    await pod(yard, "intolerant")
    await pod(yard, "elsewhere", node="n2")
    await taint(yard, TAINT)
    found = await yard.get(f"{PODS}/intolerant")
    assert found["metadata"]["deletionTimestamp"]
    [told] = [c for c in found["status"]["conditions"] if c["type"] == "DisruptionTarget"]
    assert told["status"] == "True"
    assert told["reason"] == "DeletionByTaintManager"
    assert told["message"] == "Taint manager: deleting due to NoExecute taint"
    assert not await is_leaving(yard, "elsewhere")


async def test_a_pod_that_tolerates_it_stays(yard):
    await yard.node("n1", ready="True")
    await pod(yard, "tolerant", tolerationSeconds=None)
    await taint(yard, TAINT)
    await yard.pass_time(3600)
    assert not await is_leaving(yard, "tolerant")


async def test_a_pod_that_tolerates_it_for_a_time_stays_that_long(yard):
    await yard.node("n1", ready="True")
    await pod(yard, "patient", tolerationSeconds=30)
    await taint(yard, TAINT)
    await yard.pass_time(29)
    assert not await is_leaving(yard, "patient")
    await yard.pass_time(1)
    assert await is_leaving(yard, "patient")


async def test_a_taint_that_is_taken_away_in_time_does_no_harm(yard):
    await yard.node("n1", ready="True")
    await pod(yard, "patient", tolerationSeconds=30)
    await taint(yard, TAINT)
    await yard.pass_time(29)
    await taint(yard)
    await yard.pass_time(60)
    assert not await is_leaving(yard, "patient")
    await taint(yard, TAINT)
    await yard.pass_time(29)
    assert not await is_leaving(yard, "patient")
    await yard.pass_time(1)
    assert await is_leaving(yard, "patient")


async def test_a_change_of_the_pod_does_not_extend_its_time(yard):
    await yard.node("n1", ready="True")
    await pod(yard, "patient", tolerationSeconds=30)
    await taint(yard, TAINT)
    await yard.pass_time(20)
    await yard.patch(f"{PODS}/patient", {"metadata": {"annotations": {"note": "new"}}})
    await yard.pass_time(10)
    assert await is_leaving(yard, "patient")


async def test_a_pod_that_is_bound_to_a_tainted_node_is_checked_too(yard):
    await yard.node("n1", ready="True")
    await taint(yard, TAINT)
    await pod(yard, "late")
    await yard.settle()
    assert await is_leaving(yard, "late")


async def test_taints_that_only_keep_new_pods_away_delete_nothing(yard):
    await yard.node("n1", ready="True")
    await pod(yard, "intolerant")
    await taint(yard, {**TAINT, "effect": "NoSchedule"})
    await yard.pass_time(600)
    assert not await is_leaving(yard, "intolerant")


async def test_pods_leave_an_unreachable_node_after_five_minutes(yard):
    await yard.node("n1", ready="True")
    await yard.node("n2", ready="True")
    await pod(yard, "stranded")
    for _ in range(34):
        await yard.heartbeat("n2")
        await yard.pass_time(10)
    assert not await is_leaving(yard, "stranded")
    for _ in range(2):
        await yard.heartbeat("n2")
        await yard.pass_time(10)
    assert await is_leaving(yard, "stranded")
