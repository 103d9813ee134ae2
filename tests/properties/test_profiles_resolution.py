"""The resolver equals a naive model of the decision table, for any input."""

from __future__ import annotations

import re
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.planning.inheritance import inherit
from nodeyard.capabilities.profiles.planning.registry import BUILT_IN, build_registry
from nodeyard.capabilities.profiles.planning.resolution import Resolution, resolve, unknown_keys, wants_object
from nodeyard.capabilities.profiles.planning.variables import VariablesError, merge
from nodeyard.capabilities.profiles.snapshot import NodeSnapshot, Profile
from nodeyard.capabilities.profiles.types import Source

from ..builders import profiles as build

KEYS = [service.annotation_key for service in BUILT_IN]
SERVICES = [service.name for service in BUILT_IN]
NAMES = ("a", "b", "c.d", "gone")

values = st.one_of(st.sampled_from(["", *NAMES, "A", "a,b", " a", "a ", "-a"]), st.text(max_size=4))
annotations = st.dictionaries(st.sampled_from([*KEYS, names.CELL, "x.example.com/y-profile"]), values)
labels = st.dictionaries(st.sampled_from("kl"), st.sampled_from("12"))
profiles = st.lists(
    st.builds(
        Profile,
        name=st.sampled_from(NAMES[:-1]),
        node_selector=st.none() | labels,
        priority=st.integers(0, 2),
    ),
    unique_by=lambda profile: profile.name,
)
snapshots = st.builds(
    lambda on_node, on_role, tags, role, exists, found, objects: build.snapshot(
        build.node(annotations=on_node, labels=tags, role=role),
        build.role(annotations=on_role) if exists and role else None,
        objects={name: {} for name in objects},
        **found,
    ),
    annotations,
    annotations,
    labels,
    st.sampled_from(["", build.ROLE]),
    st.booleans(),
    st.fixed_dictionaries(dict.fromkeys(SERVICES, profiles)),
    st.sets(st.sampled_from(SERVICES[:2])),
)


def naive(snapshot: NodeSnapshot, service: str, key: str) -> tuple[str, str, str]:
    """Return state, source and value by the rows of the decision table."""
    node, role = snapshot.node.metadata, snapshot.role.metadata if snapshot.role else None
    known = snapshot.profiles[service]
    for source, holder in (("Node", node), ("Role", role)):
        if source == "Role" and role is None and snapshot.node.wanted.role:
            return "NotFound", "", ""
        if holder is None or key not in holder.annotations:
            continue
        value = holder.annotations[key]
        if value == "":
            return ("Disabled" if source == "Node" else "None"), source, ""
        if not re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", value):
            return "Invalid", source, value
        return ("Resolved" if value in known else "NotFound"), source, value
    best: list[Profile] = []
    for each in known.values():
        fits = each.node_selector is not None and all(
            node.labels.get(label) == value for label, value in each.node_selector.items()
        )
        if fits and (not best or each.priority > best[0].priority):
            best = [each]
        elif fits and each.priority == best[0].priority:
            best.append(each)
    if not best:
        return "None", "", ""
    return ("Resolved", "Selector", best[0].name) if len(best) == 1 else ("Ambiguous", "Selector", "")


def told(resolution: Resolution) -> tuple[str, str, str]:
    return resolution.state.value, resolution.source.value if resolution.source else "", resolution.value


@given(snapshots)
def test_every_service_resolves_as_the_naive_model_says(snapshot: NodeSnapshot) -> None:
    found = resolve(snapshot)

    assert {name: told(each) for name, each in found.items()} == {
        service.name: naive(snapshot, service.name, service.annotation_key) for service in BUILT_IN
    }


@given(snapshots)
def test_a_profile_is_there_exactly_where_the_choice_is_resolved(snapshot: NodeSnapshot) -> None:
    for name, each in resolve(snapshot).items():
        is_there = each.profile is not None and snapshot.profiles[name][each.value] is each.profile
        assert is_there is (each.state.value == "Resolved")


@given(snapshots)
def test_every_choice_has_a_text(snapshot: NodeSnapshot) -> None:
    for each in resolve(snapshot).values():
        assert each.message.text() not in ("", each.message.reason)


