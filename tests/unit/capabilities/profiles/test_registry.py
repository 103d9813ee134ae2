"""Registry of built-in and declared services, and faults of declarations."""

from __future__ import annotations

import random
from typing import Any

import pytest

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.planning.registry import BUILT_IN, build_registry, service_from

from ....builders import profiles as build


def names_of(*declarations: Any) -> list[str]:
    return [service.name for service in build_registry(declarations).services]


def fault_of(name: str = "storage", **spec: Any) -> str:
    return build_registry([build.profile_service(name, **spec)]).faults[name]


# built-in services


def test_the_three_services_of_the_design_are_built_in() -> None:
    assert [(each.name, each.annotation_key, each.profile_kind, each.object_kind) for each in BUILT_IN] == [
        ("neutron", "neutron.openstack.org/network-profile", "NetworkProfile", "OVNMetadataAgent"),
        ("nova", "nova.openstack.org/compute-profile", "ComputeProfile", "NovaExternalCompute"),
        ("telemetry", "telemetry.openstack.org/telemetry-profile", "TelemetryProfile", ""),
    ]


def test_the_fields_of_a_compute_are_those_of_the_design() -> None:
    nova = build.NOVA

    assert (nova.node_field, nova.profile_field) == ("dataplaneNodeName", "computeProfileName")
    assert (nova.config_field, nova.create_when) == ("customComputeServiceConfig", "nova.openstack.org/cell")


def test_an_agent_needs_no_further_annotation_and_telemetry_makes_no_object() -> None:
    assert build.NEUTRON.create_when == ""
    assert build.NEUTRON.makes_object
    assert not build.TELEMETRY.makes_object


def test_without_declarations_the_built_in_ones_are_all() -> None:
    assert build_registry([]).services == BUILT_IN
    assert build_registry([]).faults == {}


# declared services


def test_a_declared_service_says_all_that_a_built_in_one_does() -> None:
    service = service_from(
        build.profile_service(createWhenAnnotation="storage.openstack.org/pool", maxUnavailable=3, configField="conf")
    )

    assert (service.name, service.is_built_in) == ("storage", False)
    assert service.annotation_key == "storage.openstack.org/storage-profile"
    assert (service.profile_api_version, service.profile_kind) == ("storage.openstack.org/v1", "StorageProfile")
    assert (service.object_api_version, service.object_kind) == ("storage.openstack.org/v1", "StorageAgent")
    assert (service.node_field, service.profile_field, service.config_field) == ("nodeName", "profileName", "conf")
    assert (service.create_when, service.max_unavailable) == ("storage.openstack.org/pool", 3)


def test_declared_services_stand_among_the_built_in_ones_by_name() -> None:
    declarations = [build.profile_service("storage"), build.profile_service("metering")]

    assert names_of(*declarations) == ["metering", "neutron", "nova", "storage", "telemetry"]


def test_a_declared_service_may_do_without_an_object() -> None:
    service = build.profile_service(object=None, nodeField=None, profileField=None)

    assert "storage" in names_of(service)


