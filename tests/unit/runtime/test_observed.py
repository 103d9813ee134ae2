"""The condition that names a living original."""

from datetime import UTC, datetime, timedelta

import pytest
from tests.builders.labels import LabelRule
from tests.builders.spares import template

from nodeyard.kube.objects import ObjectMeta
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.capability import StatusWrite
from nodeyard.runtime.observed import observed, resumed

NOW = datetime(2030, 1, 1, tzinfo=UTC)
REF = ObjectRef(api_version="nyallocator.cybozu.io/v1", kind="NodeTemplate", name="web", uid="uid-web")
READY = {"type": "Ready", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2029-01-01T00:00:00Z"}
MARK = {
    "type": "Observing",
    "status": "True",
    "reason": "OriginalAlive",
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
def test_it_stands_beside_what_the_status_says_already(root):
    write = observed(root(READY), REF, "it is alive", NOW)
    assert write.status["conditions"] == [READY, MARK]
    assert write.status["currentNodes"] == 2


@both
def test_it_keeps_saying_since_when(root):
    write = observed(root(MARK), REF, "another is alive", NOW + timedelta(hours=1))
    assert write.status["conditions"] == [{**MARK, "message": "another is alive"}]


@both
def test_it_goes_when_things_are_written_again(root):
    (write,) = resumed([], [(root(READY, MARK), REF)])
    assert write.object == REF
    assert write.status["conditions"] == [READY]


@both
def test_it_goes_with_the_status_of_the_pass_where_there_is_one(root):
    own = StatusWrite(object=REF, status={"currentNodes": 3, "conditions": [READY, MARK]})
    (write,) = resumed([own], [(root(READY, MARK), REF)])
    assert write.status == {"currentNodes": 3, "conditions": [READY]}


@both
def test_where_it_does_not_stand_nothing_is_added_to_a_pass(root):
    own = StatusWrite(object=REF, status={"conditions": [READY]})
    assert resumed([own], [(root(READY), REF)]) == [own]
    assert resumed([], [(root(READY), REF)]) == []


def test_a_kind_without_conditions_gets_none():
    root = LabelRule(metadata=ObjectMeta(name="a"))
    assert observed(root, REF, "it is alive", NOW) is None
    assert resumed([], [(root, REF)]) == []
