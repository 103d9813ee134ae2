"""The fault proxy: the effect of each fault."""

from __future__ import annotations

import http.client
import json
import ssl

import pytest

from nodeyard.testing.faults import DoubleEvents, Drop, HalfOpen, Latency, Status, TruncateEvents
from nodeyard.testing.session import Session

PATH = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def through(api, faults) -> Session:
    return Session(faults.url, faults.authority.pem, api.admin_token)


@pytest.fixture
def direct(api) -> Session:
    return Session(api.url, api.authority.pem, api.admin_token)


@pytest.fixture
def configmap(direct, request):
    name = f"faulty-{abs(hash(request.node.nodeid)) % 10**8}"
    yield name
    direct.delete(f"{PATH}/{name}")


def test_without_faults_everything_passes_through(through, configmap):
    assert through.post(PATH, {"metadata": {"name": configmap}}).status == 201
    assert through.get(f"{PATH}/{configmap}").json["metadata"]["name"] == configmap


def test_a_status_is_answered_as_often_as_asked(through, faults):
    rule = faults.add(Status(429, retry_after=3), path="/configmaps", times=2)

    answers = [through.get(PATH) for _ in range(3)]

    assert [answer.status for answer in answers] == [429, 429, 200]
    assert answers[0].headers["Retry-After"] == "3"
    assert rule.hits == 2


def test_a_fault_keeps_to_its_method(through, faults, configmap):
    faults.add(Status(500), method="POST")

    assert through.get(PATH).status == 200
    assert through.post(PATH, {"metadata": {"name": configmap}}).status == 500


def test_a_request_dropped_before_sending_never_happens(through, direct, faults, configmap):
    faults.add(Drop(), method="POST")

    with pytest.raises((http.client.HTTPException, OSError)):
        through.post(PATH, {"metadata": {"name": configmap}})
    assert direct.get(f"{PATH}/{configmap}").status == 404


def test_a_request_dropped_after_sending_has_happened(through, direct, faults, configmap):
    faults.add(Drop(after_sending=True), method="POST")

    with pytest.raises((http.client.HTTPException, OSError)):
        through.post(PATH, {"metadata": {"name": configmap}})
    assert direct.get(f"{PATH}/{configmap}").status == 200


def test_latency_delays_and_delivers(through, faults):
    faults.add(Latency(0.01), times=1)

    assert through.get(PATH).status == 200


def test_a_half_open_watch_delivers_nothing_until_it_is_cut(api, through, direct, faults, configmap):
    faults.add(HalfOpen(), path="watch")
    trust = ssl.create_default_context(cadata=faults.authority.pem.decode())
    connection = http.client.HTTPSConnection(faults.url.split("//")[1], context=trust, timeout=30)
    connection.request("GET", f"{PATH}?watch=true", headers={"Authorization": f"Bearer {api.admin_token}"})
    response = connection.getresponse()
    connection.sock.settimeout(0.5)
    direct.post(PATH, {"metadata": {"name": configmap}})

    with pytest.raises(TimeoutError):
        response.readline()
    connection.close()


def test_doubled_events_come_twice(through, direct, faults, configmap):
    faults.add(DoubleEvents(), path="watch")
    revision = direct.get(PATH).json["metadata"]["resourceVersion"]

    with through.watch(PATH, query={"resourceVersion": revision}) as events:
        direct.post(PATH, {"metadata": {"name": configmap}})
        first, second = next(events), next(events)

    assert first == second


def test_truncated_events_break_off(through, direct, faults, configmap):
    faults.add(TruncateEvents(), path="watch")
    revision = direct.get(PATH).json["metadata"]["resourceVersion"]

    with through.watch(PATH, query={"resourceVersion": revision}) as events:
        direct.post(PATH, {"metadata": {"name": configmap}})
        with pytest.raises((json.JSONDecodeError, http.client.HTTPException, OSError)):
            next(events)


def test_clearing_ends_all_faults(through, faults):
    faults.add(Status(500))
    faults.clear()

    assert through.get(PATH).status == 200
