"""The ladders of the dashboard name rules that their capabilities have."""

from importlib import import_module

import pytest

from nodeyard.app.capabilities import CAPABILITIES

LADDERS = [
    (each.name, kind, rungs) for each in CAPABILITIES if each.surface for kind, rungs in each.surface.ladders.items()
]


@pytest.mark.parametrize(("capability", "kind", "rungs"), LADDERS, ids=[f"{name}-{kind}" for name, kind, _ in LADDERS])
def test_every_rung_is_a_reason_of_its_capability_and_stands_once(capability, kind, rungs):
    reasons = {each.value for each in import_module(f"nodeyard.capabilities.{capability}.reasons").Reason}
    named = [rung.reason for rung in rungs]
    assert set(named) <= reasons
    assert len(named) == len(set(named))
    assert all(rung.title and not rung.title.endswith(".") for rung in rungs)


def test_every_capability_has_a_surface_with_a_ladder():
    assert {name for name, _, _ in LADDERS} == {each.name for each in CAPABILITIES}