@given(snapshots, st.sampled_from(KEYS), values)
def test_one_key_changes_nothing_for_another_service(snapshot: NodeSnapshot, key: str, value: str) -> None:
    metadata = snapshot.node.metadata
    changed = build.node(
        annotations={**metadata.annotations, key: value}, labels=metadata.labels, role=snapshot.node.wanted.role
    )
    before = resolve(snapshot)
    after = resolve(NodeSnapshot(changed, snapshot.role, snapshot.services, profiles=snapshot.profiles))

    for service in BUILT_IN:
        if service.annotation_key != key:
            assert told(after[service.name]) == told(before[service.name])


@given(snapshots)
def test_an_unsettled_choice_neither_creates_nor_deletes_an_object(snapshot: NodeSnapshot) -> None:
    """An object is deleted only if nothing requests it."""
    for name, each in resolve(snapshot).items():
        is_there = name in snapshot.objects
        if not each.is_settled and not is_there:
            assert not wants_object(snapshot, each)
        if not each.is_settled and is_there and not each.service.create_when:
            assert wants_object(snapshot, each)


@given(snapshots)
def test_shadowed_choices_are_of_lower_layers_in_their_order(snapshot: NodeSnapshot) -> None:
    layers = [Source.NODE, Source.ROLE, Source.SELECTOR]
    for each in resolve(snapshot).values():
        ranks = [layers.index(source) for source, _value in each.shadowed]
        assert ranks == sorted(ranks)
        if each.source in (Source.NODE, Source.ROLE):
            assert all(rank > layers.index(each.source) for rank in ranks)


@given(snapshots)
def test_unknown_keys_are_never_those_of_services(snapshot: NodeSnapshot) -> None:
    assert set(unknown_keys(snapshot)) <= {"x.example.com/y-profile"}


# declarations


specs = st.fixed_dictionaries(
    {
        "annotationKey": st.sampled_from([None, "a/b-profile", "c/d-profile", "bad key", *KEYS, names.CELL]),
        "nodeField": st.sampled_from([None, "nodeName", "a b"]),
        "object": st.sampled_from(
            [
                None,
                {"apiVersion": "a/v1", "kind": "O"},
                {"apiVersion": "b/v1", "kind": "O"},
                {"apiVersion": names.NOVA_API_VERSION, "kind": names.COMPUTE_KIND},
            ]
        ),
    }
)


@given(st.dictionaries(st.sampled_from(["one", "two", "three", "nova"]), specs))
def test_a_declaration_counts_or_has_a_fault_and_those_that_count_share_nothing(declared: dict[str, Any]) -> None:
    found = build_registry([build.profile_service(name, **spec) for name, spec in declared.items()])
    counted = [service for service in found.services if not service.is_built_in]

    assert {service.name for service in counted} | set(found.faults) == set(declared)
    assert not {service.name for service in counted} & set(found.faults)
    assert set(BUILT_IN) <= set(found.services)
    keys = [service.annotation_key for service in found.services]
    made = [(service.object_api_version, service.object_kind) for service in found.services if service.makes_object]
    assert len(keys) == len(set(keys))
    assert len(made) == len(set(made))


# inheritance


variables = st.dictionaries(st.sampled_from("abc"), st.integers() | st.lists(st.text(max_size=3), max_size=2))


@given(variables, variables)
def test_variables_merge_as_two_mappings_do(of_node: dict[str, Any], of_role: dict[str, Any]) -> None:
    both = merge(yaml.safe_dump(of_node), yaml.safe_dump(of_role))

    assert yaml.safe_load(both.text or "{}") == {**of_role, **of_node}
    assert both.origins == {key: Source.NODE if key in of_node else Source.ROLE for key in {**of_role, **of_node}}


@given(st.text(alphabet="ab:[]{}&*!|>-\n \t'\"#%@,?", max_size=30))
def test_any_text_parses_as_variables_or_gives_a_fault(written: str) -> None:
    node, role = build.node(node={"ansibleVars": written}), build.role(nodeTemplate={"ansibleVars": "own: 1\n"})
    found = inherit(node, role)
    try:
        merge(written, "own: 1\n")
    except VariablesError:
        assert len(found.faults) == 1
    else:
        assert found.faults == ()
        assert "own" in found.wire()["ansibleVars"]
