"""Admission of nodes, roles, profiles and ProfileServices."""

from __future__ import annotations

from typing import Any

import pytest
from tests.builders.profile_views import ProfilesView
from tests.builders.profiles import (
    NAMESPACE,
    SEED_NODE_ANNOTATIONS,
    SEED_ROLE_ANNOTATIONS,
    SHARED,
    compute_body,
    compute_profile_body,
    network_profile_body,
    node_body,
    role_body,
    service_body,
    telemetry_profile_body,
)

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.webhook import WEBHOOKS
from nodeyard.kube.json import Object
from nodeyard.runtime.webhooks import AdmissionRequest, AdmissionResponse, GroupVersionKind, User

REVIEWS = {
    names.NODE_KIND: "nodes",
    names.ROLE_KIND: "roles",
    names.COMPUTE_PROFILE_KIND: "profiles",
    names.NETWORK_PROFILE_KIND: "profiles",
    names.TELEMETRY_PROFILE_KIND: "profiles",
    names.SERVICE_KIND: "services",
    "StorageProfile": "profiles",
}
EMPTY = ProfilesView(role_body())
PROFILES = (
    compute_profile_body("dell-r740-shared-cpus"),
    compute_profile_body("dell-r740-dedicated-cpus"),
    network_profile_body("dpdk"),
    telemetry_profile_body("collector"),
)
ROLE = role_body(annotations=SEED_ROLE_ANNOTATIONS)


def ask(
    operation: Any, new: Object | None, old: Object | None, view: ProfilesView, user: str = "jane"
) -> AdmissionResponse:
    subject = new or old or {}
    metadata = subject["metadata"]
    group, _, version = subject["apiVersion"].partition("/")
    webhook = next(each for each in WEBHOOKS if each.name == REVIEWS[subject["kind"]])
    review = AdmissionRequest(
        uid="u",
        operation=operation,
        kind=GroupVersionKind(group=group, version=version, kind=subject["kind"]),
        name=metadata.get("name", ""),
        namespace=metadata.get("namespace", ""),
        user=User(username=user),
        object=new,
        old_object=old,
    )
    return webhook.review(review, view)


def created(body: Object, view: ProfilesView = EMPTY) -> AdmissionResponse:
    return ask("CREATE", body, None, view)


def updated(old: Object, new: Object, view: ProfilesView = EMPTY) -> AdmissionResponse:
    return ask("UPDATE", new, old, view)


def deleted(body: Object, view: ProfilesView, **more: Any) -> AdmissionResponse:
    return ask("DELETE", None, body, view, **more)


def node(name: str = "edpm-compute-0", annotations: dict[str, str] | None = None, **given: Any) -> Object:
    return node_body(name, annotations=annotations, **given)


def choosing(value: str, **given: Any) -> Object:
    return node(annotations={names.COMPUTE_PROFILE: value}, **given)


def in_cell(name: str, cell: str = "nova-cell1") -> Object:
    return compute_body(name, spec={"cellName": cell})


def cell(value: str) -> Object:
    return role_body(annotations={names.CELL: value})


def quiet(response: AdmissionResponse) -> bool:
    return response.is_allowed and response.warnings == ()


# choices


def test_the_nodes_and_the_role_of_the_design_pass_without_a_warning():
    view = ProfilesView(ROLE, *PROFILES)

    assert quiet(created(ROLE, view))
    assert quiet(created(node(), view))
    assert quiet(created(node("edpm-compute-1", SEED_NODE_ANNOTATIONS), view))


@pytest.mark.parametrize("value", ["a,b", "Dell", " dell", "dell ", "a/b", "x" * 254])
@pytest.mark.parametrize("make", [node_body, role_body])
def test_a_choice_that_is_no_name_is_denied_with_key_and_value(make, value):
    response = created(make("x", annotations={names.COMPUTE_PROFILE: value}))

    assert (response.is_allowed, response.code, response.reason) == (False, 422, "Invalid")
    assert f"Annotation {names.COMPUTE_PROFILE} on " in response.message
    assert repr(value) in response.message
    assert "is not the name of one ComputeProfile" in response.message


