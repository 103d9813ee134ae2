"""What a pod asks for, as schedulers count it."""

from nodeyard.sim import requests


def container(cpu, **more):
    return {"resources": {"requests": {"cpu": cpu}}, **more}


def asks(**spec):
    return requests.of_pod({"spec": spec})


def test_containers_add_up_and_a_pod_is_one_pod():
    assert asks(containers=[container("500m"), container("1")]) == {"pods": 1, "cpu": 1500}


def test_the_largest_init_container_counts_where_it_is_more():
    assert asks(containers=[container("1")], initContainers=[container("3"), container("2")])["cpu"] == 3000
    assert asks(containers=[container("4")], initContainers=[container("3")])["cpu"] == 4000


def test_sidecars_run_beside_the_containers():
    sidecar = container("500m", restartPolicy="Always")
    assert asks(containers=[container("1")], initContainers=[sidecar])["cpu"] == 1500


def test_overhead_is_added():
    assert asks(containers=[container("1")], overhead={"cpu": "250m"})["cpu"] == 1250


def test_amounts_are_thousandths_of_cpu_and_units_of_all_else():
    assert requests.amounts({"cpu": "0.1", "memory": "1Ki", "nvidia.com/gpu": "2"}) == {
        "cpu": 100,
        "memory": 1024,
        "nvidia.com/gpu": 2,
    }
