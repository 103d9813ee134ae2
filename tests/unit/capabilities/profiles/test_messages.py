"""Every reason has a message; a text about a fault has a remedy."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.messages.choices import ProfileNotFound, RoleNotFound, RoleSettingsUnknown
from nodeyard.capabilities.profiles.messages.faults import CellChanged, CellInvalid, Forbidden, NotServed
from nodeyard.capabilities.profiles.messages.states import (
    AwaitsReady,
    AwaitsReport,
    BudgetSpent,
    NoProfileOnRole,
    Reconciled,
    RollingOut,
)
from nodeyard.capabilities.profiles.planning.resolution import resolve
from nodeyard.capabilities.profiles.reasons import Reason
from nodeyard.plan.message import Message

from ....builders import profiles as build

CHOICE: dict[str, Any] = {
    "service": "nova",
    "kind": "ComputeProfile",
    "profile": "shared",
    "key": names.COMPUTE_PROFILE,
    "node": "edpm-compute-0",
    "role": "edpm-compute",
    "source": "Node",
}
ON_NODE: dict[str, Any] = {"service": "nova", "node": "edpm-compute-0"}
PROFILE: dict[str, Any] = {"service": "nova", "kind": "ComputeProfile", "profile": "shared"}


def message_types(of: type[Message] = Message) -> list[type[Message]]:
    """Return the messages of profiles, without their common bases."""
    found = [each for one in of.__subclasses__() for each in message_types(one)]
    is_own = of.__module__.startswith("nodeyard.capabilities.profiles.") and hasattr(of, "reason")
    return [*found, *([of] if is_own else [])]


def sample(of: type[Message]) -> Message:
    values: dict[Any, Any] = {str: "word", int: 2, bool: True, tuple[str, ...]: ("word",)}
    return of(**{each.name: values[each.type] for each in msgspec.structs.fields(of) if each.type in values})


@pytest.mark.parametrize("of", message_types(), ids=lambda of: of.__name__)
def test_every_message_has_a_sentence(of: type[Message]) -> None:
    said = sample(of).text()

    assert said
    assert said != of.reason
    assert "{" not in said
    assert "None" not in said


def test_every_reason_has_a_message() -> None:
    assert {each.reason for each in message_types()} == set(Reason)


@pytest.mark.parametrize(
    "of", [each for each in message_types() if each.__module__.endswith(".actions")], ids=lambda of: of.__name__
)
def test_an_action_that_succeeded_has_a_text_in_the_past_tense(of: type[Message]) -> None:
    now, then = (said.partition(" ") for said in (sample(of).text(), sample(of).past_text()))
    assert now[0].endswith("s")
    assert not then[0].endswith("s")
    assert now[2] == then[2]


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (
            ProfileNotFound(**CHOICE, namespace="openstack"),
            "ComputeProfile shared does not exist in namespace openstack, but nova.openstack.org/compute-profile on "
            "node edpm-compute-0 names it. Create the profile or name another; the deployed configuration is kept",
        ),
        (
            ProfileNotFound(**{**CHOICE, "source": "Role"}, namespace="openstack"),
            "ComputeProfile shared does not exist in namespace openstack, but nova.openstack.org/compute-profile on "
            "role edpm-compute names it. Create the profile or name another; the deployed configuration is kept",
        ),
        (
            Forbidden(service="storage", error="cannot list StorageProfile.storage.openstack.org: forbidden"),
            "Nodeyard cannot manage storage: cannot list StorageProfile.storage.openstack.org: forbidden; the deployed "
            "configuration is kept",
        ),
        (
            NotServed(service="storage", error="the API server does not serve StorageProfile"),
            "Nodeyard cannot manage storage: the API server does not serve StorageProfile. Install its CRD",
        ),
        (
            CellChanged(**ON_NODE, from_="cell1", to="cell2"),
            "nova on node edpm-compute-0 is in cell cell1 and cannot move to cell2: set nova.openstack.org/cell back. "
            "To move it, set nova.openstack.org/cell on the node to an empty value, which deletes its "
            "NovaExternalCompute, then set the new cell when that object is gone",
        ),
        (
            CellInvalid(**ON_NODE, source="Node", cell="Cell 1", error="no"),
            "Annotation nova.openstack.org/cell on node edpm-compute-0 is 'Cell 1', which is not a valid cell name: "
            "no. Set it to the name of the cell; a compute cannot change its cell later",
        ),
        (
            BudgetSpent(**PROFILE, node="edpm-compute-0", limit=2, total=8),
            "Nova on node edpm-compute-0 waits: maxUnavailable allows 2 of 8 service objects with ComputeProfile "
            "shared to be unavailable at once",
        ),
        (
            RoleNotFound(node="edpm-compute-0", role="gone"),
            "OpenStackDataPlaneRole gone (spec.role of node edpm-compute-0) does not exist: create it, or change "
            "spec.role. Annotations on the node still apply",
        ),
        (
            RoleSettingsUnknown(**ON_NODE, role="gone"),
            "OpenStackDataPlaneRole gone (spec.role of node edpm-compute-0) does not exist: the settings that nova "
            "inherits from it are unknown, so the deployed configuration is kept",
        ),
        (
            RollingOut(**PROFILE, updated=1, total=3),
            "ComputeProfile shared is rolling out: 1 of 3 service objects updated",
        ),
        (
            AwaitsReport(**ON_NODE, hash="3f2a"),
            "Waiting for nova on node edpm-compute-0 to report config hash 3f2a in status.hash.profile",
        ),
        (AwaitsReady(**ON_NODE), "Waiting for nova on node edpm-compute-0 to report condition Ready=True"),
        (
            NoProfileOnRole(role="edpm-compute", key=names.COMPUTE_PROFILE, kind="ComputeProfile", is_empty=True),
            "Annotation nova.openstack.org/compute-profile on role edpm-compute is empty: its nodes have no "
            "ComputeProfile unless they set their own",
        ),
        (Reconciled(), "In sync with the spec"),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Message) else "",
)
def test_a_sentence_names_object_key_value_and_remedy(message: Message, said: str) -> None:
    assert message.text() == said


@pytest.mark.parametrize(
    ("annotations", "of_role", "said"),
    [
        (
            {names.COMPUTE_PROFILE: "dedicated"},
            {names.COMPUTE_PROFILE: "shared"},
            "ComputeProfile dedicated is set by annotation nova.openstack.org/compute-profile on node edpm-compute-0, "
            "overriding shared (role edpm-compute)",
        ),
        (
            {},
            {names.COMPUTE_PROFILE: "shared"},
            "ComputeProfile shared is set by annotation nova.openstack.org/compute-profile on role edpm-compute",
        ),
        (
            {names.COMPUTE_PROFILE: ""},
            {names.COMPUTE_PROFILE: "shared"},
            "Annotation nova.openstack.org/compute-profile on node edpm-compute-0 is empty: no ComputeProfile, "
            "overriding shared (role edpm-compute)",
        ),
        (
            {names.COMPUTE_PROFILE: "shared"},
            {names.COMPUTE_PROFILE: ""},
            "ComputeProfile shared is set by annotation nova.openstack.org/compute-profile on node edpm-compute-0, "
            "overriding no profile (role edpm-compute)",
        ),
        (
            {},
            {names.COMPUTE_PROFILE: ""},
            "Annotation nova.openstack.org/compute-profile on role edpm-compute is empty: no ComputeProfile",
        ),
        (
            {},
            {},
            "Neither node edpm-compute-0 nor its role has annotation nova.openstack.org/compute-profile: no "
            "ComputeProfile",
        ),
    ],
)
def test_a_choice_names_its_source_and_the_shadowed_ones(
    annotations: dict[str, str], of_role: dict[str, str], said: str
) -> None:
    profiles = [build.profile("shared"), build.profile("dedicated")]
    snapshot = build.snapshot(build.node(annotations=annotations), build.role(annotations=of_role), nova=profiles)
    found = resolve(snapshot)["nova"]

    assert found.message.text() == said


def test_a_selected_node_names_the_selectors_it_passed_over() -> None:
    profiles = [build.profile("a", node_selector={}, priority=2), build.profile("b", node_selector={})]
    found = resolve(build.snapshot(build.node(role=""), nova=profiles))["nova"]

    assert found.message.text() == (
        "ComputeProfile a selects node edpm-compute-0 by spec.nodeSelector, overriding b (spec.nodeSelector)"
    )


def test_a_list_has_the_remedy_to_become_one_name() -> None:
    snapshot = build.snapshot(build.node(annotations={names.COMPUTE_PROFILE: "a,b"}, role=""))
    found = resolve(snapshot)["nova"]

    said = found.message.text()

    assert said.startswith(
        "Annotation nova.openstack.org/compute-profile on node edpm-compute-0 is 'a,b', which is not the name of one "
        "ComputeProfile: "
    )
    assert said.endswith("Set it to one name, or to an empty value for no profile; the deployed configuration is kept")