@pytest.mark.parametrize("make", [node_body, role_body])
def test_a_cell_that_is_no_name_is_denied(make):
    response = created(make("x", annotations={names.CELL: "Cell 1"}))

    assert (response.is_allowed, response.code) == (False, 422)
    assert f"Annotation {names.CELL} on " in response.message
    assert "'Cell 1'" in response.message


def test_a_choice_of_a_declared_service_is_validated_alike():
    view = ProfilesView(service_body("storage"))

    response = created(node(annotations={"storage.openstack.org/storage-profile": "A"}), view)

    assert not response.is_allowed
    assert "StorageProfile" in response.message


def test_an_empty_choice_means_none_and_is_fine():
    assert quiet(created(choosing("")))


def test_an_old_invalid_choice_does_not_block_other_changes():
    response = updated(choosing("a,b"), choosing("a,b", hostName="new"))

    assert response.is_allowed
    assert [warning.rpartition("; ")[2] for warning in response.warnings] == [
        "allowed because it was already so before this change"
    ]


def test_a_bad_choice_that_becomes_another_bad_one_is_denied():
    assert not updated(choosing("a,b"), choosing("c,d")).is_allowed


def test_a_bad_choice_can_be_fixed():
    assert updated(choosing("a,b"), choosing("a")).is_allowed


def test_a_node_that_is_going_is_never_held_up():
    going = node(annotations={names.COMPUTE_PROFILE: "a,b"}, deletionTimestamp="2030-01-01T00:00:00Z")

    assert quiet(updated(choosing("ok"), going))


def test_a_choice_of_a_missing_profile_is_warned_of():
    response = created(choosing("missing"), ProfilesView(ROLE))

    assert response.is_allowed
    (warning,) = response.warnings
    assert warning.startswith(f"ComputeProfile missing does not exist in namespace {NAMESPACE}")


def test_a_choice_that_has_not_changed_is_not_warned_of_again():
    assert quiet(updated(choosing("missing"), choosing("missing", hostName="new"), ProfilesView(ROLE)))


def test_profiles_of_a_declared_service_that_nobody_watches_yet_are_not_missed():
    view = ProfilesView(service_body("storage"), ROLE)

    assert quiet(created(node(annotations={"storage.openstack.org/storage-profile": "fast"}), view))


def test_an_annotation_that_no_service_reads_is_warned_of():
    (warning,) = created(node(annotations={"nova.openstack.org/computer-profile": "x"})).warnings

    assert "nova.openstack.org/computer-profile" in warning


def test_a_key_that_two_services_claim_is_warned_of():
    key = "storage.openstack.org/storage-profile"
    view = ProfilesView(role_body(), service_body("storage"), service_body("copy", annotationKey=key))

    (warning,) = created(node(annotations={key: "fast"}), view).warnings

    assert "copy, storage" in warning


def test_a_conflict_with_the_role_is_warned_of():
    view = ProfilesView(role_body(networkAttachments=["a"]))

    (warning,) = created(node(networkAttachments=["b"]), view).warnings

    assert warning.startswith("spec.networkAttachments is [b], but role edpm-compute has [a]")


def test_a_body_that_does_not_decode_is_left_to_the_plan():
    assert quiet(created({**node(), "spec": {"role": 5}}))


# cells


def test_the_cell_of_a_node_cannot_change_once_its_compute_is_there():
    old, new = (node(annotations={names.CELL: each}) for each in ("nova-cell1", "nova-cell2"))

    response = updated(old, new, ProfilesView(old, in_cell("edpm-compute-0")))

    assert (response.is_allowed, response.code) == (False, 422)
    assert "edpm-compute-0 is in cell nova-cell1 and cannot move to nova-cell2" in response.message


