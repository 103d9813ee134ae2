"""Requests of pods and capacity of nodes as the simulated scheduler counts them, by `kube.pod_requests`."""

from nodeyard.kube.quantity import MILLI, NANO
from nodeyard.kube.resource_list import Amounts, add
from nodeyard.sim.scheduler import amounts_of, requests_of


def test_a_pod_uses_its_requests_and_one_pod_slot():
    container = {"resources": {"requests": {"cpu": "500m", "memory": "1Ki"}}}
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [container, container]}, "status": {"phase": "Pending"}}
    assert requests_of(pod) == {"cpu": NANO, "memory": 2048 * NANO, "pods": NANO}


def test_a_pod_without_requests_uses_a_pod_slot():
    assert requests_of({"spec": {"containers": [{"name": "c"}]}}) == {"pods": NANO}


def test_a_sidecar_does_not_count_again_on_top_of_a_larger_init_container():
    sidecar = {"resources": {"requests": {"cpu": "500m"}}, "restartPolicy": "Always"}
    large = {"resources": {"requests": {"cpu": "3"}}}
    spec = {"containers": [{"resources": {"requests": {"cpu": "1"}}}], "initContainers": [sidecar, large]}
    assert requests_of({"spec": spec})["cpu"] == 3500 * MILLI


def test_a_node_has_whole_thousandths_of_cpu_and_whole_units_of_all_else():
    assert amounts_of({"cpu": "0.0001", "memory": "1Ki", "nvidia.com/gpu": "1500m"}) == {
        "cpu": MILLI,
        "memory": 1024 * NANO,
        "nvidia.com/gpu": 2 * NANO,
    }
    assert amounts_of(None) == {}


def test_added_requests_can_be_subtracted():
    total: Amounts = {}
    add(total, {"cpu": 3, "memory": 5})
    add(total, {"cpu": -3})
    assert total == {"cpu": 0, "memory": 5}
