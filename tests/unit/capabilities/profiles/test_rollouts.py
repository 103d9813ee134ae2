"""Counters of service objects stay correct after every event."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.builders.interpreter_steps import steps
from tests.builders.profile_views import counted

from nodeyard.apiserver.server import Server
from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.collect.rollouts import add, aggregate, remove, rollout_count
from nodeyard.capabilities.profiles.controller import PROFILES
from nodeyard.capabilities.profiles.snapshot import RolloutCount
from nodeyard.kube.json import Object
from nodeyard.process.clock import VirtualClock
from nodeyard.sim.embedded import connect
from nodeyard.watch.indexes import Fold
from nodeyard.watch.informers import InformerFactory

from ....builders.profiles import NAMESPACE, NOVA, profile_service, service

READY = [{"type": "Ready", "status": "True"}]


def compute(
    name: str = "a", profile: str = "p", generation: str = "1", reported: str = "h", written: str = "t"
) -> Object:
    """Return a compute with the desired hash `h`."""
    return {
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "annotations": {names.HASH: "h", names.GENERATION: generation, names.WRITTEN: written},
        },
        "spec": {"computeProfileName": profile},
        "status": {"hash": {names.REPORTED_HASH: reported}, "conditions": READY},
    }


COMPUTES = st.builds(
    compute,
    profile=st.sampled_from("pq"),
    generation=st.sampled_from("12"),
    reported=st.sampled_from("hx"),
    written=st.sampled_from("tu"),
)


def test_objects_are_counted_by_whether_they_run_and_by_what_they_have():
    objects = [compute(), compute(generation="2"), compute(generation="2", reported="old")]
    assert counted(objects) == RolloutCount(
        total=3, available=2, generations={"1": 1, "2": 2}, unavailable_since={"t": 1}, ready=3
    )


def test_a_rollout_is_done_when_all_run():
    assert counted([compute(), compute()]).is_done
    assert not counted([compute(), compute(reported="old")]).is_done
    assert RolloutCount().is_done


@given(st.lists(COMPUTES), COMPUTES)
def test_adding_and_removing_undo_each_other(objects: list[Object], another: Object):
    standing = counted(objects)
    assert remove(add(standing, another), another) == standing


@given(st.lists(st.tuples(st.sampled_from("abc"), st.none() | COMPUTES)))
def test_the_counters_equal_a_fresh_count(changes: list[tuple[str, Object | None]]):
    fold, objects = Fold(aggregate(NOVA)), dict[str, Object]()
    for name, new in changes:
        old = objects.pop(name, None)
        if new is not None:
            objects[name] = new
        fold.commit(fold.stage((NAMESPACE, name), old, new))
    for profile in "pq":
        expected = counted(each for each in objects.values() if each["spec"]["computeProfileName"] == profile)
        assert fold.value(f"{NAMESPACE}/{profile}") == expected


# declared services


class Caches:
    """Caches of an operator, filled by hand."""

    def __init__(self) -> None:
        clock = VirtualClock()
        self._informers = InformerFactory(connect(Server(clock)), clock, Random(1))
        self.view = self._informers.register(PROFILES.watches, declared=PROFILES.dynamic.watches)

    def deliver(self, kind: str, *objects: Any) -> None:
        self.view.refresh()
        (informer,) = [each for each in self._informers.all if each.resource.kind == kind]
        for each in objects:
            informer.cache.deliver(each)

    def standing(self, **declared: Any) -> RolloutCount:
        return rollout_count(self.view, service(**declared), NAMESPACE, "p")


def agent(number: int, **given: Any) -> Object:
    found = compute(f"n{number}", **given)
    metadata = {**found["metadata"], "uid": f"u{number}", "resourceVersion": f"{number + 1}"}
    return {**found, "metadata": metadata, "spec": {"profileName": "p", "otherName": "q"}}


def test_the_objects_of_a_declared_service_are_kept_count_of_as_they_change():
    caches = Caches()
    caches.deliver(names.SERVICE_KIND, profile_service())
    assert caches.standing() == RolloutCount()
    caches.deliver("StorageAgent", agent(0), agent(1, reported="old"))
    assert caches.standing() == RolloutCount(
        total=2, available=1, generations={"1": 2}, unavailable_since={"t": 1}, ready=2
    )


def test_a_declaration_that_reads_another_field_finds_no_numbers_of_the_field_before():
    caches = Caches()
    caches.deliver(names.SERVICE_KIND, profile_service())
    caches.deliver("StorageAgent", agent(0))
    assert caches.standing().total == 1
    changed = profile_service(profileField="otherName")
    later = msgspec.structs.replace(changed.metadata, resource_version="2")
    caches.deliver(names.SERVICE_KIND, msgspec.structs.replace(changed, metadata=later))
    assert caches.standing(profileField="otherName").total == 0


def test_counting_a_declared_service_takes_constant_time():
    caches = Caches()
    caches.deliver(names.SERVICE_KIND, profile_service())
    caches.deliver("StorageAgent", *map(agent, range(5)))
    few = steps(caches.standing)
    caches.deliver("StorageAgent", *map(agent, range(500)))
    assert caches.standing().total == 500
    assert steps(caches.standing) == few
