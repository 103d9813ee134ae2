"""The snapshot contains only what the plan reads, and only relevant events enqueue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.collect import collect, needs_pods
from nodeyard.capabilities.spares.controller import SPARES
from nodeyard.client.decoder import Malformed
from nodeyard.kube.objects import Pod

from ....builders.spares import NOW, node, owned, pod, spare, template, unread


class FakeView:
    """Fake view of a cache with the given objects."""

    def __init__(
        self, *, pods_synced: bool = True, malformed: Mapping[tuple[str, str], Malformed] | None = None, **kinds: Any
    ):
        self.kinds: dict[str, Sequence[Any]] = kinds
        self.pods_synced = pods_synced
        self.broken = dict(malformed or {})
        self.asked: list[str] = []

    def get(self, kind: str, name: str, namespace: str = "") -> Any | None:
        return next((each for each in self.all(kind) if each.metadata.name == name), None)

    def all(self, kind: str) -> Sequence[Any]:
        return self.kinds.get(kind, ())

    def indexed(self, kind: str, index: str, value: str) -> Sequence[Any]:
        assert (kind, index) == ("Pod", names.PODS_BY_NODE)
        self.asked.append(value)
        pods: Sequence[Pod] = self.all(kind)
        return [each for each in pods if each.spec.node_name == value]

    def aggregate(self, name: str, group: str) -> Any:
        raise KeyError(name)

    def is_synced(self, kind: str) -> bool:
        return self.pods_synced

    def malformed(self, kind: str) -> Mapping[tuple[str, str], Malformed]:
        return self.broken


def test_pods_are_not_looked_at_unless_a_template_asks() -> None:
    view = FakeView(Node=[spare("a")], NodeTemplate=[template("web")], Pod=[pod("p", "a")])
    assert collect(view, names.KEY, NOW).pods == {}
    assert view.asked == []
    assert not needs_pods([template("web")])


def test_for_empty_spares_only_the_pods_of_spares_are_looked_at() -> None:
    picky = template("web", eligibility={"requireEmpty": True})
    view = FakeView(Node=[spare("a"), node("b"), owned("c", "web")], NodeTemplate=[picky], Pod=[pod("p", "a")])
    pods = collect(view, names.KEY, NOW).pods
    assert pods is not None
    assert [each.metadata.name for each in pods["a"]] == ["p"]
    assert view.asked == ["a"]


def test_for_releases_only_the_pods_of_the_templates_nodes_are_looked_at() -> None:
    giving = template("web", releasePolicy="Release")
    view = FakeView(Node=[spare("a"), owned("c", "web"), owned("d", "other")], NodeTemplate=[giving])
    collect(view, names.KEY, NOW)
    assert view.asked == ["c"]


def test_pods_that_are_not_there_yet_are_unknown_and_not_absent() -> None:
    view = FakeView(pods_synced=False, NodeTemplate=[template("web", releasePolicy="Release")])
    assert collect(view, names.KEY, NOW).pods is None


def test_templates_that_did_not_decode_are_no_longer_what_they_were() -> None:
    broken = unread("web")
    view = FakeView(malformed={("", "web"): broken}, NodeTemplate=[template("web"), template("other")])
    seen = collect(view, names.KEY, NOW)
    assert seen.malformed == {"web": broken}
    assert [each.name for each in seen.templates] == ["other"]


GIVEN = [
    spare("stock"),
    owned("busy", "web"),
    owned("leaving", "web", annotations={names.RELEASE: "{}"}),
    node("foreign"),
]
PODS = next(watch for watch in SPARES.watches if watch.resource.kind == "Pod")


def is_planned(old: Pod | None, new: Pod | None) -> bool:
    assert PODS.map_with_view is not None
    return bool(list(PODS.map_with_view(FakeView(Node=GIVEN), old, new)))


@pytest.mark.parametrize(
    ("name", "is_looked_at"), [("stock", True), ("leaving", True), ("busy", False), ("foreign", False), ("gone", False)]
)
def test_pods_are_planned_for_where_their_node_is_to_be_empty(name: str, is_looked_at: bool) -> None:
    assert is_planned(None, pod("p", name)) is is_looked_at
    assert is_planned(pod("p", name), None) is is_looked_at


@pytest.mark.parametrize(
    ("old", "new", "is_news"),
    [
        (pod("p", ""), pod("p", "stock"), True),
        (pod("p", "stock"), pod("p", "stock", phase="Succeeded"), True),
        (pod("p", "stock"), pod("p", "stock", is_deleting=True), True),
        (msgspec.structs.replace(pod("p", "stock"), metadata=pod("q", "stock").metadata), pod("p", "stock"), True),
        (pod("p", "stock", phase="Pending"), pod("p", "stock"), False),
        (pod("p", "stock", phase="Succeeded"), None, False),
        (None, pod("p", "stock", owner="DaemonSet"), False),
        (None, pod("p", ""), False),
    ],
    ids=["bound", "finished", "going", "another of its name", "begun", "finished before", "of a DaemonSet", "unbound"],
)
def test_pods_are_planned_for_when_they_come_to_be_workload_or_cease_to(
    old: Pod | None, new: Pod | None, is_news: bool
) -> None:
    assert is_planned(old, new) is is_news
