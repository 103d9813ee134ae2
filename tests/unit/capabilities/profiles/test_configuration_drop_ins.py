"""Rendered files of a service: order, content, hash and limits."""

from __future__ import annotations

import pytest

from nodeyard.capabilities.profiles.planning.configuration.drop_ins import (
    MOST_BYTES,
    Rendered,
    hash_of,
    profile_hash,
    render,
)
from nodeyard.capabilities.profiles.planning.configuration.ini import EMPTY
from nodeyard.capabilities.profiles.snapshot import Profile

from ....builders.profiles import DPDK, NEUTRON, NODE, NOVA, SHARED

PROFILE = Profile("dell-r740-shared-cpus", config=SHARED)


def test_the_files_stand_in_the_order_in_which_they_are_read() -> None:
    rendered = render(NOVA, NODE, PROFILE, "[libvirt]\nvirt_type = kvm\n", "[DEFAULT]\ndebug = true\n")
    assert list(rendered.files.items()) == [
        ("01-nova-defaults.conf", "[DEFAULT]\ndebug = true\n"),
        ("02-nova-profile.conf", SHARED),
        ("03-nova-custom.conf", "[libvirt]\nvirt_type = kvm\n"),
    ]
    assert list(rendered.files) == sorted(rendered.files)
    assert (rendered.faults, rendered.warnings) == ((), ())


def test_files_are_named_after_their_service() -> None:
    assert list(render(NEUTRON, NODE, Profile("dpdk", config=DPDK), "").files) == ["02-neutron-profile.conf"]


def test_an_empty_part_leaves_no_file() -> None:
    assert list(render(NOVA, NODE, PROFILE, "").files) == ["02-nova-profile.conf"]
    assert render(NOVA, NODE, None, "").files == {}


def test_a_profile_without_contents_leaves_no_file_and_a_warning() -> None:
    rendered = render(NOVA, NODE, Profile("p"), "")
    assert (rendered.files, rendered.faults) == ({}, ())
    assert rendered.warnings == (f"ComputeProfile/p: spec.customComputeServiceConfig, line 1: {EMPTY}",)


@pytest.mark.parametrize(
    "config",
    ["[s]\r\na = 1\r\n", "[s]\na = 1", "[s]\ra = 1", "\n\n[s] \na = ü\U0001f600\n\n", "nonsense", "[s]\n\ta\n"],
    ids=["windows", "no end of line", "old mac", "blanks and wide characters", "no INI", "tabs"],
)
def test_a_text_is_kept_byte_for_byte_faults_included(config: str) -> None:
    assert render(NOVA, NODE, Profile("p", config=config), config).files == {
        "02-nova-profile.conf": config,
        "03-nova-custom.conf": config,
    }


def test_faults_of_the_texts_are_faults_of_what_is_rendered() -> None:
    rendered = render(NOVA, NODE, Profile("p", config="[compute]\n\ta\n"), "")
    assert rendered.faults == (
        "ComputeProfile/p: spec.customComputeServiceConfig, line 2: is indented with a tab; use spaces",
    )


# the hash


def test_the_hash_is_short_and_stable() -> None:
    # Written down, because operators report it back: another value reconfigures every node there is.
    assert render(NOVA, NODE, PROFILE, "").hash == "df7b5059bb99266c"


def test_nodes_with_the_same_files_have_the_same_hash() -> None:
    assert render(NOVA, "a", PROFILE, "").hash == render(NOVA, "b", PROFILE, "").hash


@pytest.mark.parametrize(
    "other",
    [
        render(NOVA, NODE, Profile("p", config=SHARED + "\n"), ""),
        render(NOVA, NODE, Profile("p", config=SHARED.replace("\n", "\r\n")), ""),
        render(NOVA, NODE, None, SHARED),
        render(NOVA, NODE, None, "", SHARED),
        render(NEUTRON, NODE, Profile("p", config=SHARED), ""),
        render(NOVA, NODE, None, ""),
    ],
    ids=["an end of line", "other ends of lines", "as custom", "as defaults", "another service", "nothing"],
)
def test_another_byte_or_another_file_makes_another_hash(other: Rendered) -> None:
    assert other.hash not in ("", render(NOVA, NODE, PROFILE, "").hash)


def test_the_hash_does_not_depend_on_the_order_in_which_files_are_given() -> None:
    assert hash_of({"a": "1", "b": "2"}) == hash_of({"b": "2", "a": "1"})


def test_the_hash_separates_names_and_contents() -> None:
    assert len({hash_of({"a": "bc"}), hash_of({"ab": "c"}), hash_of({"a": "", "bc": ""})}) == 3


def test_the_hash_of_a_profile_equals_that_of_a_node_without_other_layers() -> None:
    assert profile_hash(NOVA, SHARED) == render(NOVA, NODE, PROFILE, "").hash
    assert profile_hash(NOVA, "") == render(NOVA, NODE, None, "").hash


# limits


def test_more_than_a_config_map_holds_is_a_fault() -> None:
    comment = "#" * (MOST_BYTES - len("[s]\n") - len("ü".encode()))
    assert render(NOVA, NODE, Profile("p", config=f"[s]\n{comment}ü"), "").faults == ()
    over = render(NOVA, NODE, Profile("p", config=f"[s]\n{comment}ü"), "[s]\n")
    assert over.faults == (
        f"OpenStackDataPlaneNode/{NODE}: the configuration of nova has 1,048,580 bytes in 02-nova-profile.conf and "
        "03-nova-custom.conf, more than the 1,048,576 of a ConfigMap or Secret: shorten it",
    )


def test_a_node_name_that_is_no_label_value_is_a_fault() -> None:
    name = "n" * 64
    assert render(NOVA, name, PROFILE, "").faults == (
        f"OpenStackDataPlaneNode/{name}: its name is not a valid label value: must be no more than 63 bytes",
    )


def test_a_node_name_too_long_for_its_configuration_is_a_fault() -> None:
    name = "n" * 250
    assert (
        f"name of the configuration object '{name}-nova-config': must be no more than 253 characters"
        in render(NOVA, name, PROFILE, "").faults
    )
