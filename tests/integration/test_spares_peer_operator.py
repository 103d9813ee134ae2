"""Observe-only mode: while nyallocator runs, or with --observe, Nodeyard reports and writes nothing else."""

from datetime import UTC, datetime

import pytest

from nodeyard.capabilities.spares import names
from nodeyard.testing.rest import RestError

LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{names.PEER_NAMESPACE}/leases"
LEASE = f"{LEASES}/{names.PEER_LEASE}"


class Nyallocator:
    """nyallocator's leader election Lease."""

    def __init__(self, rest):
        self._rest = rest

    def lead(self, *, seconds=15, holder="nyallocator-7d9f_1"):
        self._rest.replace_or_create(
            {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": names.PEER_LEASE, "namespace": names.PEER_NAMESPACE},
                "spec": {
                    "holderIdentity": holder,
                    "leaseDurationSeconds": seconds,
                    "renewTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
                },
            }
        )

    def go(self):
        try:
            self._rest.call("DELETE", LEASE)
        except RestError as error:
            if error.status != 404:
                raise


@pytest.fixture
def nyallocator(api):
    api.rest.replace_or_create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": names.PEER_NAMESPACE}})
    nyallocator = Nyallocator(api.rest)
    yield nyallocator
    nyallocator.go()


def observing(spares_env, template):
    conditions = spares_env.get_template(template).get("status", {}).get("conditions", ())
    return [each for each in conditions if each["type"] == "Observing"]


def test_while_the_peer_operator_runs_nothing_is_written_and_every_surface_reports_it(
    spares_env, operator, nyallocator, eventually
):
    nyallocator.lead(seconds=120)
    spares_env.spares(2)
    web = spares_env.template("web", 2)
    spares_env.wait_until_nodes_ready()
    before = {name: version for name, version in spares_env.versions().items() if name != web}
    running = operator("spares")

    (event, *_) = spares_env.wait_for_event(web, "ReplacedOperatorRunning")

    assert "nyallocator (nyallocator-7d9f_1) is still running: nothing is written" in event["note"]
    assert f"scale its Deployment in namespace {names.PEER_NAMESPACE} to 0" in event["note"]
    (condition,) = eventually(lambda: observing(spares_env, web), "the template says so")
    assert (condition["status"], condition["reason"]) == ("True", "ReplacedOperatorRunning")
    assert condition["message"] == event["note"]
    assert {name: version for name, version in spares_env.versions().items() if name != web} == before
    assert spares_env.get_template(web)["metadata"]["generation"] == 1
    assert "finalizers" not in spares_env.get_template(web)["metadata"]
    assert running.metric("nodeyard_observing", reason="nyallocator (nyallocator-7d9f_1)") == 1
    told = {"create events.events.k8s.io", "patch nodetemplates.nyallocator.cybozu.io"}
    eventually(lambda: set(running.write_counts()) == told, "the event and the condition are all that is written")


def test_it_starts_at_once_when_the_peer_operator_releases_its_lease(spares_env, operator, nyallocator):
    nyallocator.lead(seconds=120)
    spares_env.spares(2)
    web = spares_env.template("web", 2)
    running = operator("spares")
    spares_env.wait_for_event(web, "ReplacedOperatorRunning")

    nyallocator.lead(holder="")

    spares_env.wait_for_owned(web, 2, timeout=15)
    assert running.metric("nodeyard_observing") == 0
    assert observing(spares_env, web) == []


def test_it_starts_as_soon_as_the_lease_of_a_dead_peer_operator_expires(spares_env, operator, nyallocator):
    spares_env.spares(2)
    web = spares_env.template("web", 2)
    nyallocator.lead(seconds=120)
    operator("spares")
    spares_env.wait_for_event(web, "ReplacedOperatorRunning")
    nyallocator.lead(seconds=3, holder="nyallocator-7d9f_2")

    spares_env.wait_for_owned(web, 2)


def test_it_waits_for_the_last_renewal_of_a_dead_peer_operator_to_expire_and_no_longer(
    spares_env, operator, nyallocator
):
    """Lease renewals do not enqueue; they are read when the lease would have expired."""
    spares_env.spares(2)
    web = spares_env.template("web", 2)
    nyallocator.lead(seconds=12)
    operator("spares")
    spares_env.wait_for_event(web, "ReplacedOperatorRunning", timeout=11)
    nyallocator.lead(seconds=3)

    spares_env.wait_for_owned(web, 2, timeout=40)


def test_with_take_over_it_writes_while_the_peer_operator_runs(spares_env, operator, nyallocator):
    nyallocator.lead()
    spares_env.spares(2)
    web = spares_env.template("web", 2)
    operator("spares", take_over=True)

    spares_env.wait_for_owned(web, 2)


def test_under_observe_it_writes_nothing_but_its_lease(spares_env, operator, eventually):
    spares_env.spares(2)
    spares_env.template("web", 2)
    spares_env.wait_until_nodes_ready()
    before = spares_env.versions()
    running = operator("spares", observe=True).wait_until_leading()

    eventually(lambda: running.metric("nodeyard_observing", reason="--observe") == 1, "it observes")
    eventually(lambda: running.metric("nodeyard_plan_actions") == 3, "it has planned two claims and a finalizer")

    assert running.write_counts() == {}
    assert spares_env.versions() == before
