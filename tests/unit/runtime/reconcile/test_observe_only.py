"""The condition that names a running peer operator."""

from datetime import UTC, datetime, timedelta

import pytest
from tests.builders.labels import LabelRule
from tests.builders.plans import disruptive, plan
from tests.builders.spares import template

from nodeyard.app.capabilities import CAPABILITIES
from nodeyard.kube.objects import ObjectMeta
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.capability import StatusWrite
from nodeyard.runtime.reconcile.observe_only import (
    HELD,
    EngineCondition,
    SharedHolds,
    with_engine_conditions,
    with_observing,
)

NOW = datetime(2030, 1, 1, tzinfo=UTC)
REF = ObjectRef(api_version="nyallocator.cybozu.io/v1", kind="NodeTemplate", name="web", uid="uid-web")
READY = {"type": "Ready", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2029-01-01T00:00:00Z"}
MARK = {
    "type": "Observing",
    "status": "True",
    "reason": "ReplacedOperatorRunning",
    "message": "it is alive",
    "lastTransitionTime": "2030-01-01T00:00:00Z",
    "observedGeneration": 1,
}


def as_struct(*conditions):
    return template("web", status={"currentNodes": 2, "conditions": list(conditions)})


def as_dict(*conditions):
    metadata = {"name": "web", "uid": "uid-web", "generation": 1}
    return {"metadata": metadata, "status": {"currentNodes": 2, "conditions": list(conditions)}}


both = pytest.mark.parametrize("root", [as_struct, as_dict])


@both
def test_the_condition_is_added_to_the_existing_ones(root):
    write = with_observing(root(READY), REF, "it is alive", NOW)
    assert write.status["conditions"] == [READY, MARK]
    assert write.status["currentNodes"] == 2


@both
def test_it_keeps_saying_since_when(root):
    write = with_observing(root(MARK), REF, "another is alive", NOW + timedelta(hours=1))
    assert write.status["conditions"] == [{**MARK, "message": "another is alive"}]


@both
def test_the_condition_is_removed_when_writes_resume(root):
    (write,) = with_engine_conditions([], [(root(READY, MARK), REF)], {}, NOW)
    assert write.object == REF
    assert write.status["conditions"] == [READY]


@both
def test_it_goes_with_the_status_of_the_pass_where_there_is_one(root):
    own = StatusWrite(object=REF, status={"currentNodes": 3, "conditions": [READY, MARK]})
    (write,) = with_engine_conditions([own], [(root(READY, MARK), REF)], {}, NOW)
    assert write.status == {"currentNodes": 3, "conditions": [READY]}


@both
def test_without_the_condition_a_pass_is_unchanged(root):
    own = StatusWrite(object=REF, status={"conditions": [READY]})
    assert with_engine_conditions([own], [(root(READY), REF)], {}, NOW) == [own]
    assert with_engine_conditions([], [(root(READY), REF)], {}, NOW) == []


def test_a_kind_without_conditions_gets_none():
    root = LabelRule(metadata=ObjectMeta(name="a"))
    assert with_observing(root, REF, "it is alive", NOW) is None
    assert with_engine_conditions([], [(root, REF)], {}, NOW) == []


HELD_MARK = {
    "type": "Held",
    "status": "True",
    "reason": "NeedsApproval",
    "message": "approve it",
    "lastTransitionTime": "2030-01-01T00:00:00Z",
    "observedGeneration": 1,
}


def held(message):
    return {REF: [EngineCondition(HELD, "NeedsApproval", message)]}


@both
def test_a_held_plan_is_a_condition_beside_those_of_the_pass(root):
    write = StatusWrite(object=REF, status={"currentNodes": 3, "conditions": [READY]})
    (found,) = with_engine_conditions([write], [(root(), REF)], held("approve it"), NOW)
    assert found.status == {"currentNodes": 3, "conditions": [READY, HELD_MARK]}


@both
def test_a_root_without_a_status_of_the_pass_is_written_for_the_condition_alone(root):
    (found,) = with_engine_conditions([], [(root(READY), REF)], held("approve it"), NOW)
    assert found.status["conditions"] == [READY, HELD_MARK]


@both
def test_the_held_condition_is_removed_with_the_hold(root):
    (gone,) = with_engine_conditions([], [(root(READY, HELD_MARK), REF)], {}, NOW)
    assert gone.status["conditions"] == [READY]
    assert with_engine_conditions([], [(root(READY), REF)], {}, NOW) == []


@both
def test_a_held_plan_keeps_saying_since_when(root):
    (found,) = with_engine_conditions([], [(root(HELD_MARK), REF)], held("approve another"), NOW + timedelta(hours=1))
    assert found.status["conditions"] == [{**HELD_MARK, "message": "approve another"}]


def test_a_kind_without_conditions_is_left_as_it_is():
    write = StatusWrite(object=REF, status={"labelled": 1})
    assert with_engine_conditions([write], [(LabelRule(), REF)], held("approve it"), NOW) == [write]


@pytest.mark.parametrize(
    "definition",
    [kind.definition() for each in CAPABILITIES for kind in each.kinds],
    ids=lambda definition: definition["spec"]["names"]["kind"],
)
def test_every_root_kind_has_a_place_and_a_column_for_a_held_plan(definition):
    (version,) = definition["spec"]["versions"]
    columns = {each["name"]: each["jsonPath"] for each in version["additionalPrinterColumns"]}
    if definition["spec"]["names"]["kind"] in ("NovaExternalCompute", "OVNMetadataAgent"):
        assert "Held" not in columns, "plans are made for nodes, not for the objects of services"
        return
    assert columns["Held"] == '.status.conditions[?(@.type=="Held")].status'
    status = version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    kinds = status["conditions"]["items"]["properties"]["type"]
    assert "enum" not in kinds


ROLE = ObjectRef(api_version="dataplane.openstack.org/v1beta1", kind="OpenStackDataPlaneRole", name="r", uid="uid-r")


def holding(node):
    return plan(disruptive(node, group_root=ROLE))


def test_an_edit_that_is_held_in_the_plans_of_many_keys_updates_its_object_once():
    holds = SharedHolds()

    assert holds.hold("n1", holding("n1"), "held: 2 nodes") == [ROLE]
    assert holds.hold("n1", holding("n1"), "held: 2 nodes") == []
    assert holds.hold("n2", holding("n2"), "held: 2 nodes") == []
    assert holds.conditions_of([ROLE, REF]) == {ROLE: (EngineCondition(HELD, "NeedsApproval", "held: 2 nodes"),)}
    assert holds.hold("n1", None, "") == []
    assert holds.hold("n2", None, "") == [ROLE]
    assert holds.conditions_of([ROLE]) == {}
