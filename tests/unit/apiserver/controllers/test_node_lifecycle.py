"""Nodes that stop reporting, and the taints that follow from conditions."""

NODE = "/api/v1/nodes/n1"
PODS = "/api/v1/namespaces/default/pods"


async def conditions(env, name="n1"):
    node = await env.get(f"/api/v1/nodes/{name}")
    return {c["type"]: (c["status"], c.get("reason", "")) for c in node["status"].get("conditions", [])}


async def taints(env, name="n1"):
    node = await env.get(f"/api/v1/nodes/{name}")
    return {(t["key"].rpartition("/")[2], t["effect"]) for t in node["spec"].get("taints", [])}


async def live(env, name="n2", **metadata):
    """Create another healthy node, so that the cluster does not count as fully disrupted."""
    await env.node(name, ready="True", **metadata)


async def keep_alive(env, seconds, *names):
    """Let time pass while these nodes renew their leases."""
    for _ in range(int(seconds / 10)):
        for name in names:
            await env.renew_lease(name)
        await env.pass_time(10)


async def test_a_node_that_renews_its_lease_is_left_alone(env):
    await env.node("n1", ready="True")
    await env.settle()
    await keep_alive(env, 300, "n1")
    assert await conditions(env) == {"Ready": ("True", "")}
    assert await taints(env) == set()


async def test_a_node_that_posts_its_status_is_left_alone_without_a_lease(env):
    await env.node("n1", ready="True")
    for _ in range(6):
        await env.pass_time(40)
        await env.heartbeat("n1")
    assert await conditions(env) == {"Ready": ("True", "")}


async def test_fifty_seconds_after_its_last_lease_or_status_a_node_is_unknown(env):
    await env.node("n1", ready="True")
    await live(env)
    await env.heartbeat("n1", MemoryPressure="False", DiskPressure="False", PIDPressure="False")
    await keep_alive(env, 40, "n1", "n2")
    await env.renew_lease("n1")
    await keep_alive(env, 40, "n2")
    await env.renew_lease("n2")
    await env.pass_time(9.9)
    assert (await conditions(env))["Ready"] == ("True", "")
    await env.pass_time(0.1)
    lost = ("Unknown", "NodeStatusUnknown")
    assert await conditions(env) == {
        "Ready": lost,
        "MemoryPressure": lost,
        "DiskPressure": lost,
        "PIDPressure": lost,
    }
    [ready] = [c for c in (await env.get(NODE))["status"]["conditions"] if c["type"] == "Ready"]
    assert ready["message"] == "Kubelet stopped posting node status."
    assert ready["lastTransitionTime"] == env.moment()
    assert await taints(env) == {("unreachable", "NoSchedule")}
    await env.pass_time(0.1)
    assert await taints(env) == {("unreachable", "NoSchedule"), ("unreachable", "NoExecute")}
    assert (await conditions(env, "n2"))["Ready"] == ("True", "")


async def test_a_node_that_is_ready_again_loses_its_taints(env):
    await env.node("n1", ready="True")
    await live(env)
    await keep_alive(env, 60, "n2")
    assert await taints(env)
    await env.heartbeat("n1")
    await env.settle()
    assert await taints(env) == set()


async def test_conditions_the_kubelet_never_posted_are_filled_in(env):
    await env.node("n1", ready="True")
    await live(env)
    await keep_alive(env, 60, "n2")
    assert (await conditions(env))["DiskPressure"] == ("Unknown", "NodeStatusNeverUpdated")


async def test_a_node_without_lease_and_status_has_a_minute_to_start(env):
    await live(env)
    created = await env.node("n1")
    await keep_alive(env, 50, "n2")
    await env.pass_time(9)
    assert await conditions(env) == {}
    await env.pass_time(1)
    [ready] = [c for c in (await env.get(NODE))["status"]["conditions"] if c["type"] == "Ready"]
    assert (ready["status"], ready["reason"]) == ("Unknown", "NodeStatusNeverUpdated")
    assert ready["message"] == "Kubelet never posted node status."
    assert ready["lastHeartbeatTime"] == created["metadata"]["creationTimestamp"]


async def test_a_node_with_a_lease_and_no_status_is_given_time(env):
    await env.node("n1")
    await keep_alive(env, 120, "n1")
    assert await conditions(env) == {}


async def test_a_node_that_says_it_is_not_ready_is_tainted_so(env):
    await live(env)
    await env.node("n1", ready="False")
    await env.pass_time(1)
    assert await taints(env) == {("not-ready", "NoSchedule"), ("not-ready", "NoExecute")}
    await keep_alive(env, 60, "n2")
    assert await taints(env) == {("unreachable", "NoSchedule"), ("unreachable", "NoExecute")}


