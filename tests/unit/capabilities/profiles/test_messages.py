"""Every reason has a text; a text about a fault has a remedy."""

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
            "ComputeProfile shared does not exist in namespace openstack, but nova.openstack.org/compute-profile on "
            "node edpm-compute-0 names it. Create the profile or name another; the deployed configuration is kept",
        ),
        (
            Reason.NOT_FOUND,
            {**ABOUT, "source": "Role"},
            "ComputeProfile shared does not exist, but nova.openstack.org/compute-profile on role edpm-compute names "
            "it. Create the profile or name another; the deployed configuration is kept",
        ),
        (
            Reason.FORBIDDEN,
            {"service": "storage", "verb": "list", "resource": "storageprofiles.storage.openstack.org"},
            "Nodeyard cannot manage storage: no permission to list storageprofiles.storage.openstack.org. Grant it "
            "with a ClusterRole that aggregates to Nodeyard's role for profiles; the deployed configuration is kept",
        ),
        (
            Reason.FORBIDDEN,
            {"service": "storage", "error": "the API server does not serve StorageProfile"},
            "Nodeyard cannot manage storage: the API server does not serve StorageProfile; the deployed configuration "
            "is kept",
        ),
        (
            Reason.CELL_CHANGED,
            {**ABOUT, "from": "cell1", "to": "cell2"},
            "nova on node edpm-compute-0 is in cell cell1 and cannot move to cell2: set nova.openstack.org/cell back. "
            "To move it, set nova.openstack.org/cell on the node to an empty value, which deletes its "
            "NovaExternalCompute, then set the new cell when that object is gone",
        ),
        (
            Reason.CELL_INVALID,
            {**ABOUT, "source": "Node", "cell": "Cell 1", "error": "no"},
            "Annotation nova.openstack.org/cell on node edpm-compute-0 is 'Cell 1', which is not a valid cell name: "
            "no. Set it to the name of the cell; a compute cannot change its cell later",
        ),
        (
            Reason.BUDGET_SPENT,
            {**ABOUT, "limit": 2, "unavailable": 1, "total": 8},
            "Nova on node edpm-compute-0 waits for a rollout slot: maxUnavailable allows 2 of 8 service objects with "
            "ComputeProfile shared to be unavailable at once",
        ),
        (
            Reason.ROLE_NOT_FOUND,
            {"node": "edpm-compute-0", "role": "gone"},
            "OpenStackDataPlaneRole gone (spec.role of node edpm-compute-0) does not exist: create it, or change "
            "spec.role. Annotations on the node still apply",
        ),
        (
            Reason.ROLE_NOT_FOUND,
            {"node": "edpm-compute-0", "role": "gone", "service": "nova"},
            "OpenStackDataPlaneRole gone (spec.role of node edpm-compute-0) does not exist: the settings that nova "
            "inherits from it are unknown, so the deployed configuration is kept",
        ),
        (
            Reason.ROLLING,
            {"profile": "shared", "updated": 1, "total": 3},
            "Profile shared is rolling out: 1 of 3 service objects updated",
        ),
        (
            Reason.ROLLING,
            {"node": "n1", "service": "nova", "hash": "3f2a"},
            "Waiting for nova on node n1 to report config hash 3f2a in status.hash.profile",
        ),
        (
            Reason.ROLLING,
            {"node": "n1", "service": "nova", "hash": "3f2a", "is_reported": True},
            "Waiting for nova on node n1 to report condition Ready=True",
        ),
        (
            Reason.NO_PROFILE_ON_ROLE,
            {"role": "edpm-compute", "key": names.COMPUTE_PROFILE, "kind": "ComputeProfile", "is_empty": True},
            "Annotation nova.openstack.org/compute-profile on role edpm-compute is empty: its nodes have no "
            "ComputeProfile unless they set their own",
        ),
        (Reason.RECONCILED, {}, "In sync with the spec"),
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
        "ComputeProfile a selects node edpm-compute-0 by spec.nodeSelector, overriding b (spec.nodeSelector)"
    )


def test_a_list_is_told_to_become_one_name() -> None:
    snapshot = build.snapshot(build.node(annotations={names.COMPUTE_PROFILE: "a,b"}, role=""))
    found = resolve(snapshot)["nova"]

    said = text(found.reason, found.facts)

    assert said.startswith(
        "Annotation nova.openstack.org/compute-profile on node edpm-compute-0 is 'a,b', which is not the name of one "
        "ComputeProfile: "
    )
    assert said.endswith("Set it to one name, or to an empty value for no profile; the deployed configuration is kept")
