"""Services: allocated addresses and columns."""

from __future__ import annotations

from typing import Any

import pytest

from nodeyard.apiserver.kinds.service import allocate_addresses

from .builders import service
from .pipeline import RESOURCES, cells, made, update


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


def test_a_service_keeps_the_address_it_was_given() -> None:
    body = {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}
    service = made("", "services", body)
    assert service["spec"]["clusterIP"].startswith("10.")
    assert 30000 <= service["spec"]["ports"][0]["nodePort"] < 32768
    again = update(RESOURCES["", "services"], service, body)
    assert again["spec"] == service["spec"]


@pytest.mark.parametrize(
    ("obj", "external", "ports"),
    [
        (service(), "<none>", "80/TCP"),
        (
            service(type="NodePort", ports=[{"port": 80, "nodePort": 30080, "protocol": "UDP"}]),
            "<none>",
            "80:30080/UDP",
        ),
        (service(type="LoadBalancer"), "<pending>", "80/TCP"),
        (service(type="LoadBalancer", externalIPs=["1.1.1.1"]), "1.1.1.1", "80/TCP"),
        (
            service(type="LoadBalancer", status={"loadBalancer": {"ingress": [{"ip": "2.2.2.2"}, {"hostname": "h"}]}}),
            "2.2.2.2,h",
            "80/TCP",
        ),
        (service(type="ExternalName", externalName="a.b", ports=[]), "a.b", "<none>"),
    ],
    ids=["cluster", "node-port", "pending", "external-ips", "balanced", "name"],
)
def test_a_service_shows_how_it_is_reached(obj: dict[str, Any], external: str, ports: str) -> None:
    shown = cells("", "services", obj)
    assert (shown[3], shown[4]) == (external, ports)
