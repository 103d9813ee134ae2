"""Content of a snapshot; derived values are cached per snapshot."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.collect.nodes import collect_node
from nodeyard.capabilities.profiles.controller import PROFILES
from nodeyard.capabilities.profiles.planning.inheritance import effective_spec
from nodeyard.capabilities.profiles.planning.resolution import resolve
from nodeyard.capabilities.profiles.planning.services import desired_config
from nodeyard.capabilities.profiles.snapshot import NodeSnapshot
from nodeyard.kube.json import Object

from ....builders import profiles as build
from ....builders.profile_views import ProfilesView


def snapshot(value: str = "a") -> NodeSnapshot:
    node = build.node(annotations={names.COMPUTE_PROFILE: value})
    return build.snapshot(node, build.role(), nova=[build.profile("a", build.SHARED), build.profile("b")])


def test_the_configuration_of_a_node_is_found_by_its_name_and_a_copy_is_not() -> None:
    labels = {names.NODE_LABEL: "n0", names.SERVICE_LABEL: names.NOVA}
    kept, copy = (config_map(name, labels) for name in (names.config_name("n0", names.NOVA), "zz-backup"))
    view: Any = ProfilesView(build.node_body("n0"), kept, copy)
    found = collect_node(view, build.NAMESPACE, "n0", build.NOW)
    assert found is not None
    assert [each["metadata"]["name"] for each in found.configurations[names.NOVA]] == [kept["metadata"]["name"]]


def config_map(name: str, labels: dict[str, str]) -> Object:
    metadata = {"name": name, "namespace": build.NAMESPACE, "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {}}


@pytest.mark.parametrize("to", ["n1", "n0"])
def test_a_configuration_whose_label_is_changed_wakes_the_node_that_it_was_of(to: str) -> None:
    declared = PROFILES.dynamic.watches(ProfilesView(build.node_body("n0")))
    watch = next(each for each in declared if each.resource.kind == "ConfigMap")
    before, after = (config_map("c", {names.NODE_LABEL: node}) for node in ("n0", to))
    assert names.node_key(build.NAMESPACE, "n0") in watch.keys(before, after)


def test_a_second_question_gets_the_cached_answer() -> None:
    seen = snapshot()
    assert resolve(seen) is resolve(seen)
    assert effective_spec(seen) is effective_spec(seen)
    assert desired_config(seen, names.NOVA) is desired_config(seen, names.NOVA)


def test_services_have_separate_snapshots() -> None:
    seen = snapshot()
    assert desired_config(seen, names.NOVA).resolution.service.name == names.NOVA
    assert desired_config(seen, names.NEUTRON).resolution.service.name == names.NEUTRON


def test_a_changed_snapshot_is_planned_again() -> None:
    seen = snapshot()
    assert resolve(seen)[names.NOVA].value == "a"
    changed = replace(seen, node=build.node(annotations={names.COMPUTE_PROFILE: "b"}))
    assert resolve(changed)[names.NOVA].value == "b"


def test_cached_results_do_not_make_snapshots_differ() -> None:
    seen = snapshot()
    resolve(seen)
    assert seen == snapshot()
