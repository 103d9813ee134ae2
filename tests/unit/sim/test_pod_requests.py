"""What plain pods and nodes come to, as schedulers count; the rules are those of `kube.pod_requests`."""

from nodeyard.kube.quantity import MILLI, NANO
from nodeyard.kube.resource_list import Amounts
from nodeyard.sim import pod_requests


def test_a_pod_asks_for_what_it_requests_and_for_one_place():
    container = {"resources": {"requests": {"cpu": "500m", "memory": "1Ki"}}}
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [container, container]}, "status": {"phase": "Pending"}}
    assert pod_requests.of_pod(pod) == {"cpu": NANO, "memory": 2048 * NANO, "pods": NANO}


def test_a_pod_that_requests_nothing_takes_a_place_all_the_same():
    assert pod_requests.of_pod({"spec": {"containers": [{"name": "c"}]}}) == {"pods": NANO}


def test_a_sidecar_does_not_count_again_on_top_of_a_larger_init_container():
    sidecar = {"resources": {"requests": {"cpu": "500m"}}, "restartPolicy": "Always"}
    large = {"resources": {"requests": {"cpu": "3"}}}
    spec = {"containers": [{"resources": {"requests": {"cpu": "1"}}}], "initContainers": [sidecar, large]}
    assert pod_requests.of_pod({"spec": spec})["cpu"] == 3500 * MILLI


def test_a_node_has_whole_thousandths_of_cpu_and_whole_units_of_all_else():
    assert pod_requests.amounts({"cpu": "0.0001", "memory": "1Ki", "nvidia.com/gpu": "1500m"}) == {
        "cpu": MILLI,
        "memory": 1024 * NANO,
        "nvidia.com/gpu": 2 * NANO,
    }
    assert pod_requests.amounts(None) == {}


def test_what_is_added_can_be_taken_away():
    total: Amounts = {}
    pod_requests.add(total, {"cpu": 3, "memory": 5})
    pod_requests.add(total, {"cpu": 3}, sign=-1)
    assert total == {"cpu": 0, "memory": 5}