def test_the_cell_of_a_node_can_change_while_it_has_no_compute():
    old, new = (node(annotations={names.CELL: each}) for each in ("nova-cell1", "nova-cell2"))

    assert quiet(updated(old, new, ProfilesView(old)))


def test_a_role_in_another_cell_cannot_be_taken():
    other = role_body("other", annotations={names.CELL: "nova-cell2"})
    view = ProfilesView(ROLE, other, node(), in_cell("edpm-compute-0"), *PROFILES)

    response = updated(node(), node(role="other"), view)

    assert not response.is_allowed
    assert "cannot move to nova-cell2" in response.message


def test_a_node_in_the_wrong_cell_can_still_be_changed():
    old = node(annotations={names.CELL: "nova-cell2"})
    new = node(annotations={names.CELL: "nova-cell2"}, hostName="new")

    response = updated(old, new, ProfilesView(old, in_cell("edpm-compute-0")))

    assert response.is_allowed
    assert "it was already so before" in response.warnings[0]


def test_removing_the_cell_of_a_node_warns_about_deleted_objects():
    old = node(annotations={names.CELL: "nova-cell1"})

    response = updated(old, node(annotations={names.CELL: ""}), ProfilesView(old, in_cell("edpm-compute-0")))

    assert response.is_allowed
    (warning,) = response.warnings
    assert warning.endswith("which deletes the NovaExternalCompute of 1 node (edpm-compute-0)")


def test_the_cell_of_a_role_cannot_change_while_nodes_follow_it():
    followers = [node(f"n-{number:02}") for number in range(12)]
    own = node("own", {names.CELL: "nova-cell1"})
    computes = [in_cell(each["metadata"]["name"]) for each in (*followers, own)]

    response = updated(cell("nova-cell1"), cell("nova-cell2"), ProfilesView(*followers, own, *computes))

    assert (response.is_allowed, response.code) == (False, 422)
    assert "12 nodes (n-00, n-01, n-02, n-03, n-04, n-05, n-06, n-07, n-08, n-09 and 2 more)" in response.message
    assert "Keep 'nova-cell1', or create another role" in response.message


def test_the_cell_of_a_role_can_change_while_nobody_follows_it():
    own = node("own", {names.CELL: "nova-cell1"})
    unmade = node("unmade")

    response = updated(cell("nova-cell1"), cell("nova-cell2"), ProfilesView(own, unmade, in_cell("own")))

    assert quiet(response)


def test_a_role_that_comes_back_names_the_cell_its_nodes_are_in():
    view = ProfilesView(node(), in_cell("edpm-compute-0"))

    assert quiet(created(cell("nova-cell1"), view))
    response = created(cell("nova-cell2"), view)
    assert not response.is_allowed
    assert response.message.endswith("Set it to the cell that they are in")


def test_removing_the_cell_of_a_role_warns_about_deleted_objects():
    response = updated(cell("nova-cell1"), role_body(), ProfilesView(node(), in_cell("edpm-compute-0")))

    assert response.is_allowed
    assert response.warnings == (
        f"This change removes {names.CELL}, which deletes the NovaExternalCompute of 1 node (edpm-compute-0)",
    )


def test_a_role_goes_with_a_warning_that_names_its_nodes():
    response = deleted(ROLE, ProfilesView(ROLE, node()))

    assert response.is_allowed
    assert "is the role of 1 node (edpm-compute-0)" in response.warnings[0]


def test_a_role_without_nodes_goes_quietly():
    assert quiet(deleted(ROLE, ProfilesView(ROLE)))


# configuration


def test_configuration_that_no_service_can_read_is_denied():
    response = created(compute_profile_body("bad", "cpu_shared_set = 4\n"))

    assert (response.is_allowed, response.code) == (False, 422)
    assert response.message.startswith("ComputeProfile/bad: spec.customComputeServiceConfig")


def test_cpu_sets_that_overlap_are_denied():
    config = "[compute]\ncpu_shared_set = 1-4\ncpu_dedicated_set = 4-8\n"

    assert not created(compute_profile_body("bad", config)).is_allowed


