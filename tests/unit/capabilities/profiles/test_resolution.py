"""Decision table: the profile of a node for every combination of node, role and selectors."""

from __future__ import annotations

from typing import Any

import pytest

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.messages.choices import ProfileAmbiguous
from nodeyard.capabilities.profiles.messages.faults import Forbidden
from nodeyard.capabilities.profiles.planning.resolution import (
    Resolution,
    cell,
    is_role_missing,
    resolve,
    unknown_keys,
    wants_object,
)
from nodeyard.capabilities.profiles.reasons import Reason
from nodeyard.capabilities.profiles.snapshot import NodeSnapshot
from nodeyard.capabilities.profiles.types import Source, State

from ....builders import profiles as build

KEY = names.COMPUTE_PROFILE
UNSAID: Any = object()


def seen(of_node: Any = UNSAID, of_role: Any = UNSAID, *, role: str = build.ROLE, **given: Any) -> NodeSnapshot:
    """Build a node and a role with these values of nova's key, and the profiles shared and dedicated."""
    noted = {} if of_node is UNSAID else {KEY: of_node}
    also = {} if of_role is UNSAID else {KEY: of_role}
    profiles = {"nova": [build.profile("shared"), build.profile("dedicated")], **given.pop("profiles", {})}
    return build.snapshot(
        build.node(annotations={**noted, **given.pop("annotations", {})}, role=role, labels=given.pop("labels", {})),
        build.role(annotations={**also, **given.pop("role_annotations", {})}),
        **profiles,
        **given,
    )


def nova(snapshot: NodeSnapshot) -> Resolution:
    return resolve(snapshot)["nova"]


def without_role(snapshot: NodeSnapshot) -> NodeSnapshot:
    """Build the same without the role that the node names."""
    return build.snapshot(
        snapshot.node,
        None,
        services=snapshot.services,
        objects=snapshot.objects,
        **{name: found.values() for name, found in snapshot.profiles.items()},
    )


# the table


@pytest.mark.parametrize(
    ("of_node", "of_role", "state", "source", "value", "reason"),
    [
        pytest.param("shared", UNSAID, State.RESOLVED, Source.NODE, "shared", Reason.FROM_NODE, id="node alone"),
        pytest.param(
            "shared", "dedicated", State.RESOLVED, Source.NODE, "shared", Reason.FROM_NODE, id="node over role"
        ),
        pytest.param(
            "shared", "", State.RESOLVED, Source.NODE, "shared", Reason.FROM_NODE, id="node over none of role"
        ),
        pytest.param("", UNSAID, State.DISABLED, Source.NODE, "", Reason.DISABLED, id="node opts out of nothing"),
        pytest.param(
            "", "dedicated", State.DISABLED, Source.NODE, "", Reason.DISABLED, id="node opts out of the role's"
        ),
        pytest.param("", "", State.DISABLED, Source.NODE, "", Reason.DISABLED, id="both are empty"),
        pytest.param(UNSAID, "dedicated", State.RESOLVED, Source.ROLE, "dedicated", Reason.FROM_ROLE, id="role"),
        pytest.param(UNSAID, "", State.NONE, Source.ROLE, "", Reason.NONE, id="role says none"),
        pytest.param(UNSAID, UNSAID, State.NONE, None, "", Reason.NONE, id="nobody speaks"),
        pytest.param(
            "gone", "shared", State.NOT_FOUND, Source.NODE, "gone", Reason.NOT_FOUND, id="no fall back to role"
        ),
        pytest.param(UNSAID, "gone", State.NOT_FOUND, Source.ROLE, "gone", Reason.NOT_FOUND, id="role names none"),
        pytest.param("A b", "shared", State.INVALID, Source.NODE, "A b", Reason.INVALID, id="invalid, no fall back"),
        pytest.param(UNSAID, "Shared", State.INVALID, Source.ROLE, "Shared", Reason.INVALID, id="role invalid"),
        pytest.param(" shared", UNSAID, State.INVALID, Source.NODE, " shared", Reason.INVALID, id="nothing is trimmed"),
        pytest.param(" ", "shared", State.INVALID, Source.NODE, " ", Reason.INVALID, id="a blank is not empty"),
        pytest.param(
            "shared,dedicated", UNSAID, State.INVALID, Source.NODE, "shared,dedicated", Reason.INVALID, id="no lists"
        ),
        pytest.param("a" * 254, UNSAID, State.INVALID, Source.NODE, "a" * 254, Reason.INVALID, id="too long"),
        pytest.param("a.b-c", UNSAID, State.NOT_FOUND, Source.NODE, "a.b-c", Reason.NOT_FOUND, id="dots are allowed"),
    ],
)
def test_node_and_role(
    of_node: Any, of_role: Any, state: State, source: Source | None, value: str, reason: Reason
) -> None:
    found = nova(seen(of_node, of_role))

    assert (found.state, found.source, found.value, found.message.reason) == (state, source, value, reason)
    assert (found.profile.name if found.profile else "") == (value if state is State.RESOLVED else "")


