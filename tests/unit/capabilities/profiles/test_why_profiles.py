"""Explanation of profiles and roles: their users, and the nodes that follow a role."""

from __future__ import annotations

from typing import Any

import pytest
from tests.builders.profile_views import ProfilesView
from tests.builders.profiles import NAMESPACE, NOW, SHARED, compute_profile_body, node_body, role_body

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.collect.profiles import collect_profile, collect_role
from nodeyard.capabilities.profiles.planning.profiles import plan_status
from nodeyard.kube.json import Object
from nodeyard.plan.model import Decision, ObjectRef

KEY = names.COMPUTE_PROFILE
FLEET = (
    compute_profile_body("p", SHARED),
    role_body("r", annotations={KEY: "p"}),
    node_body("n0", role="r"),
    node_body("n1", role="r", annotations={KEY: "q"}),
    node_body("n2", role="other", annotations={KEY: "p"}),
)


def why_profile(name: str, *objects: Object) -> Decision:
    view: Any = ProfilesView(*objects)
    snapshot = collect_profile(view, names.NOVA, NAMESPACE, name, NOW)
    assert snapshot is not None
    return explained(snapshot, names.NOVA_API_VERSION, names.COMPUTE_PROFILE_KIND, name)


def why_role(name: str, *objects: Object) -> Decision:
    view: Any = ProfilesView(*objects)
    snapshot = collect_role(view, NAMESPACE, name)
    assert snapshot is not None
    return explained(snapshot, names.DATAPLANE_API_VERSION, names.ROLE_KIND, name)


def explained(snapshot: Any, api_version: str, kind: str, name: str) -> Decision:
    ref = ObjectRef(api_version=api_version, kind=kind, namespace=NAMESPACE, name=name)
    (decision,) = plan_status(snapshot, NOW, [ref]).plan.decisions
    return decision


def said(decision: Decision) -> dict[str, str]:
    return {each.name: each.facts.text() for each in decision.candidates}


def test_a_profile_names_the_roles_and_nodes_that_have_it() -> None:
    decision = why_profile("p", *FLEET)
    assert decision.rule == "Available"
    assert said(decision) == {
        "role r": f"The role names it in {KEY}, for 1 of its 2 nodes",
        "n2": f"The node names it in its annotation {KEY}",
    }


def test_an_unreadable_profile_is_reported_first() -> None:
    assert why_profile("p", compute_profile_body("p", "a = b\n")).rule == "ConfigurationInvalid"


def test_a_role_says_for_how_many_of_its_nodes_its_choice_counts() -> None:
    decision = why_role("r", *FLEET)
    assert decision.facts.text().startswith("Role r has 2 nodes")
    assert said(decision)[names.NOVA] == "ComputeProfile p, for 1 of its 2 nodes"
    assert said(decision)[names.NEUTRON].startswith(f"Role r has no annotation {names.NETWORK_PROFILE}")


@pytest.mark.parametrize(
    ("value", "reason", "words"),
    [
        ("", "NoProfileOnRole", f"Annotation {KEY} on role r is empty"),
        ("gone", "ProfileNotFound", "ComputeProfile gone does not exist"),
        ("a,b", "ProfileInvalid", f"Annotation {KEY} on role r is 'a,b'"),
    ],
)
def test_a_role_explains_the_fault_of_its_choice(value: str, reason: str, words: str) -> None:
    decision = why_role("r", role_body("r", annotations={KEY: value}))
    found = next(each for each in decision.candidates if each.name == names.NOVA)
    assert (found.is_taken, found.reason) == (False, reason)
    assert said(decision)[names.NOVA].startswith(words)
