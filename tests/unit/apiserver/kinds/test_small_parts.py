"""Classes of service, schedules and addresses."""

from __future__ import annotations

import pytest

from nodeyard.apiserver.kinds.pod.defaults import pull_policy
from nodeyard.apiserver.kinds.pod.strategy import qos_class
from nodeyard.apiserver.kinds.service import allocate_addresses
from nodeyard.apiserver.kinds.workloads.cron_schedule import is_time_zone, schedule_fault

from .builders import service

ALL = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        ([{}], "BestEffort"),
        ([{"limits": ALL}], "Guaranteed"),
        ([{"limits": ALL, "requests": {"cpu": "1000m", "memory": "1024Mi"}}], "Guaranteed"),
        ([{"limits": ALL}, {}], "Burstable"),
        ([{"limits": ALL, "requests": {"cpu": "500m"}}], "Burstable"),
        ([{"requests": {"cpu": "0"}}], "BestEffort"),
        ([{"limits": {"cpu": "1"}}], "Burstable"),
        ([{"limits": {"example.com/gpu": "1"}}], "BestEffort"),
    ],
)
def test_the_class_of_service_follows_from_what_containers_ask_for(resources: list[dict], quality: str) -> None:
    containers = [{"name": f"c{place}", "resources": each} for place, each in enumerate(resources)]
    assert qos_class({"containers": containers}) == quality


def test_resources_of_the_pod_itself_count_before_those_of_its_containers() -> None:
    assert qos_class({"containers": [{}], "resources": {"limits": ALL}}) == "Guaranteed"


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.27", "IfNotPresent"),
        ("registry:5000/nginx", "Always"),
        ("registry:5000/nginx:1", "IfNotPresent"),
        ("nginx@sha256:abc", "IfNotPresent"),
        ("", "IfNotPresent"),
    ],
)
def test_only_images_that_move_are_always_pulled(image: str, policy: str) -> None:
    assert pull_policy(image) == policy


@pytest.mark.parametrize(
    "schedule", ["* * * * *", "*/5 1-3 1,15 jan-FEB mon", "0 0 ? * 6", "@hourly", "@every 1h30m", "5/10 * * * *"]
)
def test_cron_understands_these(schedule: str) -> None:
    assert schedule_fault(schedule) is None


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ("x", "expected exactly 5 fields, found 1: [x]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("5-3 * * * *", "beginning of range (5) beyond end of range (3): 5-3"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("a * * * *", 'failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax'),
        ("@sometimes", "unrecognized descriptor: @sometimes"),
        ("@every x", 'failed to parse duration @every x: time: invalid duration "x"'),
    ],
)
def test_cron_refuses_these_in_its_words(schedule: str, words: str) -> None:
    assert schedule_fault(schedule) == words


def test_time_zones_are_known_by_name() -> None:
    assert is_time_zone("Europe/Berlin")
    assert not is_time_zone("Foo/Bar")


def test_a_service_gets_the_same_address_each_time() -> None:
    first, second = allocate_addresses(service()), allocate_addresses(service())
    assert first == second
    assert first["spec"]["clusterIPs"] == [first["spec"]["clusterIP"]]
    assert first["spec"]["ipFamilyPolicy"] == "SingleStack"


def test_a_headless_service_has_no_address() -> None:
    with_selector = allocate_addresses(service(clusterIP="None", selector={"a": "b"}))["spec"]
    assert (with_selector["clusterIPs"], with_selector["ipFamilies"]) == (["None"], ["IPv4"])
    without = allocate_addresses(service(clusterIP="None"))["spec"]
    assert without["ipFamilyPolicy"] == "RequireDualStack"


def test_a_name_elsewhere_needs_no_address() -> None:
    external = service(type="ExternalName", externalName="a.b")
    assert allocate_addresses(external) is external
