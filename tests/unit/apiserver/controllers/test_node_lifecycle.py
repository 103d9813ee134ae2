"""Nodes that fall silent, and the taints that follow from conditions."""

NODE = "/api/v1/nodes/n1"
PODS = "/api/v1/namespaces/default/pods"


async def conditions(yard, name="n1"):
    node = await yard.get(f"/api/v1/nodes/{name}")
    return {c["type"]: (c["status"], c.get("reason", "")) for c in node["status"].get("conditions", [])}


async def taints(yard, name="n1"):
    node = await yard.get(f"/api/v1/nodes/{name}")
    return {(t["key"].rpartition("/")[2], t["effect"]) for t in node["spec"].get("taints", [])}


async def live(yard, name="n2", **metadata):
    """Another node, so that the cluster is not cut off."""
    await yard.node(name, ready="True", **metadata)


async def keep_alive(yard, seconds, *names):
    """Let time pass while these nodes renew their leases."""
    for _ in range(int(seconds / 10)):
        for name in names:
            await yard.renew_lease(name)
        await yard.pass_time(10)


async def test_a_node_that_renews_its_lease_is_left_alone(yard):
    await yard.node("n1", ready="True")
    await yard.settle()
    await keep_alive(yard, 300, "n1")
    assert await conditions(yard) == {"Ready": ("True", "")}
    assert await taints(yard) == set()


async def test_a_node_that_posts_its_status_is_left_alone_without_a_lease(yard):
    await yard.node("n1", ready="True")
    for _ in range(6):
        await yard.pass_time(40)
        await yard.heartbeat("n1")
    assert await conditions(yard) == {"Ready": ("True", "")}


async def test_fifty_seconds_after_its_last_lease_or_status_a_node_is_unknown(yard):
    await yard.node("n1", ready="True")
    await live(yard)
    await yard.heartbeat("n1", MemoryPressure="False", DiskPressure="False", PIDPressure="False")
    await keep_alive(yard, 40, "n1", "n2")
    await yard.renew_lease("n1")
    await keep_alive(yard, 40, "n2")
    await yard.renew_lease("n2")
    await yard.pass_time(9.9)
    assert (await conditions(yard))["Ready"] == ("True", "")
    await yard.pass_time(0.1)
    lost = ("Unknown", "NodeStatusUnknown")
    assert await conditions(yard) == {
        "Ready": lost,
        "MemoryPressure": lost,
        "DiskPressure": lost,
        "PIDPressure": lost,
    }
    [ready] = [c for c in (await yard.get(NODE))["status"]["conditions"] if c["type"] == "Ready"]
    assert ready["message"] == "Kubelet stopped posting node status."
    assert ready["lastTransitionTime"] == yard.moment()
    assert await taints(yard) == {("unreachable", "NoSchedule")}
    await yard.pass_time(0.1)
    assert await taints(yard) == {("unreachable", "NoSchedule"), ("unreachable", "NoExecute")}
    assert (await conditions(yard, "n2"))["Ready"] == ("True", "")


async def test_a_node_that_comes_back_loses_its_taints(yard):
    await yard.node("n1", ready="True")
    await live(yard)
    await keep_alive(yard, 60, "n2")
    assert await taints(yard)
    await yard.heartbeat("n1")
    await yard.settle()
    assert await taints(yard) == set()


async def test_conditions_the_kubelet_never_posted_are_filled_in(yard):
    await yard.node("n1", ready="True")
    await live(yard)
    await keep_alive(yard, 60, "n2")
    assert (await conditions(yard))["DiskPressure"] == ("Unknown", "NodeStatusNeverUpdated")


async def test_a_node_without_lease_and_status_has_a_minute_to_start(yard):
    await live(yard)
    created = await yard.node("n1")
    await keep_alive(yard, 50, "n2")
    await yard.pass_time(9)
    assert await conditions(yard) == {}
    await yard.pass_time(1)
    [ready] = [c for c in (await yard.get(NODE))["status"]["conditions"] if c["type"] == "Ready"]
    assert (ready["status"], ready["reason"]) == ("Unknown", "NodeStatusNeverUpdated")
    assert ready["message"] == "Kubelet never posted node status."
    assert ready["lastHeartbeatTime"] == created["metadata"]["creationTimestamp"]


async def test_a_node_with_a_lease_and_no_status_is_given_time(yard):
    await yard.node("n1")
    await keep_alive(yard, 120, "n1")
    assert await conditions(yard) == {}


async def test_a_node_that_says_it_is_not_ready_is_tainted_so(yard):
    await live(yard)
    await yard.node("n1", ready="False")
    await yard.pass_time(1)
    assert await taints(yard) == {("not-ready", "NoSchedule"), ("not-ready", "NoExecute")}
    await keep_alive(yard, 60, "n2")
    assert await taints(yard) == {("unreachable", "NoSchedule"), ("unreachable", "NoExecute")}


