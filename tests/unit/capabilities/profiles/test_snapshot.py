"""What follows from a snapshot is worked out once for it, and anew for another."""

from __future__ import annotations

from dataclasses import replace

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.planning.inheritance import inherited
from nodeyard.capabilities.profiles.planning.resolution import resolve
from nodeyard.capabilities.profiles.planning.services import wish_for
from nodeyard.capabilities.profiles.snapshot import NodeSnapshot

from ....builders import profiles as build


def snapshot(value: str = "a") -> NodeSnapshot:
    node = build.node(annotations={names.COMPUTE_PROFILE: value})
    return build.snapshot(node, build.role(), nova=[build.profile("a", build.SHARED), build.profile("b")])


def test_whoever_asks_next_gets_what_the_first_was_told() -> None:
    seen = snapshot()
    assert resolve(seen) is resolve(seen)
    assert inherited(seen) is inherited(seen)
    assert wish_for(seen, names.NOVA) is wish_for(seen, names.NOVA)


def test_services_are_told_apart() -> None:
    seen = snapshot()
    assert wish_for(seen, names.NOVA).resolution.service.name == names.NOVA
    assert wish_for(seen, names.NEUTRON).resolution.service.name == names.NEUTRON


def test_a_changed_snapshot_is_thought_about_anew() -> None:
    seen = snapshot()
    assert resolve(seen)[names.NOVA].value == "a"
    changed = replace(seen, node=build.node(annotations={names.COMPUTE_PROFILE: "b"}))
    assert resolve(changed)[names.NOVA].value == "b"


def test_what_was_worked_out_does_not_make_snapshots_differ() -> None:
    seen = snapshot()
    resolve(seen)
    assert seen == snapshot()