@pytest.mark.parametrize("config", ["", "# [compute]\n# cpu_shared_set = 4\n"], ids=["nothing", "comments"])
def test_configuration_that_is_empty_is_warned_about(config):
    response = created(compute_profile_body("hollow", config))

    assert response.is_allowed
    assert any("spec.customComputeServiceConfig" in warning for warning in response.warnings)


def test_an_old_invalid_configuration_does_not_block_other_changes():
    old = compute_profile_body("bad", "cpu_shared_set = 4\n")

    response = updated(old, {**old, "spec": {**old["spec"], "maxUnavailable": 1}})

    assert response.is_allowed
    assert all(each.endswith("allowed because it was already so before this change") for each in response.warnings)
    assert response.warnings


def test_a_change_says_which_nodes_it_reconfigures():
    old = compute_profile_body("dell-r740-shared-cpus")
    new = compute_profile_body("dell-r740-shared-cpus", SHARED.replace("4.0", "8.0"))
    view = ProfilesView(ROLE, node(), node("edpm-compute-1", SEED_NODE_ANNOTATIONS), *PROFILES)

    response = updated(old, new, view)

    assert response.warnings == (
        "This change to ComputeProfile dell-r740-shared-cpus reconfigures nova on 1 node (edpm-compute-0)",
    )


def test_another_selector_or_priority_says_for_which_nodes_it_decides_otherwise():
    def selecting(name, priority=1, **labels):
        return network_profile_body(name, spec={"nodeSelector": labels, "priority": priority})

    old, other = selecting("dpdk", rack="r1"), selecting("sriov", priority=2, rack="r2")
    nodes = [node(name, labels={"rack": rack}, role="") for name, rack in (("a", "r1"), ("b", "r1"), ("c", "r2"))]
    view = ProfilesView(old, other, *nodes, node("chooses", {names.NETWORK_PROFILE: "dpdk"}, labels={"rack": "r1"}))

    moved = updated(old, selecting("dpdk", rack="r2", priority=3), view)
    gone = updated(old, network_profile_body("dpdk"), view)

    assert moved.warnings == (
        "With this change NetworkProfile dpdk no longer selects 2 nodes (a, b)",
        "With this change NetworkProfile dpdk selects 1 node (c)",
    )
    assert gone.warnings == ("With this change NetworkProfile dpdk no longer selects 2 nodes (a, b)",)
    assert quiet(updated(old, selecting("dpdk", rack="r1"), view))


# deletion of profiles


def test_a_profile_that_nodes_have_is_not_deleted():
    nodes = [node(f"n-{number:02}") for number in range(11)]
    chooser = node("chooser", {names.COMPUTE_PROFILE: "dell-r740-shared-cpus"})
    other = node("other", {names.COMPUTE_PROFILE: "dell-r740-dedicated-cpus"})
    none = node("none", {names.COMPUTE_PROFILE: ""})
    going = node("going", deletionTimestamp="2030-01-01T00:00:00Z")
    view = ProfilesView(ROLE, *nodes, chooser, other, none, going)

    response = deleted(compute_profile_body(), view)

    assert (response.is_allowed, response.code) == (False, 403)
    assert response.message.startswith(
        "ComputeProfile dell-r740-shared-cpus is in use by 12 nodes "
        "(chooser, n-00, n-01, n-02, n-03, n-04, n-05, n-06, n-07, n-08 and 2 more): set "
    )


def test_a_profile_that_is_still_deployed_is_not_deleted_although_another_is_chosen_by_now():
    elsewhere = compute_body("n1", "dell-r740-dedicated-cpus", namespace="elsewhere")
    view = ProfilesView(ROLE, node(), compute_body("edpm-compute-0", "dell-r740-dedicated-cpus"), elsewhere)

    response = deleted(compute_profile_body("dell-r740-dedicated-cpus"), view)

    assert (response.is_allowed, response.code) == (False, 403)
    assert response.message == (
        "ComputeProfile dell-r740-dedicated-cpus is still deployed in the NovaExternalCompute of 1 node "
        "(edpm-compute-0): delete it when they have another profile"
    )