async def test_a_new_node_without_status_loses_the_taint_it_was_created_with(yard):
    await yard.node("n1")
    await yard.settle()
    assert await taints(yard) == set()


async def test_pressure_and_cordon_are_taints(yard):
    await yard.node("n1", ready="True")
    await yard.heartbeat("n1", MemoryPressure="True", DiskPressure="True", PIDPressure="True")
    await yard.patch(NODE, {"spec": {"unschedulable": True}})
    await yard.settle()
    assert await taints(yard) == {
        ("memory-pressure", "NoSchedule"),
        ("disk-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    }
    await yard.heartbeat("n1")
    await yard.patch(NODE, {"spec": {"unschedulable": None}})
    await yard.settle()
    assert await taints(yard) == set()


async def test_taints_of_others_are_kept(yard):
    await yard.node("n1", ready="True")
    mine = {"key": "example.com/mine", "value": "v", "effect": "NoSchedule"}
    await yard.patch(NODE, {"spec": {"taints": [mine], "unschedulable": True}})
    await yard.settle()
    assert (await yard.get(NODE))["spec"]["taints"][0] == mine
    await yard.patch(NODE, {"spec": {"unschedulable": None}})
    await yard.settle()
    assert (await yard.get(NODE))["spec"]["taints"] == [mine]


async def test_when_all_nodes_are_lost_no_pod_is_evicted(yard):
    await yard.node("n1", ready="True")
    await yard.node("n2", ready="True")
    await yard.pass_time(60)
    for name in ("n1", "n2"):
        assert (await conditions(yard, name))["Ready"] == ("Unknown", "NodeStatusUnknown")
        assert await taints(yard, name) == {("unreachable", "NoSchedule")}


async def test_when_the_last_node_is_lost_the_evicting_taints_are_removed(yard):
    await yard.node("n1", ready="True")
    await live(yard)
    await keep_alive(yard, 60, "n2")
    assert ("unreachable", "NoExecute") in await taints(yard)
    await yard.pass_time(60)
    assert await taints(yard) == {("unreachable", "NoSchedule")}
    await yard.heartbeat("n2")
    await yard.pass_time(15)
    assert await taints(yard) == {("unreachable", "NoSchedule"), ("unreachable", "NoExecute")}


async def test_lost_nodes_of_a_healthy_zone_are_emptied_one_in_ten_seconds(yard):
    for number in range(6):
        await yard.node(f"n{number}", ready="True")
    others = [f"n{number}" for number in range(3, 6)]
    await keep_alive(yard, 50, *others)
    driven = []
    for _ in range(3):
        await yard.pass_time(1)
        driven.append(sum([("unreachable", "NoExecute") in await taints(yard, f"n{n}") for n in range(3)]))
        await keep_alive(yard, 10, *others)
    assert driven == [1, 2, 3]


async def test_the_pods_of_a_lost_node_are_not_ready(yard):
    await yard.node("n1", ready="True")
    await live(yard)
    await yard.pod("here", node="n1", ready=True)
    await yard.pod("there", node="n2", ready=True)
    await keep_alive(yard, 60, "n2")
    [ready] = (await yard.get(f"{PODS}/here"))["status"]["conditions"][:1]
    assert (ready["type"], ready["status"]) == ("Ready", "False")
    [ready] = (await yard.get(f"{PODS}/there"))["status"]["conditions"][:1]
    assert (ready["type"], ready["status"]) == ("Ready", "True")


async def test_the_old_names_of_labels_follow_the_new_ones(yard):
    await yard.node("n1", ready="True", labels={"kubernetes.io/os": "linux", "kubernetes.io/arch": "arm64"})
    await yard.settle()
    labels = (await yard.get(NODE))["metadata"]["labels"]
    assert labels["beta.kubernetes.io/os"] == "linux"
    assert labels["beta.kubernetes.io/arch"] == "arm64"


async def test_a_recreated_node_starts_anew(yard):
    await live(yard)
    await yard.node("n1", ready="True")
    await keep_alive(yard, 40, "n2")
    await yard.delete(NODE)
    await yard.settle()
    await yard.node("n1", ready="True")
    await keep_alive(yard, 40, "n2")
    assert (await conditions(yard))["Ready"] == ("True", "")


async def test_a_switched_off_controller_does_nothing(idle_yard):
    await idle_yard.server.controllers.start(["*", "-node-lifecycle-controller"])
    await idle_yard.node("n1", ready="True")
    await idle_yard.pass_time(600)
    assert (await conditions(idle_yard))["Ready"] == ("True", "")