# invalid declarations


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        pytest.param({"annotationKey": None}, "spec.annotationKey is required", id="no key"),
        pytest.param({"profile": {"kind": "P"}}, "spec.profile.apiVersion is required", id="no version"),
        pytest.param({"profile": None}, "spec.profile.kind is required", id="no profile"),
        pytest.param({"object": {"apiVersion": "a/v1"}}, "spec.object.kind is required", id="no object kind"),
        pytest.param({"nodeField": None}, "spec.nodeField is required", id="no node field"),
        pytest.param({"profileField": None}, "spec.profileField is required", id="no profile field"),
        pytest.param(
            {"nodeField": "target.nodeName"},
            "spec.nodeField 'target.nodeName' is invalid: set it to a field of the object's spec, such as "
            "dataplaneNodeName",
            id="a path",
        ),
        pytest.param(
            {"object": None},
            "spec.nodeField 'nodeName' needs spec.object: set spec.object, or remove spec.nodeField",
            id="fields of no object",
        ),
        pytest.param(
            {"object": None, "nodeField": None, "profileField": None, "createWhenAnnotation": "a/b"},
            "spec.createWhenAnnotation 'a/b' needs spec.object: set spec.object, or remove spec.createWhenAnnotation",
            id="condition of no object",
        ),
        pytest.param(
            {"annotationKey": "a/b/c"}, "spec.annotationKey 'a/b/c' is not a valid annotation key", id="key syntax"
        ),
        pytest.param(
            {"createWhenAnnotation": "not a key"},
            "spec.createWhenAnnotation 'not a key' is not a valid annotation key",
            id="condition syntax",
        ),
        pytest.param(
            {"profile": {"apiVersion": "a/b/v1", "kind": "P"}},
            "spec.profile.apiVersion 'a/b/v1' is invalid: set it to group/version",
            id="version syntax",
        ),
        pytest.param(
            {"object": {"apiVersion": "a/v1", "kind": "Not A Kind"}},
            "spec.object.kind 'Not A Kind' is invalid: set it to a kind",
            id="kind syntax",
        ),
        pytest.param(
            {"configField": "a[0]"},
            "spec.configField 'a[0]' is invalid: set it to a field of a profile's spec",
            id="field syntax",
        ),
        pytest.param(
            {"profileField": "nodeName"},
            "spec.profileField 'nodeName' is also spec.nodeField: use one field for each name",
            id="one field for two",
        ),
        pytest.param(
            {"object": {"apiVersion": "storage.openstack.org/v2", "kind": "StorageProfile"}},
            "spec.object.kind 'StorageProfile' is also spec.profile.kind: choose another kind for the object",
            id="object is profile",
        ),
        pytest.param(
            {"object": {"apiVersion": "nova.openstack.org/v9", "kind": "NovaExternalCompute"}},
            "spec.object.kind 'NovaExternalCompute' of nova.openstack.org/v9 belongs to the built-in service nova: "
            "choose a kind of your own",
            id="object of nova, in whatever version",
        ),
        pytest.param(
            {"object": {"apiVersion": names.DATAPLANE_API_VERSION, "kind": names.NODE_KIND}},
            "belongs to the data plane: choose a kind of your own",
            id="object is the node",
        ),
        pytest.param(
            {"object": {"apiVersion": "v1", "kind": "ConfigMap"}},
            "spec.object.kind 'ConfigMap' of v1 belongs to the configuration that Nodeyard renders: choose a kind of "
            "your own",
            id="object is configuration",
        ),
        pytest.param(
            {"profile": {"apiVersion": "v1", "kind": "Secret"}},
            "spec.profile.kind 'Secret' of v1 belongs to the configuration that Nodeyard renders: choose a kind of "
            "your own",
            id="profile is configuration",
        ),
        pytest.param(
            {"profile": {"apiVersion": "nova.openstack.org/v9", "kind": "NovaExternalCompute"}},
            "spec.profile.kind 'NovaExternalCompute' of nova.openstack.org/v9 belongs to the built-in service nova: "
            "choose a kind of your own",
            id="profile is an object of nova",
        ),
        pytest.param(
            {"annotationKey": names.COMPUTE_PROFILE},
            "spec.annotationKey 'nova.openstack.org/compute-profile' belongs to the built-in service nova: "
            "choose another key",
            id="key of nova",
        ),
        pytest.param(
            {"annotationKey": names.CELL}, "belongs to the built-in service nova: choose another key", id="the cell"
        ),
    ],
)
def test_a_bad_declaration_does_not_count_and_gets_a_remedy(spec: dict[str, Any], fault: str) -> None:
    found = build_registry([build.profile_service(**spec)])

    assert found.services == BUILT_IN
    assert found.faults["storage"].startswith("ProfileService storage: ")
    assert fault in found.faults["storage"]
    assert found.key_conflicts == {}


def test_all_faults_are_reported_at_once() -> None:
    fault = fault_of(annotationKey=None, nodeField=None)

    assert "spec.annotationKey is required" in fault
    assert "spec.nodeField is required" in fault


def test_the_name_of_a_built_in_service_is_taken() -> None:
    assert "metadata.name 'nova' is the name of a built-in service: choose another name" in fault_of("nova")


def test_a_name_that_cannot_be_a_label_is_refused() -> None:
    assert "is longer than 63 characters" in fault_of("s" * 64, annotationKey="a/b-profile")


