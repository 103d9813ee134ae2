"""Explanation of the profiles of a node."""

from __future__ import annotations

from typing import Any

from tests.builders.plans import render_decision

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.messages.states import BudgetSpent, Pinned, Stalled
from nodeyard.capabilities.profiles.planning.decisions import decide
from nodeyard.capabilities.profiles.planning.resolution import resolve
from nodeyard.capabilities.profiles.snapshot import NodeSnapshot
from nodeyard.plan.message import Message
from nodeyard.plan.model import Blocked, Decision, ObjectRef

from ....builders import profiles as build


def story(name: str = "edpm-compute-1", **given: Any) -> NodeSnapshot:
    """A node of the design's example."""
    annotations = {**(build.SEED_NODE_ANNOTATIONS if name == "edpm-compute-1" else {}), **given.pop("annotations", {})}
    role = build.role(annotations=build.SEED_ROLE_ANNOTATIONS)
    return build.snapshot(build.node(name, annotations=annotations), role, **build.seed_profiles(), **given)


def node_ref(snapshot: NodeSnapshot, **other: Any) -> ObjectRef:
    of = {"api_version": names.DATAPLANE_API_VERSION, "kind": names.NODE_KIND}
    return ObjectRef(**{**of, "namespace": build.NAMESPACE, "name": snapshot.node.name, **other})


def blocked(snapshot: NodeSnapshot, message: Message) -> Blocked:
    return Blocked(object=node_ref(snapshot), reason=message.reason, facts=message)


STALLED = Stalled(service="nova", profile="p", object="edpm-compute-7")
PINNED = Pinned(service="nova", node="edpm-compute-1", kind="ComputeProfile", profile="p")


def changes(decision: Decision) -> list[str]:
    """Return the reasons of what would change a decision."""
    return [each.reason for each in decision.would_change if isinstance(each, Message)]


def asked(snapshot: NodeSnapshot, *hindrances: Blocked, **ref: Any) -> Decision:
    found = decide(node_ref(snapshot, **ref), snapshot, resolve(snapshot), hindrances)
    assert found is not None
    return found


def said(decision: Decision, name: str) -> str:
    candidate = next(each for each in decision.candidates if each.name == name)
    found: str = candidate.facts.text()
    return found


# the design's story


def test_the_whole_answer_about_edpm_compute_1() -> None:
    assert render_decision(asked(story())) == (
        "OpenStackDataPlaneNode openstack/edpm-compute-1\n"
        "  Reconciled: Node edpm-compute-1 has the profiles chosen for it\n"
        "\n"
        "  3 candidates selected:\n"
        "    neutron: ChosenByNode: NetworkProfile dpdk is set by annotation\n"
        "      neutron.openstack.org/network-profile on node edpm-compute-1\n"
        "    nova: ChosenByNode: ComputeProfile dell-r740-dedicated-cpus is set by annotation\n"
        "      nova.openstack.org/compute-profile on node edpm-compute-1, overriding dell-r740-shared-cpus\n"
        "      (role edpm-compute)\n"
        "    telemetry: ChosenByRole: TelemetryProfile collector is set by annotation\n"
        "      telemetry.openstack.org/telemetry-profile on role edpm-compute\n"
        "\n"
        "  What would change it:\n"
        "    - Annotate the node with one of neutron.openstack.org/network-profile,\n"
        "      nova.openstack.org/compute-profile, telemetry.openstack.org/telemetry-profile: this overrides\n"
        "      the role for this node only; an empty value means no profile\n"
        "    - Annotate the role edpm-compute with one of neutron.openstack.org/network-profile,\n"
        "      nova.openstack.org/compute-profile, telemetry.openstack.org/telemetry-profile: this applies to\n"
        "      its nodes that do not have the annotation\n"
    )


def test_edpm_compute_0_lacks_a_network_profile_and_learns_who_can_choose_one() -> None:
    decision = asked(story("edpm-compute-0"))

    assert [(each.name, each.is_taken, each.reason) for each in decision.candidates] == [
        ("neutron", False, "NoProfile"),
        ("nova", True, "ChosenByRole"),
        ("telemetry", True, "ChosenByRole"),
    ]


# subjects


def test_another_node_is_not_explained() -> None:
    snapshot = story()

    assert decide(node_ref(snapshot, name="other"), snapshot, resolve(snapshot), ()) is None
    assert decide(node_ref(snapshot, namespace="other"), snapshot, resolve(snapshot), ()) is None


