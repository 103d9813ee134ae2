"""Pods that do not tolerate a NoExecute taint."""

PODS = "/api/v1/namespaces/default/pods"
NODE = "/api/v1/nodes/n1"
TAINT = {"key": "example.com/out", "effect": "NoExecute"}


async def taint(env, *taints):
    await env.patch(NODE, {"spec": {"taints": list(taints) or None}})
    await env.settle()


async def is_leaving(env, name):
    pod = await env.get(f"{PODS}/{name}")
    return pod is None or "deletionTimestamp" in pod["metadata"]


async def pod(env, name, node="n1", **toleration):
    spec = {}
    if toleration:
        spec["tolerations"] = [{"key": TAINT["key"], "operator": "Exists", "effect": "NoExecute", **toleration}]
    return await env.pod(name, node=node, ready=True, spec=spec)


async def test_a_pod_that_does_not_tolerate_the_taint_is_deleted_with_the_reason_in_its_status(env):
    await env.node("n1", ready="True")
    await pod(env, "intolerant")
    await pod(env, "elsewhere", node="n2")
    await taint(env, TAINT)
    found = await env.get(f"{PODS}/intolerant")
    assert found["metadata"]["deletionTimestamp"]
    [told] = [c for c in found["status"]["conditions"] if c["type"] == "DisruptionTarget"]
    assert told["status"] == "True"
    assert told["reason"] == "DeletionByTaintManager"
    assert told["message"] == "Taint manager: deleting due to NoExecute taint"
    assert not await is_leaving(env, "elsewhere")


async def test_a_pod_that_tolerates_it_stays(env):
    await env.node("n1", ready="True")
    await pod(env, "tolerant", tolerationSeconds=None)
    await taint(env, TAINT)
    await env.pass_time(3600)
    assert not await is_leaving(env, "tolerant")


async def test_a_pod_that_tolerates_it_for_a_time_stays_that_long(env):
    await env.node("n1", ready="True")
    await pod(env, "patient", tolerationSeconds=30)
    await taint(env, TAINT)
    await env.pass_time(29)
    assert not await is_leaving(env, "patient")
    await env.pass_time(1)
    assert await is_leaving(env, "patient")


async def test_a_taint_removed_in_time_evicts_no_pod(env):
    await env.node("n1", ready="True")
    await pod(env, "patient", tolerationSeconds=30)
    await taint(env, TAINT)
    await env.pass_time(29)
    await taint(env)
    await env.pass_time(60)
    assert not await is_leaving(env, "patient")
    await taint(env, TAINT)
    await env.pass_time(29)
    assert not await is_leaving(env, "patient")
    await env.pass_time(1)
    assert await is_leaving(env, "patient")


async def test_a_change_of_the_pod_does_not_extend_its_time(env):
    await env.node("n1", ready="True")
    await pod(env, "patient", tolerationSeconds=30)
    await taint(env, TAINT)
    await env.pass_time(20)
    await env.patch(f"{PODS}/patient", {"metadata": {"annotations": {"note": "new"}}})
    await env.pass_time(10)
    assert await is_leaving(env, "patient")


async def test_a_pod_that_is_bound_to_a_tainted_node_is_checked_too(env):
    await env.node("n1", ready="True")
    await taint(env, TAINT)
    await pod(env, "late")
    await env.settle()
    assert await is_leaving(env, "late")


async def test_taints_without_no_execute_evict_no_pod(env):
    await env.node("n1", ready="True")
    await pod(env, "intolerant")
    await taint(env, {**TAINT, "effect": "NoSchedule"})
    await env.pass_time(600)
    assert not await is_leaving(env, "intolerant")


async def test_pods_leave_an_unreachable_node_after_five_minutes(env):
    await env.node("n1", ready="True")
    await env.node("n2", ready="True")
    await pod(env, "stranded")
    for _ in range(34):
        await env.heartbeat("n2")
        await env.pass_time(10)
    assert not await is_leaving(env, "stranded")
    for _ in range(2):
        await env.heartbeat("n2")
        await env.pass_time(10)
    assert await is_leaving(env, "stranded")