def test_a_profile_of_the_same_name_of_another_service_or_namespace_is_not_in_use():
    view = ProfilesView(ROLE, node())

    assert quiet(deleted(network_profile_body("dell-r740-shared-cpus"), view))
    assert quiet(deleted(compute_profile_body(namespace="elsewhere"), view))


def test_a_profile_that_only_a_role_without_nodes_chooses_goes_with_a_warning():
    response = deleted(telemetry_profile_body(), ProfilesView(ROLE))

    assert response.is_allowed
    assert response.warnings[0].startswith("OpenStackDataPlaneRole edpm-compute still names TelemetryProfile collector")


def test_a_profile_that_selects_nodes_is_not_deleted_while_it_has_them():
    racks = {"rack": "r1"}
    high = network_profile_body("high", spec={"nodeSelector": racks, "priority": 5})
    low = network_profile_body("low", spec={"nodeSelector": racks})
    view = ProfilesView(high, low, node("selected", labels=racks, role=""), node("unlabelled", role=""))

    response = deleted(high, view)

    assert not response.is_allowed
    assert "in use by 1 node (selected)" in response.message
    assert quiet(deleted(low, view))


def test_a_terminating_namespace_does_not_block_its_profiles():
    user = "system:serviceaccount:kube-system:namespace-controller"

    assert quiet(deleted(compute_profile_body(), ProfilesView(ROLE, node()), user=user))


# services


def test_a_service_of_its_own_passes():
    assert quiet(created(service_body("storage"), ProfilesView(service_body("backup"))))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (service_body("storage", annotationKey="backup.openstack.org/backup-profile"), "is also declared by backup"),
        (service_body("storage", annotationKey=names.COMPUTE_PROFILE), "belongs to the built-in service nova"),
        (service_body("nova"), "is the name of a built-in service"),
    ],
    ids=["claimed twice", "a built-in key", "a built-in name"],
)
def test_a_service_that_takes_from_another_is_denied(body, message):
    response = created(body, ProfilesView(service_body("backup")))

    assert (response.is_allowed, response.code) == (False, 422)
    assert message in response.message


def test_a_service_that_was_bad_before_can_be_changed_otherwise_and_fixed():
    key = "backup.openstack.org/backup-profile"
    bad = service_body("storage", annotationKey=key)
    view = ProfilesView(service_body("backup"), bad)

    changed = updated(bad, service_body("storage", annotationKey=key, maxUnavailable=1), view)

    assert changed.is_allowed
    assert "it was already so before" in changed.warnings[0]
    assert quiet(updated(bad, service_body("storage"), view))


# requests


def test_only_operations_with_checks_are_matched():
    asked = {webhook.name: [rule.operations for rule in webhook.rules] for webhook in WEBHOOKS}

    every = ("CREATE", "UPDATE", "DELETE")
    assert asked == {
        "nodes": [("CREATE", "UPDATE")],
        "roles": [every],
        "profiles": [every] * 3,
        "services": [("CREATE", "UPDATE")],
    }
    assert {webhook.failure_policy for webhook in WEBHOOKS} == {"Ignore"}


# profiles of declared services


STORAGE = service_body("storage")
"""Declare a service whose profiles are StorageProfiles of storage.openstack.org."""


def storage_profile(config: str, name: str = "fast") -> Object:
    return {
        "apiVersion": "storage.openstack.org/v1",
        "kind": "StorageProfile",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"config": config},
    }


def test_a_profile_of_a_declared_service_is_validated_like_a_built_in_one():
    response = ask("CREATE", storage_profile("disks: fast"), None, ProfilesView(STORAGE))
    assert not response.is_allowed
    assert "StorageProfile/fast: spec.config, line 1" in response.message