@pytest.mark.parametrize(
    ("of_node", "of_role", "shadowed"),
    [
        pytest.param("shared", "dedicated", ((Source.ROLE, "dedicated"),), id="the role's choice"),
        pytest.param("shared", "shared", ((Source.ROLE, "shared"),), id="also where it is the same"),
        pytest.param("shared", "", ((Source.ROLE, ""),), id="that the role wants none"),
        pytest.param("", "dedicated", ((Source.ROLE, "dedicated"),), id="by an opt-out"),
        pytest.param("gone", "dedicated", ((Source.ROLE, "dedicated"),), id="by a profile that does not exist"),
        pytest.param("shared", UNSAID, (), id="nothing"),
        pytest.param(UNSAID, "shared", (), id="nothing by the role"),
    ],
)
def test_shadowed_choices_are_recorded(of_node: Any, of_role: Any, shadowed: tuple[tuple[Source, str], ...]) -> None:
    assert nova(seen(of_node, of_role)).shadowed == shadowed


def test_only_settled_choices_change_what_is_deployed() -> None:
    settled = {value: nova(seen(value)).is_settled for value in ("shared", "", "gone", "A b")}

    assert settled == {"shared": True, "": True, "gone": False, "A b": False}


def test_keys_are_independent() -> None:
    snapshot = seen(
        "dedicated",
        "shared",
        role_annotations={names.TELEMETRY_PROFILE: "collector"},
        profiles={"telemetry": [build.profile("collector")]},
    )
    found = resolve(snapshot)

    assert {name: (each.value, each.source) for name, each in found.items()} == {
        "neutron": ("", None),
        "nova": ("dedicated", Source.NODE),
        "telemetry": ("collector", Source.ROLE),
    }


def test_profiles_of_the_same_name_of_two_services_are_two_profiles() -> None:
    of_nova, of_neutron = build.profile("dpdk", uid="1"), build.profile("dpdk", uid="2")
    annotations = {KEY: "dpdk", names.NETWORK_PROFILE: "dpdk"}
    found = resolve(build.snapshot(build.node(annotations=annotations), nova=[of_nova], neutron=[of_neutron]))

    assert (found["nova"].profile, found["neutron"].profile) == (of_nova, of_neutron)


def test_the_profile_of_one_service_is_not_found_for_another() -> None:
    annotations = {names.NETWORK_PROFILE: "shared"}

    assert resolve(seen(annotations=annotations))["neutron"].state is State.NOT_FOUND


def test_a_declared_service_resolves_like_a_built_in_one() -> None:
    service = build.service("storage")
    node = build.node(annotations={service.annotation_key: "fast"}, role="")
    found = resolve(build.snapshot(node, services=[*build.SERVICES, service], storage=[build.profile("fast")]))

    assert (found["storage"].state, found["storage"].source) == (State.RESOLVED, Source.NODE)


# the role


def test_annotations_of_the_node_count_though_its_role_does_not_exist() -> None:
    found = nova(without_role(seen("shared")))

    assert (found.state, found.source) == (State.RESOLVED, Source.NODE)


