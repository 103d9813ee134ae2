"""How the service objects of a profile stand: counted once, and right after every change."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.standings import Standing, add, aggregate, counted, remove
from nodeyard.kube.json import Object
from nodeyard.watch.aggregates import Fold

from ....builders.profiles import NAMESPACE, NOVA

READY = [{"type": "Ready", "status": "True"}]


def compute(name: str = "a", profile: str = "p", generation: str = "1", reported: str = "h", told: str = "t") -> Object:
    """Asked for the hash `h`."""
    return {
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "annotations": {names.HASH: "h", names.GENERATION: generation, names.WRITTEN: told},
        },
        "spec": {"computeProfileName": profile},
        "status": {"hash": {names.REPORTED_HASH: reported}, "conditions": READY},
    }


COMPUTES = st.builds(
    compute,
    profile=st.sampled_from("pq"),
    generation=st.sampled_from("12"),
    reported=st.sampled_from("hx"),
    told=st.sampled_from("tu"),
)


def test_objects_are_counted_by_whether_they_run_and_by_what_they_have():
    objects = [compute(), compute(generation="2"), compute(generation="2", reported="old")]
    assert counted(objects) == Standing(total=3, available=2, generations={"1": 1, "2": 2}, told={"t": 1})


def test_a_rollout_is_done_when_all_run():
    assert counted([compute(), compute()]).is_done
    assert not counted([compute(), compute(reported="old")]).is_done
    assert Standing().is_done


@given(st.lists(COMPUTES), COMPUTES)
def test_adding_and_removing_undo_each_other(objects: list[Object], another: Object):
    standing = counted(objects)
    assert remove(add(standing, another), another) == standing


@given(st.lists(st.tuples(st.sampled_from("abc"), st.none() | COMPUTES)))
def test_what_is_kept_is_what_counting_anew_would_find(changes: list[tuple[str, Object | None]]):
    fold, objects = Fold(aggregate(NOVA)), dict[str, Object]()
    for name, new in changes:
        old = objects.pop(name, None)
        if new is not None:
            objects[name] = new
        fold.commit(fold.stage((NAMESPACE, name), old, new))
    for profile in "pq":
        expected = counted(each for each in objects.values() if each["spec"]["computeProfileName"] == profile)
        assert fold.value(f"{NAMESPACE}/{profile}") == expected
