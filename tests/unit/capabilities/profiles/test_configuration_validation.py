"""Faults of a configuration name object, field and line."""

from __future__ import annotations

import pytest

from nodeyard.capabilities.profiles.planning.configuration.ini import EMPTY
from nodeyard.capabilities.profiles.planning.configuration.validation import (
    MAX_MESSAGES,
    ValidationResult,
    validate_node,
    validate_profile,
)
from nodeyard.capabilities.profiles.snapshot import Profile, Service

from ....builders.profiles import DEDICATED, NEUTRON, NODE, NOVA, SHARED, TELEMETRY, service

PROFILE = "ComputeProfile/p: spec.customComputeServiceConfig"
CUSTOM = f"NovaExternalCompute/{NODE}: spec.customServiceConfig"


@pytest.mark.parametrize("config", [SHARED, DEDICATED], ids=["shared", "dedicated"])
def test_the_profiles_of_the_seed_are_clean(config: str) -> None:
    assert validate_profile(NOVA, "p", config) == ValidationResult()
    assert validate_node(NOVA, NODE, Profile("p", config=config), "") == ValidationResult()


def test_a_profile_without_contents_is_warned_about() -> None:
    assert validate_profile(NOVA, "p", "") == ValidationResult(warnings=(f"{PROFILE}, line 1: {EMPTY}",))


def test_profiles_of_a_service_without_configuration_have_no_fault() -> None:
    bare = Service("rack", "example.com/rack-profile", "example.com/v1", "RackProfile")
    assert validate_profile(bare, "p", "") == ValidationResult()
    assert validate_node(bare, NODE, Profile("p"), "") == ValidationResult()


def test_a_text_of_unknown_format_is_not_checked() -> None:
    plain = service(configFormat="Text")
    assert validate_profile(plain, "p", "disks: {nvme0: fast}\n\ttabs too") == ValidationResult()
    assert validate_profile(plain, "p", " \n").warnings == (f"StorageProfile/p: spec.config, {EMPTY}",)
    assert validate_profile(service(), "p", "disks: {nvme0: fast}\n").faults


def test_a_fault_names_object_field_and_line() -> None:
    assert validate_profile(NOVA, "p", "[compute]\n\tcpu_shared_set = 1\n").faults == (
        f"{PROFILE}, line 2: is indented with a tab; use spaces",
    )


def test_faults_of_a_profile_are_faults_of_a_node_that_has_it() -> None:
    config = "[compute]\ncpu_shared_set = x\ncpu_shared_set = 9-2\n"
    assert validate_node(NOVA, NODE, Profile("p", config=config), "") == validate_profile(NOVA, "p", config)
    assert len(validate_profile(NOVA, "p", config).faults) == 2


def test_custom_configuration_is_validated_too_but_may_be_missing() -> None:
    profile = Profile("p", config=SHARED)
    assert validate_node(NOVA, NODE, profile, "") == ValidationResult()
    assert validate_node(NOVA, NODE, profile, "x = 1\n").faults == (
        f"{CUSTOM}, line 1: option 'x' is before the first [section] header; add one above it",
    )


def test_the_configuration_of_a_node_is_validated_too() -> None:
    assert validate_node(NOVA, NODE, None, "", "x = 1\n").faults == (
        f"OpenStackDataPlaneNode/{NODE}: spec.node.nova.customServiceConfig or its role's "
        f"spec.nodeTemplate.nova.customServiceConfig, line 1: option 'x' is before the first [section] header; add "
        f"one above it",
    )


def test_without_a_profile_nothing_is_missing() -> None:
    assert validate_node(NOVA, NODE, None, "") == ValidationResult()


def test_an_overlap_between_profile_and_custom_configuration_names_both() -> None:
    custom = "[compute]\ncpu_dedicated_set = 15-16\n"
    assert validate_node(NOVA, NODE, Profile("p", config=SHARED), custom).faults == (
        f"[compute] cpu_shared_set = '4-12,^8,15' ({PROFILE}, line 2) and cpu_dedicated_set = '15-16' "
        f"({CUSTOM}, line 2) overlap in CPUs 15; a CPU is either shared or dedicated: remove them from one of the two",
    )


def test_custom_configuration_wins_over_the_profile_and_the_profile_over_the_node() -> None:
    shared, dedicated = "[compute]\ncpu_shared_set = {}\n", "[compute]\ncpu_dedicated_set = {}\n"
    profile = Profile("p", config=dedicated.format("4-7"))
    assert validate_node(NOVA, NODE, profile, shared.format("0-3"), shared.format("0-7")) == ValidationResult()
    assert validate_node(NOVA, NODE, profile, dedicated.format("8-9"), shared.format("0-7")) == ValidationResult()


@pytest.mark.parametrize("service", [NEUTRON, TELEMETRY], ids=lambda each: each.name)
def test_cpu_sets_are_a_matter_of_nova_alone(service: Service) -> None:
    assert (
        validate_profile(service, "p", "[compute]\ncpu_shared_set = many\ncpu_dedicated_set = many\n")
        == ValidationResult()
    )


def test_faults_above_the_limit_are_only_counted() -> None:
    judged = validate_profile(NOVA, "p", "[s]\n" + "x\n" * 500)
    assert len(judged.faults) == MAX_MESSAGES + 1
    assert judged.faults[-1] == f"{PROFILE}: and {500 - MAX_MESSAGES} more"