def test_a_name_of_63_characters_counts() -> None:
    name = "s" * 63

    assert name in names_of(build.profile_service(name, annotationKey="a/b-profile", **kinds("a")))


def kinds(group: str) -> dict[str, Any]:
    return {
        "profile": {"apiVersion": f"{group}/v1", "kind": "P"},
        "object": {"apiVersion": f"{group}/v1", "kind": "O"},
    }


# several declarations


def test_two_services_with_one_key_are_both_refused() -> None:
    key = "disks.example.com/disk-profile"
    found = build_registry(
        [build.profile_service("slow", annotationKey=key), build.profile_service("fast", annotationKey=key)]
    )

    assert found.services == BUILT_IN
    assert found.key_conflicts == {key: ("fast", "slow")}
    assert found.faults["fast"] == (
        f"ProfileService fast: spec.annotationKey '{key}' is also declared by slow, so none of them is used: give "
        f"each service its own key"
    )
    assert "is also declared by fast" in found.faults["slow"]


def test_a_third_service_beside_them_still_counts() -> None:
    key = "disks.example.com/disk-profile"
    twice = [build.profile_service(name, annotationKey=key) for name in ("slow", "fast")]

    assert "storage" in names_of(*twice, build.profile_service("storage"))


def test_a_declaration_that_does_not_count_anyway_takes_no_key_from_another() -> None:
    key = "disks.example.com/disk-profile"
    bad = build.profile_service("bad", annotationKey=key, nodeField=None)
    good = build.profile_service("good", annotationKey=key)

    found = build_registry([bad, good])

    assert "good" in [service.name for service in found.services]
    assert set(found.faults) == {"bad"}


def test_a_key_that_is_built_in_is_not_claimed_twice_by_who_claims_it_too() -> None:
    found = build_registry([build.profile_service(name, annotationKey=names.COMPUTE_PROFILE) for name in ("a", "b")])

    assert found.services == BUILT_IN
    assert found.key_conflicts == {}
    assert set(found.faults) == {"a", "b"}


def test_two_services_with_one_object_kind_are_both_refused() -> None:
    made = {"apiVersion": "disks.example.com/v1", "kind": "DiskAgent"}
    found = build_registry([build.profile_service(name, object=made) for name in ("slow", "fast")])

    assert found.services == BUILT_IN
    assert "spec.object.kind 'DiskAgent' of disks.example.com is also the object of slow" in found.faults["fast"]
    assert found.key_conflicts == {}


def _chained(version: str) -> list[Any]:
    """Return two services: the object of the first is the profile of the second."""
    made = {"apiVersion": "disks.example.com/v1", "kind": "DiskAgent"}
    chosen = {"apiVersion": f"disks.example.com/{version}", "kind": "DiskAgent"}
    return [build.profile_service("disks", object=made), build.profile_service("tiers", profile=chosen)]


def test_an_object_kind_may_be_the_profile_of_another_service_in_the_same_version() -> None:
    found = build_registry(_chained("v1"))

    assert found.faults == {}
    assert {each.name for each in found.services} >= {"disks", "tiers"}


def test_a_kind_is_not_the_object_of_one_and_the_profile_of_another_in_two_versions() -> None:
    found = build_registry(_chained("v2"))

    assert found.services == BUILT_IN
    assert found.faults == {
        "tiers": "ProfileService tiers: spec.profile.apiVersion 'disks.example.com/v2': DiskAgent is the object of "
        "disks in disks.example.com/v1, so neither is used: set the same version in both",
        "disks": "ProfileService disks: spec.object.apiVersion 'disks.example.com/v1': DiskAgent is the profile of "
        "tiers in disks.example.com/v2, so neither is used: set the same version in both",
    }


def test_the_order_of_the_declarations_does_not_matter() -> None:
    declarations = [
        build.profile_service("storage"),
        build.profile_service("slow", annotationKey="a/b-profile"),
        build.profile_service("fast", annotationKey="a/b-profile"),
        build.profile_service("bad", nodeField=None),
    ]
    shuffled = random.Random(7).sample(declarations, len(declarations))

    assert build_registry(shuffled) == build_registry(declarations)