def test_a_choice_that_a_missing_role_could_make_is_not_settled() -> None:
    found = nova(without_role(seen()))

    assert (found.state, found.message.reason, found.is_settled) == (State.NOT_FOUND, Reason.ROLE_NOT_FOUND, False)


def test_a_missing_role_keeps_selectors_from_deciding() -> None:
    selecting = build.profile("all", node_selector={})
    found = nova(without_role(seen(profiles={"nova": [selecting]})))

    assert (found.message.reason, found.profile) == (Reason.ROLE_NOT_FOUND, None)


def test_a_node_without_a_role_misses_none() -> None:
    snapshot = without_role(seen(role=""))

    assert not is_role_missing(snapshot)
    assert nova(snapshot).state is State.NONE


def test_another_role_is_another_choice_for_every_key() -> None:
    before, after = (
        resolve(
            build.snapshot(
                build.node(),
                build.role(annotations={KEY: name, names.NETWORK_PROFILE: name}),
                nova=[build.profile("a"), build.profile("b")],
                neutron=[build.profile("a"), build.profile("b")],
            )
        )
        for name in ("a", "b")
    )

    assert [each.value for each in before.values()] == ["a", "a", ""]
    assert [each.value for each in after.values()] == ["b", "b", ""]


# selectors


RACK = {"rack": "r1"}


def selected(*profiles: Any, of_node: Any = UNSAID, of_role: Any = UNSAID, labels: Any = RACK) -> Resolution:
    return nova(seen(of_node, of_role, labels=labels, profiles={"nova": [build.profile("shared"), *profiles]}))


def test_a_profile_that_selects_the_node_counts_where_neither_node_nor_role_chooses() -> None:
    found = selected(build.profile("racked", node_selector=RACK))

    assert (found.state, found.source, found.value) == (State.RESOLVED, Source.SELECTOR, "racked")
    assert found.message.reason is Reason.FROM_SELECTOR


@pytest.mark.parametrize(
    ("selector", "is_selected"),
    [
        pytest.param(None, False, id="none selects nobody"),
        pytest.param({}, True, id="an empty one selects all"),
        pytest.param({"rack": "r1"}, True, id="one label"),
        pytest.param({"rack": "r2"}, False, id="another value"),
        pytest.param({"rack": "r1", "zone": "a"}, False, id="all labels have to fit"),
    ],
)
def test_a_node_is_selected_by_all_labels_of_the_selector(selector: Any, is_selected: bool) -> None:
    assert (selected(build.profile("racked", node_selector=selector)).state is State.RESOLVED) is is_selected


def test_the_highest_priority_wins_and_shadows_the_others() -> None:
    found = selected(
        build.profile("low", node_selector=RACK, priority=1),
        build.profile("high", node_selector=RACK, priority=5),
        build.profile("other", node_selector={"rack": "r2"}, priority=9),
    )

    assert found.value == "high"
    assert found.shadowed == ((Source.SELECTOR, "low"),)


def test_two_of_the_highest_priority_are_an_error() -> None:
    found = selected(
        build.profile("b", node_selector=RACK, priority=5),
        build.profile("a", node_selector=RACK, priority=5),
        build.profile("low", node_selector=RACK),
    )

    assert (found.state, found.message.reason, found.source) == (State.AMBIGUOUS, Reason.AMBIGUOUS, Source.SELECTOR)
    assert isinstance(found.message, ProfileAmbiguous)
    assert (found.message.profiles, found.message.priority) == (("a", "b"), 5)
    assert (found.value, found.profile, found.is_settled) == ("", None, False)
    assert found.shadowed == ((Source.SELECTOR, "low"),)


def test_a_tie_of_lower_priority_is_no_fault() -> None:
    found = selected(
        build.profile("high", node_selector=RACK, priority=5),
        build.profile("a", node_selector=RACK),
        build.profile("b", node_selector=RACK),
    )

    assert found.value == "high"


