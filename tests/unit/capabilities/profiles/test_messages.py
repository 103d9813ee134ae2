"""Every reason has a text, which says what to do where something is wrong."""

from __future__ import annotations

import pytest

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.messages import text
from nodeyard.capabilities.profiles.planning.resolution import resolve
from nodeyard.capabilities.profiles.reasons import Reason

from ....builders import profiles as build

ABOUT = {
    "node": "edpm-compute-0",
    "service": "nova",
    "kind": "ComputeProfile",
    "profile": "shared",
    "value": "shared",
    "key": names.COMPUTE_PROFILE,
    "role": "edpm-compute",
    "source": "Node",
}


@pytest.mark.parametrize("reason", list(Reason))
@pytest.mark.parametrize("facts", [{}, ABOUT], ids=["no facts", "facts"])
def test_every_reason_has_a_sentence_whatever_facts_there_are(reason: Reason, facts: dict[str, str]) -> None:
    said = text(reason.value, {"error": "something", **facts})

    assert said
    assert said != reason.value
    assert "{" not in said
    assert "None" not in said


def test_a_reason_of_somebody_else_is_its_own_text() -> None:
    assert text("SomethingElse", {}) == "SomethingElse"


@pytest.mark.parametrize(
    ("reason", "facts", "said"),
    [
        (
            Reason.NOT_FOUND,
            {**ABOUT, "namespace": "openstack"},
            "ComputeProfile shared does not exist in namespace openstack, and node edpm-compute-0 chooses it by "
            "nova.openstack.org/compute-profile. Create it, or choose another; what is deployed stays as it is",
        ),
        (
            Reason.NOT_FOUND,
            {**ABOUT, "source": "Role"},
            "ComputeProfile shared does not exist, and role edpm-compute chooses it by "
            "nova.openstack.org/compute-profile. Create it, or choose another; what is deployed stays as it is",
        ),
        (
            Reason.FORBIDDEN,
            {"service": "storage", "verb": "list", "resource": "storageprofiles.storage.openstack.org"},
            "Storage cannot be looked after: no right to list storageprofiles.storage.openstack.org. Grant it by a "
            "ClusterRole that is aggregated to ours; what is deployed stays as it is",
        ),
        (
            Reason.FORBIDDEN,
            {"service": "storage", "error": "the server does not have StorageProfile"},
            "Storage cannot be looked after: the server does not have StorageProfile; what is deployed stays as it is",
        ),
        (
            Reason.CELL_CHANGED,
            {**ABOUT, "from": "cell1", "to": "cell2"},
            "nova on node edpm-compute-0 is in cell cell1 and cannot move to cell2: set nova.openstack.org/cell back, "
            "or delete the NovaExternalCompute first",
        ),
        (
            Reason.CELL_INVALID,
            {**ABOUT, "source": "Node", "cell": "Cell 1", "error": "no"},
            "The annotation nova.openstack.org/cell of node edpm-compute-0 is 'Cell 1', which cannot be the name of a "
            "cell: no. Write the cell's name: a compute never leaves the cell that it is made in",
        ),
        (
            Reason.IN_USE,
            {"kind": "ComputeProfile", "profile": "shared", "users": [f"n{index}" for index in range(7)]},
            "ComputeProfile shared is chosen for 7 nodes: n0, n1, n2, n3, n4 and 2 more. Choose another first",
        ),
        (
            Reason.BUDGET_SPENT,
            {**ABOUT, "unavailable": 2, "total": 8},
            "nova on node edpm-compute-0 waits: 2 of 8 with ComputeProfile shared are being reconfigured, which is all "
            "that maxUnavailable allows",
        ),
        (
            Reason.ROLE_NOT_FOUND,
            {"node": "edpm-compute-0", "role": "gone"},
            "OpenStackDataPlaneRole gone, the spec.role of node edpm-compute-0, does not exist: create it, or name "
            "another. The node's own annotations count meanwhile",
        ),
        (
            Reason.ROLE_NOT_FOUND,
            {"node": "edpm-compute-0", "role": "gone", "service": "nova"},
            "OpenStackDataPlaneRole gone, the spec.role of node edpm-compute-0, does not exist: what nova has from it "
            "is not known, and what is deployed stays as it is",
        ),
        (
            Reason.ROLLING,
            {"profile": "shared", "updated": 1, "total": 3},
            "Profile shared is being rolled out: 1 of 3 have it",
        ),
        (Reason.RECONCILED, {}, "Everything is as it should be"),
    ],
)
def test_a_sentence_names_object_key_value_and_remedy(reason: Reason, facts: dict[str, object], said: str) -> None:
    assert text(reason, facts) == said


@pytest.mark.parametrize(
    ("annotations", "of_role", "said"),
    [
        (
            {names.COMPUTE_PROFILE: "dedicated"},
            {names.COMPUTE_PROFILE: "shared"},
            "ComputeProfile dedicated, by the annotation nova.openstack.org/compute-profile of node edpm-compute-0, "
            "over shared of role edpm-compute",
        ),
        (
            {},
            {names.COMPUTE_PROFILE: "shared"},
            "ComputeProfile shared, by the annotation nova.openstack.org/compute-profile of role edpm-compute",
        ),
        (
            {names.COMPUTE_PROFILE: ""},
            {names.COMPUTE_PROFILE: "shared"},
            "The annotation nova.openstack.org/compute-profile of node edpm-compute-0 is empty: no ComputeProfile, "
            "over shared of role edpm-compute",
        ),
        (
            {names.COMPUTE_PROFILE: "shared"},
            {names.COMPUTE_PROFILE: ""},
            "ComputeProfile shared, by the annotation nova.openstack.org/compute-profile of node edpm-compute-0, over "
            "none of role edpm-compute",
        ),
        (
            {},
            {names.COMPUTE_PROFILE: ""},
            "The annotation nova.openstack.org/compute-profile of role edpm-compute is empty: no ComputeProfile",
        ),
        (
            {},
            {},
            "Neither node edpm-compute-0 nor its role has the annotation nova.openstack.org/compute-profile: no "
            "ComputeProfile",
        ),
    ],
)
def test_a_choice_tells_who_made_it_and_what_it_shadows(
    annotations: dict[str, str], of_role: dict[str, str], said: str
) -> None:
    profiles = [build.profile("shared"), build.profile("dedicated")]
    snapshot = build.snapshot(build.node(annotations=annotations), build.role(annotations=of_role), nova=profiles)
    found = resolve(snapshot)["nova"]

    assert text(found.reason, found.facts) == said


def test_a_selected_node_tells_which_selectors_it_passed_over() -> None:
    profiles = [build.profile("a", node_selector={}, priority=2), build.profile("b", node_selector={})]
    found = resolve(build.snapshot(build.node(role=""), nova=profiles))["nova"]

    assert text(found.reason, found.facts) == (
        "ComputeProfile a, whose nodeSelector fits node edpm-compute-0, over b by its nodeSelector"
    )


def test_a_list_is_told_to_become_one_name() -> None:
    snapshot = build.snapshot(build.node(annotations={names.COMPUTE_PROFILE: "a,b"}, role=""))
    found = resolve(snapshot)["nova"]

    said = text(found.reason, found.facts)

    assert said.startswith(
        "The annotation nova.openstack.org/compute-profile of node edpm-compute-0 is 'a,b', which is not the name of "
        "one ComputeProfile: "
    )
    assert said.endswith("Write one name, or empty it to have none; what is deployed stays as it is")