async def test_a_new_node_without_status_loses_the_taint_it_was_created_with(env):
    await env.node("n1")
    await env.settle()
    assert await taints(env) == set()


async def test_pressure_and_cordon_are_taints(env):
    await env.node("n1", ready="True")
    await env.heartbeat("n1", MemoryPressure="True", DiskPressure="True", PIDPressure="True")
    await env.patch(NODE, {"spec": {"unschedulable": True}})
    await env.settle()
    assert await taints(env) == {
        ("memory-pressure", "NoSchedule"),
        ("disk-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    }
    await env.heartbeat("n1")
    await env.patch(NODE, {"spec": {"unschedulable": None}})
    await env.settle()
    assert await taints(env) == set()


async def test_taints_of_others_are_kept(env):
    await env.node("n1", ready="True")
    mine = {"key": "example.com/mine", "value": "v", "effect": "NoSchedule"}
    await env.patch(NODE, {"spec": {"taints": [mine], "unschedulable": True}})
    await env.settle()
    assert (await env.get(NODE))["spec"]["taints"][0] == mine
    await env.patch(NODE, {"spec": {"unschedulable": None}})
    await env.settle()
    assert (await env.get(NODE))["spec"]["taints"] == [mine]


async def test_when_all_nodes_are_lost_no_pod_is_evicted(env):
    await env.node("n1", ready="True")
    await env.node("n2", ready="True")
    await env.pass_time(60)
    for name in ("n1", "n2"):
        assert (await conditions(env, name))["Ready"] == ("Unknown", "NodeStatusUnknown")
        assert await taints(env, name) == {("unreachable", "NoSchedule")}


async def test_when_the_last_node_is_lost_the_evicting_taints_are_removed(env):
    await env.node("n1", ready="True")
    await live(env)
    await keep_alive(env, 60, "n2")
    assert ("unreachable", "NoExecute") in await taints(env)
    await env.pass_time(60)
    assert await taints(env) == {("unreachable", "NoSchedule")}
    await env.heartbeat("n2")
    await env.pass_time(15)
    assert await taints(env) == {("unreachable", "NoSchedule"), ("unreachable", "NoExecute")}


async def test_lost_nodes_of_a_healthy_zone_are_emptied_one_in_ten_seconds(env):
    for number in range(6):
        await env.node(f"n{number}", ready="True")
    others = [f"n{number}" for number in range(3, 6)]
    await keep_alive(env, 50, *others)
    driven = []
    for _ in range(3):
        await env.pass_time(1)
        driven.append(sum([("unreachable", "NoExecute") in await taints(env, f"n{n}") for n in range(3)]))
        await keep_alive(env, 10, *others)
    assert driven == [1, 2, 3]


async def test_the_pods_of_a_lost_node_are_not_ready(env):
    await env.node("n1", ready="True")
    await live(env)
    await env.pod("here", node="n1", ready=True)
    await env.pod("there", node="n2", ready=True)
    await keep_alive(env, 60, "n2")
    [ready] = (await env.get(f"{PODS}/here"))["status"]["conditions"][:1]
    assert (ready["type"], ready["status"]) == ("Ready", "False")
    [ready] = (await env.get(f"{PODS}/there"))["status"]["conditions"][:1]
    assert (ready["type"], ready["status"]) == ("Ready", "True")


async def test_the_old_names_of_labels_follow_the_new_ones(env):
    await env.node("n1", ready="True", labels={"kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64"})
    await env.settle()
    labels = (await env.get(NODE))["metadata"]["labels"]
    assert labels["beta.kubernetes.io/os"] == "linux"
    assert labels["beta.kubernetes.io/arch"] == "arm64"


async def test_a_recreated_node_starts_anew(env):
    await live(env)
    await env.node("n1", ready="True")
    await keep_alive(env, 40, "n2")
    await env.delete(NODE)
    await env.settle()
    await env.node("n1", ready="True")
    await keep_alive(env, 40, "n2")
    assert (await conditions(env))["Ready"] == ("True", "")


async def test_a_switched_off_controller_does_nothing(idle_env):
    await idle_env.server.controllers.start(["*", "-node-lifecycle-controller"])
    await idle_env.node("n1", ready="True")
    await idle_env.pass_time(600)
    assert (await conditions(idle_env))["Ready"] == ("True", "")