@pytest.mark.parametrize(
    ("of_node", "of_role", "state", "source"),
    [
        pytest.param("shared", UNSAID, State.RESOLVED, Source.NODE, id="the node"),
        pytest.param(UNSAID, "shared", State.RESOLVED, Source.ROLE, id="the role"),
        pytest.param("", UNSAID, State.DISABLED, Source.NODE, id="an opt-out of the node"),
        pytest.param(UNSAID, "", State.NONE, Source.ROLE, id="a role that wants none"),
        pytest.param("gone", UNSAID, State.NOT_FOUND, Source.NODE, id="a profile that does not exist"),
    ],
)
def test_an_annotation_wins_over_selectors(of_node: Any, of_role: Any, state: State, source: Source) -> None:
    found = selected(build.profile("racked", node_selector=RACK), of_node=of_node, of_role=of_role)

    assert (found.state, found.source) == (state, source)
    assert found.shadowed == ((Source.SELECTOR, "racked"),)


# kinds that cannot be listed


def test_a_profile_that_cannot_be_seen_is_not_called_missing() -> None:
    found = nova(
        seen("gone", kind_faults={"nova": Forbidden(service="nova", error="no right to list computeprofiles")})
    )

    assert (found.state, found.message.reason, found.is_settled) == (State.NOT_FOUND, Reason.FORBIDDEN, False)
    assert "no right to list computeprofiles" in found.message.text()


def test_a_node_that_chooses_nothing_has_no_fault() -> None:
    assert nova(seen(kind_faults={"nova": Forbidden(service="nova", error="no right")})).state is State.NONE


def test_an_unreadable_profile_that_may_select_the_node_is_not_settled() -> None:
    found = nova(
        seen(kind_faults={"nova": Forbidden(service="nova", error="no right")}, objects={"nova": build.compute_body()})
    )

    assert (found.message.reason, found.is_settled) == (Reason.FORBIDDEN, False)


# unknown keys


def test_keys_that_look_like_a_choice_of_an_unknown_service_are_listed() -> None:
    snapshot = seen(
        "shared",
        annotations={"storage.example.com/disk-profile": "fast", "example.com/note": "x"},
        role_annotations={"audio.example.com/tone-profile": "low", "storage.example.com/disk-profile": "slow"},
    )

    assert unknown_keys(snapshot) == ("audio.example.com/tone-profile", "storage.example.com/disk-profile")


def test_keys_of_services_are_known_also_where_two_claim_them() -> None:
    snapshot = seen("shared", annotations={"a/b-profile": "x"}, key_conflicts={"a/b-profile": ("one", "two")})

    assert unknown_keys(snapshot) == ()


def test_a_key_that_asks_for_an_object_is_known() -> None:
    service = build.service(createWhenAnnotation="storage.example.com/disk-profile")
    node = build.node(annotations={"storage.example.com/disk-profile": "x"})

    assert unknown_keys(build.snapshot(node, services=[service])) == ()


# objects


CELL_1 = {names.CELL: "nova-cell1"}
COMPUTE = {"nova": build.compute_body()}


def wants(snapshot: NodeSnapshot, service: str = "nova") -> bool:
    return wants_object(snapshot, resolve(snapshot)[service])


@pytest.mark.parametrize(
    ("of_node", "given", "is_wanted"),
    [
        pytest.param("shared", {}, False, id="no cell"),
        pytest.param("shared", {"annotations": CELL_1}, True, id="cell of the node"),
        pytest.param("shared", {"role_annotations": CELL_1}, True, id="cell of the role"),
        pytest.param(
            "shared", {"annotations": {names.CELL: ""}, "role_annotations": CELL_1}, False, id="node wants no cell"
        ),
        pytest.param(UNSAID, {"annotations": CELL_1}, True, id="cell without profile"),
        pytest.param("", {"annotations": CELL_1}, True, id="cell, and opted out of the profile"),
        pytest.param("gone", {"annotations": CELL_1}, False, id="none is made with a dangling name"),
        pytest.param("gone", {"annotations": CELL_1, "objects": COMPUTE}, True, id="one that is there stays"),
        pytest.param("A b", {"annotations": CELL_1, "objects": COMPUTE}, True, id="also beside an invalid value"),
        pytest.param("shared", {"objects": COMPUTE}, False, id="the cell is gone"),
    ],
)
def test_a_compute_is_created_where_a_cell_is_set(of_node: Any, given: dict[str, Any], is_wanted: bool) -> None:
    assert wants(seen(of_node, **given)) is is_wanted


