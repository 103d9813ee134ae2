"""Responses to a kubelet and to Prometheus."""

import aiohttp
import pytest

from nodeyard.process.metrics import Metrics
from nodeyard.runtime.health import Address, BindError, Health, parse_bind, serve

HERE = Address("127.0.0.1", 0)


async def get(listener, path):
    url = f"http://127.0.0.1:{listener.port}{path}"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return response.status, await response.text()


@pytest.fixture
async def listener():
    faults = {"synced": "", "watches": "", "webhooks": ""}
    checks = {name: (lambda name=name: faults[name]) for name in faults}
    warnings = {"webhooks": checks.pop("webhooks")}
    health = Health(live={"leases": lambda: ""}, ready=checks, warnings=warnings)
    listener = await serve(HERE, health=health)
    listener.faults = faults
    yield listener
    await listener.close()


async def test_when_all_is_well_it_says_ok(listener):
    assert await get(listener, "/healthz") == (200, "ok\n")
    assert await get(listener, "/readyz") == (200, "ok\n")


async def test_a_failed_check_is_named_and_fails_only_readiness(listener):
    listener.faults["watches"] = "nodes silent for 200 s"
    assert await get(listener, "/readyz") == (503, "[+] synced: ok\n[-] watches: nodes silent for 200 s\n")
    assert (await get(listener, "/healthz"))[0] == 200


async def test_an_informational_check_is_listed_and_fails_nothing(listener):
    listener.faults["webhooks"] = "no new certificate"
    told = "[+] synced: ok\n[+] watches: ok\n[!] webhooks: no new certificate\n"
    assert await get(listener, "/readyz") == (200, told)
    assert await get(listener, "/healthz") == (200, "ok\n")


async def test_verbose_lists_every_check(listener):
    assert await get(listener, "/readyz?verbose") == (200, "[+] synced: ok\n[+] watches: ok\n")


async def test_metrics_are_served_only_where_configured(listener):
    assert (await get(listener, "/metrics"))[0] == 404
    metrics = Metrics()
    metrics.gauge("nodeyard_test", "A test.").set(3)
    other = await serve(HERE, metrics=metrics)
    try:
        status, text = await get(other, "/metrics")
        assert status == 200
        assert "nodeyard_test 3.0" in text
        assert (await get(other, "/healthz"))[0] == 404
    finally:
        await other.close()


async def test_an_address_that_is_taken_is_an_error(listener):
    with pytest.raises(OSError, match="Address already in use"):
        await serve(Address("127.0.0.1", listener.port), health=Health())


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8081", Address("127.0.0.1", 8081)),
        ("[::1]:8081", Address("::1", 8081)),
        (":8081", Address("", 8081)),
        ("8081", Address("127.0.0.1", 8081)),
    ],
)
def test_addresses_are_understood(text, address):
    assert parse_bind(text) == address


@pytest.mark.parametrize("text", ["", "localhost", "here:", "here:99999", "here:http"])
def test_an_invalid_address_is_refused_by_name(text):
    with pytest.raises(BindError, match="HOST:PORT"):
        parse_bind(text)
