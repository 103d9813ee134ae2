"""IP addresses and CIDRs in built-in kinds must be canonical."""

from __future__ import annotations

import pytest

NO_IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
LEADING_ZEROS = "must not have leading 0s"
MAPPED = "must not be an IPv4-mapped IPv6 address"
LOOPBACK = "may not be in the loopback range (127.0.0.0/8, ::1/128)"
LINK_LOCAL = "may not be in the link-local range (169.254.0.0/16, fe80::/10)"
MULTICAST = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
NO_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"

NOT_CANONICAL = [
    ("1.2.3", NO_IP),
    ("fe80::1%eth0", NO_IP),
    ("010.0.0.1", LEADING_ZEROS),
    ("::ffff:1.2.3.4", MAPPED),
]


@pytest.mark.parametrize(("address", "fault"), NOT_CANONICAL)
def test_an_alias_of_a_pod_is_for_a_canonical_address(http, namespace, fresh, address, fault):
    spec = {"containers": [{"name": "c", "image": "a:1"}], "hostAliases": [{"ip": address, "hostnames": ["a"]}]}

    answer = http.post(f"/api/v1/namespaces/{namespace}/pods", {"metadata": {"name": fresh("pod")}, "spec": spec})

    assert (answer.status, [cause["field"] for cause in answer.causes]) == (422, ["spec.hostAliases[0].ip"])
    assert answer.causes[0]["message"] == f'Invalid value: "{address}": {fault}'


@pytest.mark.parametrize(
    ("address", "fault"),
    [
        *NOT_CANONICAL,
        ("0.0.0.0", "may not be unspecified (0.0.0.0)"),
        ("127.0.0.1", LOOPBACK),
        ("::1", LOOPBACK),
        ("169.254.1.1", LINK_LOCAL),
        ("224.0.0.5", MULTICAST),
        ("ff02::1", MULTICAST),
    ],
)
def test_an_external_ip_of_a_service_is_canonical_and_not_special(http, namespace, fresh, address, fault):
    spec = {"ports": [{"port": 80}], "externalIPs": [address]}

    answer = http.post(f"/api/v1/namespaces/{namespace}/services", {"metadata": {"name": fresh("svc")}, "spec": spec})

    assert (answer.status, [cause["field"] for cause in answer.causes]) == (422, ["spec.externalIPs[0]"])
    assert answer.causes[0]["message"] == f'Invalid value: "{address}": {fault}'


@pytest.mark.parametrize(
    ("cidr", "fault"),
    [
        ("10.0.0.0/33", NO_CIDR),
        pytest.param("10.0.0.0/" + "9" * 5000, NO_CIDR, id="endless"),
        ("fe80::%eth0/64", NO_CIDR),
        ("010.0.0.0/24", "must not have leading 0s in IP or prefix length"),
        ("10.0.0.0/024", "must not have leading 0s in IP or prefix length"),
        ("::ffff:1.2.3.0/120", "must not have an IPv4-mapped IPv6 address"),
        ("10.0.0.5/24", "must not have bits set beyond the prefix length"),
    ],
)
def test_a_pod_cidr_of_a_node_is_canonical(http, fresh, cidr, fault):
    answer = http.post("/api/v1/nodes", {"metadata": {"name": fresh("node")}, "spec": {"podCIDRs": [cidr]}})

    assert (answer.status, [cause["field"] for cause in answer.causes]) == (422, ["spec.podCIDRs[0]"])
    assert answer.causes[0]["message"] == f'Invalid value: "{cidr}": {fault}'


def test_canonical_addresses_are_accepted(http, namespace, fresh):
    spec = {"ports": [{"port": 80}], "externalIPs": ["10.1.2.3", "2001:db8::1", "8.8.8.8"]}

    answer = http.post(f"/api/v1/namespaces/{namespace}/services", {"metadata": {"name": fresh("svc")}, "spec": spec})

    assert answer.status == 201
