"""Write counts of the profiles benchmark: affected nodes, statuses of profiles and roles, Events, and others."""

from __future__ import annotations

import msgspec
import pytest
from bench.load import MERGE, Call, encode
from bench.profiles_fleet import (
    COMPUTE_PROFILES,
    COMPUTES,
    CONFIG_MAPS,
    CONFIGURATIONS,
    NODES,
    ROLES,
    Cost,
    members,
    node,
    profile,
    role,
)
from bench.replay import EVENTS

from nodeyard.capabilities.profiles.planning.configuration.validation import ValidationResult, validate_profile
from nodeyard.capabilities.profiles.types import ComputeProfile, OpenStackDataPlaneNode, OpenStackDataPlaneRole

from ...builders.profiles import NOVA

OURS = ["node-00003", "node-00007"]


def apply(path: str) -> Call:
    return Call("PATCH", f"{path}?fieldManager=nodeyard-profiles&force=true", encode({}), MERGE)


OWN = [
    apply(f"{CONFIG_MAPS}/node-00003-nova-config"),
    apply(f"{COMPUTES}/node-00003"),
    apply(f"{NODES}/node-00003/status"),
]
AROUND = [
    apply(f"{COMPUTE_PROFILES}/shared-cpus/status"),
    apply(f"{ROLES}/role-07/status"),
    Call("POST", f"{EVENTS}namespaces/default/events", encode({"metadata": {"name": "e1"}})),
]


def test_writes_for_affected_nodes_and_their_profiles_are_not_others():
    assert Cost.of([*OWN, *AROUND], OURS) == Cost(1, 1, 1, profile_statuses=2, events=1, others=0)


@pytest.mark.parametrize(
    "stray",
    [
        apply(f"{CONFIG_MAPS}/node-00004-nova-config"),
        apply(f"{CONFIG_MAPS}/node-00003"),
        apply(f"{COMPUTES}/node-00004"),
        apply(f"{COMPUTES}/node-00003/status"),
        apply(f"{NODES}/node-00004/status"),
        apply(f"{NODES}/node-00003"),
        apply(f"{ROLES}/role-07"),
        apply(f"{COMPUTE_PROFILES}/shared-cpus"),
        apply("/api/v1/namespaces/default"),
    ],
    ids=lambda call: "/".join(call.path.partition("?")[0].split("/")[-2:]),
)
def test_writes_for_other_nodes_and_unexpected_writes_are_others(stray: Call):
    assert Cost.of([stray], OURS) == Cost(0, 0, 0, 0, 0, others=1)


def test_every_node_has_one_role_and_all_roles_have_equally_many():
    fleets = [members(number, range(100), 20) for number in range(20)]
    assert {len(each) for each in fleets} == {5}
    assert len({name for each in fleets for name in each}) == 100
    for number in range(100):
        one = msgspec.convert(node(number, 20), OpenStackDataPlaneNode)
        its_role = msgspec.convert(role(number % 20), OpenStackDataPlaneRole)
        assert one.wanted.role == its_role.metadata.name
        assert one.name in fleets[number % 20]


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_the_profiles_are_valid_and_allow_all_nodes_to_be_unavailable(name: str):
    one = msgspec.convert(profile(name), ComputeProfile).spec
    assert one is not None
    assert validate_profile(NOVA, name, one.custom_compute_service_config) == ValidationResult()
    assert one.max_unavailable == "100%"
