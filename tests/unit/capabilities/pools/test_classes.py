"""Status of LatticeNodeClasses: the pools that use them, and Ready."""

import msgspec
import pytest

from nodeyard.capabilities.pools.planning.classes import plan_classes
from nodeyard.capabilities.pools.planning.server_side_apply import class_group_name
from nodeyard.capabilities.pools.report.classes import status_classes
from nodeyard.capabilities.pools.snapshot import ClassesSnapshot, ClassUse
from nodeyard.capabilities.pools.types import LatticeNodeClass
from nodeyard.kube.names import APPROVE

from ....builders.pools import NOW, node_class

USES = {"medium": [ClassUse("prod", "a", "docker"), ClassUse("prod", "b", "docker")]}


def after(each, uses=USES):
    snapshot = ClassesSnapshot([each], uses)
    writes = status_classes(snapshot, NOW)
    return writes[0].status if writes else None


def test_a_class_lists_the_pools_that_name_it():
    found = after(node_class("medium"))
    assert found["pools"] == ["prod/a", "prod/b"]
    assert (found["conditions"][0]["type"], found["conditions"][0]["status"]) == ("Ready", "True")


def test_a_class_that_nobody_names_is_ready():
    assert after(node_class("spare"), {})["conditions"][0]["status"] == "True"


def test_a_class_without_the_pools_provider_is_not_ready_and_names_the_missing_section():
    found = after(node_class("medium", aws={"instanceType": "m5.large"}))
    condition = found["conditions"][0]
    assert (condition["status"], condition["reason"]) == ("False", "NodeClassUnfit")
    assert "add spec.providers.docker" in condition["message"]


def test_a_status_that_is_there_already_is_not_written_again():
    each = node_class("medium")
    told = msgspec.convert({**msgspec.to_builtins(each), "status": after(each)}, LatticeNodeClass)
    assert after(told) is None


def test_a_class_that_does_not_decode_is_reported_and_stops_nobody():
    snapshot = ClassesSnapshot([], {}, {"broken": "Expected `int`"})
    (blocked,) = plan_classes(snapshot, NOW).plan.blocked
    assert (blocked.object.name, blocked.facts.error) == ("broken", "Expected `int`")


@pytest.mark.parametrize(
    ("made_from", "is_open"),
    [("old", True), ("", True), ("new", False)],
    ids=["another spec", "an unknown spec", "the current spec"],
)
def test_the_approval_of_an_edit_is_needed_until_all_pools_are_made_from_it(made_from, is_open):
    each = node_class("medium")
    metadata = msgspec.structs.replace(each.metadata, annotations={APPROVE: "0123456789ab"})
    uses = {"medium": [ClassUse("prod", "a", "docker", 3, made_from, "new")]}

    planned = plan_classes(ClassesSnapshot([msgspec.structs.replace(each, metadata=metadata)], uses), NOW)

    assert planned.open_groups == ((class_group_name(each.metadata),) if is_open else ())
    assert (planned.plan.wake_at is not None) == is_open
