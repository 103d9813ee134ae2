"""Two operators at once, failover, and a third party that writes to the same nodes."""

import threading
from dataclasses import replace

from tests.builders.node_history import History
from tests.builders.spares_env import labels, taints

from nodeyard.capabilities.spares import names
from nodeyard.testing.faults import HalfOpen
from nodeyard.testing.operators import SHORT
from nodeyard.testing.rest import RestError


def test_one_leads_and_the_other_takes_over_when_it_is_killed(spares_env, operator):
    first = operator("spares", identity="first").wait_until_leading()
    second = operator("spares", identity="second")
    spares_env.spares(4)
    web = spares_env.template("web", 2)
    spares_env.wait_for_owned(web, 2)
    assert (first.leads, second.leads) == (True, False)
    assert second.write_counts() == {}

    first.kill()
    spares_env.change(web, nodes=4)

    spares_env.wait_for_owned(web, 4)
    assert (first.leads, second.leads) == (False, True)


def test_a_leader_that_stops_gracefully_is_replaced_at_once(spares_env, operator, eventually):
    lease = replace(SHORT, duration=60)
    first = operator("spares", identity="first", lease=lease).wait_until_leading()
    second = operator("spares", identity="second", lease=lease)

    first.stop()

    eventually(lambda: second.leads, "the second leads", timeout=20)


def test_a_leader_killed_while_claiming_leaves_no_double_or_partial_claim(
    api, spares_env, faults, operator, eventually
):
    faults.add(HalfOpen(), method="PATCH", path="/nodes/", chance=0.5)
    spares_env.spares(40)
    asked = {spares_env.template("low", 12): 12, spares_env.template("high", 20, priority=5): 20}
    history = History(api)
    first = operator("spares", identity="first", through=faults.kubeconfig).wait_until_leading()
    second = operator("spares", identity="second")

    eventually(lambda: any(spares_env.owned(name) for name in asked), "the first has begun")
    first.kill()
    assert sum(len(spares_env.owned(name)) for name in asked) < 32

    for name, count in asked.items():
        for node in spares_env.wait_for_owned(name, count):
            assert labels(node)[names.role_label(name)] == "true"
            assert names.SPARE_TAINT not in taints(node)
    assert second.leads
    history.assert_sound(asked)


class Meddler(threading.Thread):
    """Repeatedly add, change and remove a foreign taint and label on every node."""

    def __init__(self, spares_env, nodes):
        super().__init__(daemon=True)
        self._spares_env = spares_env
        self._nodes = nodes
        self._enough = threading.Event()
        self.rounds = 0
        self.left = {}

    def run(self):
        while not self._enough.is_set():
            self.rounds += 1
            for number, name in enumerate(self._nodes):
                self._meddle(name, is_on=(self.rounds + number) % 3 != 0)

    def stop(self):
        self._enough.set()
        self.join()

    def _meddle(self, name, *, is_on):
        value = str(self.rounds)
        while True:
            node = self._spares_env.get_node(name)
            others = [each for each in node["spec"].get("taints", []) if each["key"] != "meddler"]
            own = [{"key": "meddler", "value": value, "effect": "NoSchedule"}] if is_on else []
            metadata = {
                "resourceVersion": node["metadata"]["resourceVersion"],
                "labels": {"meddler": value if is_on else None},
            }
            try:
                self._spares_env.patch(name, {"metadata": metadata, "spec": {"taints": [*others, *own]}})
            except RestError as error:
                if error.status != 409:
                    raise
            else:
                self.left[name] = value if is_on else None
                return


def test_concurrent_writers_to_the_same_nodes_lose_nothing(api, spares_env, operator, eventually):
    nodes = spares_env.spares(20)
    history = History(api)
    meddler = Meddler(spares_env, nodes)
    meddler.start()
    eventually(lambda: meddler.rounds > 1, "the other writer is at work")
    operator("spares")
    web = spares_env.template("web", 15)
    spares_env.wait_for_owned(web, 15)
    spares_env.change(web, nodes=20)
    spares_env.wait_for_owned(web, 20)
    rounds = meddler.rounds
    eventually(lambda: meddler.rounds > rounds + 1, "it goes on for a while")
    meddler.stop()

    for node in spares_env.owned(web):
        left = meddler.left[node["metadata"]["name"]]
        assert taints(node).get("meddler", (None,))[0] == left
        assert labels(node).get("meddler") == left
        assert taints(node)["team"] == ("web", "NoSchedule")
        assert names.SPARE_TAINT not in taints(node)
    history.assert_sound({web: 20})


def test_a_release_that_one_operator_began_is_ended_by_the_next(spares_env, operator, eventually):
    name = spares_env.spare("one")
    first = operator("spares", identity="first").wait_until_leading()
    web = spares_env.template("web", 1, releasePolicy="Release")
    spares_env.wait_for_owned(web, 1)
    spares_env.change(web, nodes=0)
    eventually(lambda: spares_env.get_node(name)["spec"].get("unschedulable"), "the node is cordoned")
    first.kill()

    operator("spares", identity="second")

    spares_env.wait_for_owned(web, 0, timeout=40)
    node = spares_env.get_node(name)
    assert not node["spec"].get("unschedulable")
    assert taints(node)[names.SPARE_TAINT] == ("true", "NoSchedule")
    assert not {names.RECORD, names.RELEASE} & node["metadata"]["annotations"].keys()