def test_an_object_of_a_kind_that_is_not_made_is_not_explained() -> None:
    snapshot = story()
    ref = node_ref(snapshot, kind="Pod", api_version="v1")

    assert decide(ref, snapshot, resolve(snapshot), ()) is None


def test_the_object_of_a_service_is_explained_by_the_choice_for_it() -> None:
    decision = asked(story(), kind=names.COMPUTE_KIND, api_version="nova.openstack.org/v1")

    assert decision.rule == "ChosenByNode"
    assert decision.facts.profile == "dell-r740-dedicated-cpus"
    assert changes(decision) == ["AnnotateNode"]


def test_a_waiting_object_names_its_blocker_and_its_choice() -> None:
    snapshot = story()
    decision = asked(
        snapshot,
        blocked(
            snapshot,
            BudgetSpent(service="nova", node="n", kind="ComputeProfile", profile="p", limit=1, total=4),
        ),
        kind=names.COMPUTE_KIND,
        api_version=names.NOVA_API_VERSION,
    )

    assert decision.rule == "MaxUnavailable"
    assert [each.reason for each in decision.candidates] == ["ChosenByNode"]


def test_the_same_kind_of_another_group_is_not_the_services() -> None:
    snapshot = story()
    ref = node_ref(snapshot, kind=names.COMPUTE_KIND, api_version="example.com/v1beta1")

    assert decide(ref, snapshot, resolve(snapshot), ()) is None


# the rule


def test_a_blocked_plan_is_explained_on_node_and_service() -> None:
    snapshot = story()
    decision = asked(snapshot, blocked(snapshot, STALLED))

    assert decision.rule == "ProgressDeadlineExceeded"
    assert changes(decision) == ["CheckServiceOperator"]
    assert "edpm-compute-7 did not become available" in said(decision, "nova")
    assert "edpm-compute-7" not in said(decision, "neutron")


def test_a_pinned_profile_is_the_rule_where_there_is_no_other() -> None:
    snapshot = story()
    decision = asked(snapshot, blocked(snapshot, PINNED))

    assert decision.rule == "PinnedByPolicy"
    both = blocked(snapshot, PINNED), blocked(snapshot, STALLED)
    assert asked(snapshot, *both).rule == "ProgressDeadlineExceeded"
    assert "spec.profileUpdatePolicy is Manual" in said(decision, "nova")


def test_a_profile_that_does_not_exist_is_the_rule_with_its_remedies() -> None:
    decision = asked(story(annotations={names.NETWORK_PROFILE: "gone"}))

    assert (decision.rule, decision.facts.profile) == ("ProfileNotFound", "gone")
    assert [each.text() for each in decision.would_change if isinstance(each, Message)] == [
        "Create NetworkProfile gone in namespace openstack",
        "Annotate the node with neutron.openstack.org/network-profile: this overrides the role for this node only; an "
        "empty value means no profile",
    ]


def test_a_service_does_not_repeat_the_text_of_its_choice() -> None:
    snapshot = story(annotations={names.NETWORK_PROFILE: "gone"})
    decision = asked(snapshot, blocked(snapshot, resolve(snapshot)["neutron"].message))

    assert said(decision, "neutron").count("does not exist") == 1


def test_a_role_that_does_not_exist_is_the_rule() -> None:
    decision = asked(build.snapshot(build.node(role="gone")))

    assert (decision.rule, changes(decision)) == ("RoleNotFound", ["CreateRole"])
    assert [each.text() for each in decision.would_change if isinstance(each, Message)] == [
        "Create OpenStackDataPlaneRole gone"
    ]


# unset choices


def test_annotations_of_no_service_and_of_two_services_are_left_and_reported() -> None:
    decision = asked(
        story(
            annotations={"audio.example.com/tone-profile": "low", "disks.example.com/disk-profile": "fast"},
            key_conflicts={"disks.example.com/disk-profile": ("fast", "slow"), "unused.example.com/x": ("a", "b")},
        )
    )
    left = {each.name: each.reason for each in decision.candidates if not each.is_taken}

    assert left == {
        "disks.example.com/disk-profile": "AnnotationKeyConflict",
        "audio.example.com/tone-profile": "UnknownService",
    }
    assert "fast, slow" in said(decision, "disks.example.com/disk-profile")


def test_a_node_without_a_role_gets_no_advice_to_annotate_one() -> None:
    snapshot = build.snapshot(build.node("lonely", spec={}), None)
    assert changes(asked(snapshot)) == ["AnnotateNode"]