def test_text_is_not_validated_as_ini():
    plain = service_body("storage", configFormat="Text")
    assert ask("CREATE", storage_profile("disks: fast"), None, ProfilesView(plain)).is_allowed


def test_a_profile_of_a_declared_service_that_nodes_have_is_not_deleted():
    node = node_body(role="", annotations={STORAGE["spec"]["annotationKey"]: "fast"})
    response = ask("DELETE", None, storage_profile(""), ProfilesView(STORAGE, node))
    assert "StorageProfile fast is in use by 1 node" in response.message


def test_every_service_with_profiles_of_a_kind_validates_them():
    other = service_body("backup", profile=STORAGE["spec"]["profile"], configFormat="Text")
    view = ProfilesView(STORAGE, other)
    assert not ask("CREATE", storage_profile("disks: fast"), None, view).is_allowed
    assert ask("CREATE", storage_profile("[disk]\nkind = nvme\n"), None, view).is_allowed


class Served(ProfilesView):
    """Serve the declared kinds by these plurals."""

    def __init__(self, plurals: dict[str, str], *bodies: Object) -> None:
        super().__init__(*bodies)
        self._plurals = plurals

    def is_synced(self, kind: str) -> bool:
        return kind in self._plurals or super().is_synced(kind)

    def plural(self, kind: str) -> str:
        return self._plurals[kind]


def rules(view: ProfilesView) -> set[tuple[str, tuple[str, ...]]]:
    """Return the rules in addition to the built-in ones."""
    webhook = next(each for each in WEBHOOKS if each.name == "profiles")
    found = webhook.as_of(view).rules[len(webhook.rules) :]  # type: ignore[arg-type]
    return {(each.group, each.resources) for each in found}


def test_the_server_asks_about_the_profiles_of_declared_services_once_it_has_them():
    kind = "StorageProfile.storage.openstack.org"
    assert rules(EMPTY) == set()
    assert rules(ProfilesView(STORAGE)) == set()
    assert rules(Served({kind: ""}, STORAGE)) == set()
    assert rules(Served({kind: "storageprofiles"}, STORAGE)) == {("storage.openstack.org", ("storageprofiles",))}


@pytest.mark.parametrize("group", ["coordination.k8s.io", "apps", "metrics.kubernetes.io"])
def test_system_namespaces_are_never_matched(group: str):
    taken = service_body("storage", profile={"apiVersion": f"{group}/v1", "kind": "Lease"})
    assert rules(Served({f"Lease.{group}": "leases"}, taken)) == set()


# Secrets


class Narrow(ProfilesView):
    refused = frozenset({"Secret"})


def test_a_profile_in_a_secret_is_refused_where_secrets_are_not_granted():
    body = network_profile_body("dpdk", spec={"renderAs": "Secret"})
    response = created(body, Narrow(node()))
    assert not response.is_allowed
    assert f"add {NAMESPACE} to namespaceGrants.profiles.secrets" in response.message
    assert created(body, ProfilesView(node())).is_allowed


def test_a_profile_that_was_in_a_secret_before_may_be_changed_with_a_warning():
    old = network_profile_body("dpdk", spec={"renderAs": "Secret"})
    new = network_profile_body("dpdk", spec={"renderAs": "Secret", "priority": 1})
    response = updated(old, new, Narrow(node()))
    assert response.is_allowed
    assert any("namespaceGrants.profiles.secrets" in each for each in response.warnings)
    config_map = network_profile_body("dpdk", spec={"renderAs": "ConfigMap"})
    assert not updated(config_map, old, Narrow(node())).is_allowed


def test_a_missing_role_is_warned_of_when_it_is_named():
    (warning,) = created(node(), ProfilesView()).warnings
    assert "OpenStackDataPlaneRole edpm-compute (spec.role of node edpm-compute-0) does not exist" in warning
    assert quiet(updated(node(), node(labels={"rack": "r1"}), ProfilesView()))