@pytest.mark.parametrize("objects", [{}, COMPUTE], ids=["not there", "there"])
def test_whether_a_missing_role_names_a_cell_is_not_known(objects: dict[str, Any]) -> None:
    assert wants(without_role(seen("shared", objects=objects))) is bool(objects)


@pytest.mark.parametrize(
    ("value", "objects", "is_wanted"),
    [
        pytest.param("dpdk", {}, True, id="resolved"),
        pytest.param("", {"neutron": build.agent_body()}, False, id="opted out"),
        pytest.param("gone", {}, False, id="not found"),
        pytest.param("gone", {"neutron": build.agent_body()}, True, id="not found any more"),
    ],
)
def test_an_agent_is_made_where_a_network_profile_resolves(value: str, objects: Any, is_wanted: bool) -> None:
    node = build.node(annotations={names.NETWORK_PROFILE: value}, role="")

    assert wants(build.snapshot(node, neutron=[build.profile("dpdk")], objects=objects), "neutron") is is_wanted


def test_telemetry_makes_no_object() -> None:
    node = build.node(annotations={names.TELEMETRY_PROFILE: "collector"}, role="")

    assert not wants(build.snapshot(node, telemetry=[build.profile("collector")]), "telemetry")


@pytest.mark.parametrize(
    ("of_node", "of_role", "found"),
    [
        pytest.param({names.CELL: "a"}, {names.CELL: "b"}, ("a", Source.NODE), id="node over role"),
        pytest.param({}, {names.CELL: "b"}, ("b", Source.ROLE), id="role"),
        pytest.param({names.CELL: ""}, {names.CELL: "b"}, None, id="node wants none"),
        pytest.param({}, {names.CELL: ""}, None, id="role wants none"),
        pytest.param({}, {}, None, id="nobody speaks"),
    ],
)
def test_the_cell(of_node: dict[str, str], of_role: dict[str, str], found: tuple[str, Source] | None) -> None:
    assert cell(seen(annotations=of_node, role_annotations=of_role)) == found


# the design's story


def story(name: str) -> NodeSnapshot:
    annotations = build.SEED_NODE_ANNOTATIONS if name == "edpm-compute-1" else {}
    role = build.role(annotations=build.SEED_ROLE_ANNOTATIONS)
    return build.snapshot(build.node(name, annotations=annotations), role, **build.seed_profiles())


def test_edpm_compute_0_has_shared_cpus_as_its_role_selects() -> None:
    snapshot = story("edpm-compute-0")
    found = resolve(snapshot)

    assert {name: (each.state, each.source, each.value) for name, each in found.items()} == {
        "nova": (State.RESOLVED, Source.ROLE, "dell-r740-shared-cpus"),
        "neutron": (State.NONE, None, ""),
        "telemetry": (State.RESOLVED, Source.ROLE, "collector"),
    }
    assert [name for name in found if wants(snapshot, name)] == ["nova"]
    assert cell(snapshot) == ("nova-cell1", Source.ROLE)


def test_edpm_compute_1_has_pinned_cpus_and_dpdk_and_keeps_the_collector_of_its_role() -> None:
    snapshot = story("edpm-compute-1")
    found = resolve(snapshot)

    assert {name: (each.state, each.source, each.value) for name, each in found.items()} == {
        "nova": (State.RESOLVED, Source.NODE, "dell-r740-dedicated-cpus"),
        "neutron": (State.RESOLVED, Source.NODE, "dpdk"),
        "telemetry": (State.RESOLVED, Source.ROLE, "collector"),
    }
    assert found["nova"].shadowed == ((Source.ROLE, "dell-r740-shared-cpus"),)
    assert [name for name in found if wants(snapshot, name)] == ["neutron", "nova"]
    assert cell(snapshot) == ("nova-cell1", Source.ROLE)
