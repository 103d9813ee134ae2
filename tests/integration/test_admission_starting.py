"""A process that has just started: webhook answers before its caches are synced, and its health."""

from dataclasses import replace

import aiohttp
import pytest
from tests.builders import labels, rule_webhooks
from tests.builders.operators import fleet as fleet_on
from tests.builders.operators import operator, until

from nodeyard.admission.manager import Webhooks
from nodeyard.app.operator import CannotListen
from nodeyard.client.api import Client
from nodeyard.client.errors import AdmissionDenied
from nodeyard.client.http_transport import HttpTransport
from nodeyard.client.kubeconfig import load_config
from nodeyard.client.resources import untyped
from nodeyard.runtime.capability import Watch
from nodeyard.runtime.health import Address
from nodeyard.testing.operators import LOCAL_WEBHOOKS
from nodeyard.testing.ports import free_port
from nodeyard.watch import shared_informer

NOWHERE = untyped("nowhere.test", "v1", "nothings", "Nothing")


@pytest.fixture
async def fleet(api):
    # An earlier operator may have stopped before its webhooks were deleted.
    rule_webhooks.discard_webhooks(api.rest)
    async with fleet_on(api.kubeconfig) as fleet:
        yield fleet
        rule_webhooks.discard_webhooks(api.rest)


@pytest.fixture
async def warnings(api):
    """A client, and the warnings that it received."""
    given = []
    client = Client(HttpTransport(load_config(api.kubeconfig)), on_warning=given.append)
    yield client, given
    await client.close()


@pytest.fixture
def restarted(api, fleet):
    """An operator that registered its webhook, and was restarted with lists that never complete."""

    def restart(**options):
        guarded = rule_webhooks.guarded(rule_webhooks.validating(**options))
        chosen = replace(LOCAL_WEBHOOKS, bind=Address("127.0.0.1", free_port()))
        return _Restart(api.kubeconfig, guarded, chosen, fleet.client)

    return restart


async def listening(running):
    async def is_listening():
        return not running.health.ready["webhooks"]()

    await until(is_listening, "it listens")


class _Restart:
    def __init__(self, kubeconfig, capability, chosen, client):
        self._kubeconfig, self._capability, self._chosen, self._client = kubeconfig, capability, chosen, client

    async def __aenter__(self):
        async with operator(self._kubeconfig, capability=self._capability, webhooks=self._chosen):
            await until(lambda: rule_webhooks.is_registered(self._client), "it is registered")
        watches = (*self._capability.watches, Watch(NOWHERE, lambda _old, _new: ()))
        blind = replace(self._capability, watches=watches)
        self._operator = operator(
            self._kubeconfig, capability=blind, webhooks=self._chosen, health=Address("127.0.0.1", 0)
        )
        running = await self._operator.__aenter__()
        await listening(running)
        return running

    async def __aexit__(self, *error):
        await self._operator.__aexit__(*error)


async def test_a_fail_closed_review_is_denied_with_the_reason(fleet, restarted):
    async with restarted(failure_policy="Fail") as running:
        with pytest.raises(AdmissionDenied) as refused:
            await fleet.add_rule("a", "blue")
        assert (
            'admission webhook "rules.labels.nodeyard.dev" denied the request: nodeyard has just started and its '
            "caches are not synced yet; try again in a few seconds" in str(refused.value)
        )
        assert running.metrics.registry.get_sample_value(*rule_webhooks.reviewed("not_synced")) == 1


async def test_a_fail_open_review_is_admitted_with_a_warning(fleet, restarted, warnings):
    client, given = warnings
    async with restarted():
        await client.create(labels.RULES, labels.rule(fleet.name("a"), "forbidden"), dry_run=True)
    assert given == [
        "rules.labels.nodeyard.dev: not checked: nodeyard has just started and its caches are not synced yet"
    ]


async def test_readiness_reports_the_webhooks(restarted, fleet):
    async with restarted() as running, aiohttp.ClientSession() as session:
        async with session.get(f"http://127.0.0.1:{running.ports['health']}/readyz?verbose") as response:
            text = await response.text()
        assert response.status == 503
        assert "[+] webhooks: ok" in text
        assert "[-] synced:" in text


async def readyz(running):
    url = f"http://127.0.0.1:{running.ports['health']}/readyz"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return response.status, await response.text()


def blind(name):
    """A capability that requires a kind which the server does not serve."""
    watch = Watch(NOWHERE, lambda _old, _new: ())
    return replace(labels.LABELS, name=name, kinds=(), watches=(*labels.LABELS.watches, watch))


async def test_a_missing_kind_of_one_capability_keeps_the_webhooks_of_the_others(api, fleet, monkeypatch):
    monkeypatch.setattr(shared_informer, "REFUSED_SECONDS", 0.2)
    options = {"capability": rule_webhooks.GUARDED, "webhooks": LOCAL_WEBHOOKS, "health": Address("127.0.0.1", 0)}
    async with operator(api.kubeconfig, beside=[blind("blind")], **options) as running:

        async def is_told():
            status, text = await readyz(running)
            return text if status == 200 and "[!] blind: nothings.nowhere.test silent" in text else None

        text = await until(is_told, "it is ready, and tells which capability is not")
        assert "[+] webhooks: ok" in text
        assert "[!] labels" not in text
        await until(lambda: rule_webhooks.is_registered(fleet.client), "it is registered")
        with pytest.raises(AdmissionDenied, match="is not a team"):
            await fleet.add_rule("a", "forbidden")


async def test_where_no_capability_is_left_the_process_is_out_of_service(api, fleet, monkeypatch):
    monkeypatch.setattr(shared_informer, "REFUSED_SECONDS", 0.2)
    alone = {"capability": blind("one"), "beside": [blind("two")], "health": Address("127.0.0.1", 0)}
    async with operator(api.kubeconfig, **alone) as running:

        async def is_told():
            status, text = await readyz(running)
            return status == 503 and "[-] watches: nothings.nowhere.test silent" in text

        await until(is_told, "no watch is well")


async def test_an_address_in_use_is_reported_in_one_line(api, fleet):
    async with operator(api.kubeconfig, capability=rule_webhooks.GUARDED, webhooks=LOCAL_WEBHOOKS) as running:
        await listening(running)
        taken = Webhooks(Address("127.0.0.1", running.ports["webhooks"]))
        again = operator(api.kubeconfig, "two", capability=rule_webhooks.GUARDED, webhooks=taken)
        with pytest.raises(
            CannotListen, match=rf"cannot listen on 127.0.0.1:{taken.bind.port}: Address already in use"
        ):
            await again.__aenter__()


async def test_without_webhooks_nothing_listens(api, fleet):
    async with operator(api.kubeconfig, webhooks=LOCAL_WEBHOOKS) as running:
        assert "webhooks" not in running.ports
        assert "webhooks" not in running.health.ready
