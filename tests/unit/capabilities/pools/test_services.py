"""Status of LatticeServices, and `why` for them."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from tests.builders.pools import NOW, service

from nodeyard.capabilities.pools.planning.pool_index import PoolOffer
from nodeyard.capabilities.pools.planning.services import plan_services
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.capabilities.pools.report.services import service_status, status_services, wire
from nodeyard.capabilities.pools.snapshot import ServicesSnapshot
from nodeyard.capabilities.pools.types import LatticeServiceStatus, PoolTaint
from nodeyard.plan.model import ObjectRef

GPU_TAINT = PoolTaint(key="nvidia.com/gpu", effect="NoSchedule")
OFFERS = (
    PoolOffer("prod", "general", {"workload-type": "general", "lattice.dev/pool": "general"}, (), "medium", 3),
    PoolOffer("prod", "gpu", {"workload-type": "gpu", "lattice.dev/pool": "gpu"}, (GPU_TAINT,), "gpu-large", 2),
    PoolOffer("prod", "old", {}, is_removed=True),
)
WEB = service("web", {"workload-type": "general"}, namespace="shop")
TRAINING = service("training", {"workload-type": "gpu"}, [{"key": "nvidia.com/gpu", "operator": "Exists"}])
LOST = service("lost", {"workload-type": "gpu"})


def seen(*services, offers=OFFERS, **given):
    return ServicesSnapshot(services=services, offers=offers, **given)


def ref(of):
    return ObjectRef(
        api_version="lattice.dev/v1alpha1",
        kind="LatticeService",
        namespace=of.metadata.namespace,
        name=of.metadata.name,
        uid=of.metadata.uid,
    )


def written(snapshot):
    return status_services(snapshot, NOW)


def stored(of, snapshot):
    """Return the service after its status was written and read again."""
    (write,) = [each for each in written(snapshot) if each.object == ref(of)]
    return msgspec.structs.replace(of, status=msgspec.convert(write.status, LatticeServiceStatus))


def test_a_service_that_fits_says_where():
    (write,) = written(seen(TRAINING))

    assert write.object == ref(TRAINING)
    assert (write.status["phase"], write.status["message"]) == ("Placed", "1 pool matches: prod/gpu")
    assert write.status["placements"] == [
        {"cluster": "prod", "workerPool": "gpu", "nodeClass": "gpu-large", "replicas": 2}
    ]
    assert [each["workerPool"] for each in write.status["refused"]] == ["general", "old"]
    (condition,) = write.status["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Placed", "True", "Placed")
    assert condition["observedGeneration"] == write.status["observedGeneration"] == 1


def test_an_unplaced_service_explains_each_refusal():
    (write,) = written(seen(LOST))

    assert write.status["phase"] == "Unplaced"
    assert write.status["message"] == (
        "No pool matches: 1 has a different label value, 1 is being drained, 1 has an untolerated taint"
    )
    assert [(each["workerPool"], each["reason"], each["message"]) for each in write.status["refused"]] == [
        ("general", "LabelDiffers", "Pool general of prod has label workload-type=general, not gpu"),
        (
            "gpu",
            "TaintNotTolerated",
            "Pool gpu of prod has taint nvidia.com/gpu:NoSchedule, which is not tolerated",
        ),
        ("old", "PoolDraining", "Pool old of prod is being drained"),
    ]
    assert "placements" not in write.status


def test_a_service_without_pools_reports_it():
    (write,) = written(seen(WEB, offers=()))

    assert write.status["message"] == "No pool matches: no LatticeCluster has a pool"


def test_an_unchanged_status_is_not_written_again():
    snapshot = seen(TRAINING)
    again = seen(stored(TRAINING, snapshot))

    assert written(again) == []


def test_a_condition_keeps_the_moment_it_became_true():
    before = stored(TRAINING, seen(TRAINING))
    later = NOW + timedelta(hours=1)

    kept = service_status(seen(before), before, later)
    turned = service_status(seen(before, offers=OFFERS[:1]), before, later)

    assert kept.conditions[0].last_transition_time == NOW
    assert (turned.conditions[0].status, turned.conditions[0].last_transition_time) == ("False", later)


def test_lists_in_the_status_are_bounded_and_the_message_counts_on():
    offers = tuple(PoolOffer("prod", f"p{number:03}", {"lattice.dev/pool": f"p{number:03}"}) for number in range(120))

    status = wire(service_status(seen(WEB, offers=offers), WEB, NOW))
    fits = wire(service_status(seen(service("any"), offers=offers), service("any"), NOW))

    assert (len(status["refused"]), status["message"]) == (50, "No pool matches: 120 lack a label")
    assert len(fits["placements"]) == 50
    assert fits["message"] == "120 pools match: prod/p000, prod/p001, prod/p002, prod/p003, prod/p004 and 115 more"


def test_a_service_being_deleted_is_left_alone():
    going = service("going", metadata={"deletionTimestamp": "2030-01-01T00:00:00Z"})

    assert written(seen(going)) == []


def test_the_plan_of_services_has_no_actions_and_names_unplaced_services():
    planned = plan_services(seen(LOST, WEB), NOW)

    assert planned.plan.actions == ()
    (blocked,) = planned.plan.blocked
    assert (blocked.object, blocked.reason) == (ref(LOST), "NoPoolFits")
    assert planned.is_final


def test_a_service_that_cannot_be_read_is_blocked_alone():
    snapshot = seen(WEB, malformed={("shop", "bad"): "Expected `object`, got `str`"})

    (blocked,) = plan_services(snapshot, NOW).plan.blocked

    assert (blocked.object.namespace, blocked.object.name, blocked.reason) == ("shop", "bad", "Invalid")
    assert len(written(snapshot)) == 1


def test_why_lists_every_pool_with_the_label_or_taint_that_refused_it():
    (decision,) = plan_services(seen(LOST), NOW, [ref(LOST)]).plan.decisions

    assert decision.rule == "NoPoolFits"
    assert [(each.name, each.is_taken, each.facts.text()) for each in decision.candidates] == [
        ("prod/general", False, "Pool general of prod has label workload-type=general, not gpu"),
        ("prod/gpu", False, "Pool gpu of prod has taint nvidia.com/gpu:NoSchedule, which is not tolerated"),
        ("prod/old", False, "Pool old of prod is being drained"),
    ]
    assert {each.reason for each in decision.would_change} == {"AddLabel", "AddToleration", "AddPoolAgain"}


def test_why_names_the_pools_that_fit_first():
    (decision,) = plan_services(seen(TRAINING), NOW, [ref(TRAINING)]).plan.decisions

    assert (decision.rule, decision.would_change) == ("Placed", ())
    assert [(each.name, each.is_taken) for each in decision.candidates] == [
        ("prod/gpu", True),
        ("prod/general", False),
        ("prod/old", False),
    ]
    assert decision.candidates[0].facts.text() == "Pool gpu of prod matches"


def test_why_does_not_explain_a_missing_object():
    assert plan_services(seen(), NOW, [ref(WEB)]).plan.decisions == ()


@pytest.mark.parametrize("reason", [Reason.POOL_EMPTY, Reason.CLUSTER_NOT_READY])
def test_every_reason_to_refuse_has_a_remedy_and_a_sentence(reason):
    offers = (PoolOffer("prod", "general", {"workload-type": "general"}, unavailable_reason=reason),)

    (decision,) = plan_services(seen(WEB, offers=offers), NOW, [ref(WEB)]).plan.decisions

    (remedy,) = decision.would_change
    assert remedy.text()
    assert decision.facts.text().startswith("No pool matches: 1 ")


class Counted(dict):
    """Labels that count reads."""

    looks = 0

    def get(self, *arguments):
        Counted.looks += 1
        return super().get(*arguments)


def test_a_thousand_services_meet_two_thousand_pools_without_meeting_each():
    offers = [PoolOffer(f"c{number // 10:03}", f"p{number % 10}", Counted(own=str(number))) for number in range(2000)]
    services = [service(f"s{number:04}", {"own": str(number)}) for number in range(1000)]
    Counted.looks = 0

    writes = written(seen(*services, offers=offers))

    assert [len(write.status["placements"]) for write in writes] == [1] * 1000
    assert Counted.looks <= 1000 * 50
