"""Inheritance from the role, by the four rules of the data plane."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from nodeyard.capabilities.profiles.planning.inheritance import Effective, inherit
from nodeyard.capabilities.profiles.planning.variables import VariablesError, merge
from nodeyard.capabilities.profiles.reasons import Reason
from nodeyard.capabilities.profiles.types import DeployStrategy, NodeSection, Source, UpdatePolicy

from ....builders import profiles as build


def inherits(of_node: Any = None, of_role: Any = None, **role: Any) -> Effective:
    """Resolve a node and a role with these sections."""
    return inherit(build.node(node=of_node or {}), build.role(nodeTemplate=of_role or {}, **role))


# texts, numbers and lists


@pytest.mark.parametrize(
    ("field", "of_node", "of_role", "found"),
    [
        pytest.param("ansibleUser", "root", "stack", "root", id="text of the node"),
        pytest.param("ansibleUser", "", "stack", "stack", id="an empty text is none"),
        pytest.param("ansiblePort", 2222, 22, 2222, id="number of the node"),
        pytest.param("ansiblePort", 0, 22, 22, id="zero is none"),
        pytest.param("managementNetwork", "", "ctlplane", "ctlplane", id="management network"),
        pytest.param("networks", [{"name": "a"}], [{"name": "b"}], [{"name": "a"}], id="lists as a whole"),
        pytest.param("networks", [], [{"name": "b"}], [{"name": "b"}], id="an empty list is none"),
        pytest.param("ansibleSSHPrivateKeySecret", "", "keys", "keys", id="ssh secret"),
        pytest.param("networkConfig", {}, {"template": "t.j2"}, {"template": "t.j2"}, id="network template"),
        pytest.param("userData", None, {"name": "user-data"}, "user-data", id="user data by its name"),
    ],
)
def test_a_value_of_the_role_is_taken_where_the_node_has_none(
    field: str, of_node: Any, of_role: Any, found: Any
) -> None:
    assert inherits({field: of_node}, {field: of_role}).wire()[field] == found


def test_keys_set_on_neither_node_nor_role_are_not_shown() -> None:
    assert inherits().wire() == {"profileUpdatePolicy": "Automatic"}


def test_inherited_values_are_listed() -> None:
    found = inherits({"ansibleUser": "root"}, {"ansibleUser": "stack", "ansiblePort": 22, "nova": {"cellName": "c"}})

    assert found.inherited == ("node.ansiblePort", "node.nova")


def test_environment_and_tags_are_inherited_and_services_are_the_roles_alone() -> None:
    role = build.role(
        env=[{"name": "A", "value": "secret"}],
        deployStrategy={"ansibleTags": "t", "ansibleLimit": "l"},
        services=["configure-network"],
    )
    found = inherit(build.node(deployStrategy={"ansibleLimit": "mine"}), role)

    assert found.env == ({"name": "A", "value": "secret"},)
    assert (found.deploy_strategy.ansible_tags, found.deploy_strategy.ansible_limit) == ("t", "mine")
    assert found.services == ("configure-network",)


def test_an_explicit_false_of_the_node_overrides_a_true_of_the_role() -> None:
    found = inherit(build.node(deployStrategy={"deploy": False}), build.role(deployStrategy={"deploy": True}))

    assert found.deploy_strategy.deploy is False
    assert found.wire()["deployStrategy"] == {"deploy": False}


def test_without_a_role_nothing_is_inherited() -> None:
    found = inherit(build.node(node={"ansibleUser": "root"}), None)

    assert (found.section, found.deploy_strategy) == (NodeSection(ansible_user="root"), DeployStrategy())
    assert found.inherited == ()


def test_a_spec_that_is_null_is_an_empty_one() -> None:
    role = build.stored({**build.role_body(), "spec": None}, type(build.role()))

    assert inherit(build.node(node={"ansibleUser": "root"}), role).section.ansible_user == "root"


# nova


def test_nova_is_filled_field_by_field() -> None:
    found = inherits(
        {"nova": {"customServiceConfig": "[DEFAULT]\n"}},
        {"nova": {"cellName": "cell2", "customServiceConfig": "[compute]\n", "deploy": True}},
    )
    nova = found.section.nova

    assert nova is not None
    assert (nova.cell_name, nova.custom_service_config, nova.deploy) == ("cell2", "[DEFAULT]\n", True)
    assert found.inherited == ("node.nova.cellName", "node.nova.deploy")


def test_no_default_of_the_type_overrides_the_cell_of_the_role() -> None:
    """The data plane's own schema filled in cell1 here, which then counted as the node's."""
    nova = inherits({"nova": {}}, {"nova": {"cellName": "cell2"}}).section.nova

    assert nova is not None
    assert nova.cell_name == "cell2"


# variables


def test_variables_are_merged_by_their_top_level_keys_only() -> None:
    found = inherits(
        {"ansibleVars": "ntp: {servers: [a]}\nown: 1\n"}, {"ansibleVars": "ntp: {servers: [b], pool: c}\nrole: 2\n"}
    )

    assert yaml.safe_load(found.section.ansible_vars) == {"ntp": {"servers": ["a"]}, "role": 2, "own": 1}
    assert found.variables.origins == {"ntp": Source.NODE, "role": Source.ROLE, "own": Source.NODE}
    assert found.wire()["ansibleVars"] == ["ntp", "own", "role"]


@pytest.mark.parametrize(
    ("of_node", "of_role", "text"),
    [
        pytest.param("a:   1  # mine\n", "", "a:   1  # mine\n", id="the node's"),
        pytest.param("", "a:   1\n", "a:   1\n", id="the role's"),
        pytest.param("# nothing\n", "a: 1\n", "a: 1\n", id="a comment is nothing"),
        pytest.param("null\n", "a: 1\n", "a: 1\n", id="null is nothing"),
        pytest.param("", "", "", id="none"),
    ],
)
def test_a_text_that_is_alone_stays_as_it_is(of_node: str, of_role: str, text: str) -> None:
    assert merge(of_node, of_role).text == text


@pytest.mark.parametrize("value", ["!vault |\n  $ANSIBLE_VAULT;1.1\n", "1.10\n", "yes\n", "2030-01-01\n", "'007'\n"])
def test_values_are_carried_over_as_they_are_written(value: str) -> None:
    key = f"kept: {value}"

    whole = yaml.compose(merge("own: 1\n", key).text)
    alone = yaml.compose(key)

    assert isinstance(whole, yaml.MappingNode)
    assert isinstance(alone, yaml.MappingNode)
    kept = next(node for name, node in whole.value if name.value == "kept")
    assert (kept.tag, kept.value) == (alone.value[0][1].tag, alone.value[0][1].value)


def test_anchors_survive_the_merge() -> None:
    text = merge("a: &x {b: 1}\nc: *x\n", "role: 1\n").text

    assert yaml.safe_load(text) == {"a": {"b": 1}, "c": {"b": 1}, "role": 1}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("password: hunter2: x\n", "is not YAML in line 1, column 18", id="not YAML"),
        pytest.param("- hunter2\n", "is not a mapping of variables to values", id="a list"),
        pytest.param("hunter2\n", "is not a mapping of variables to values", id="a text"),
        pytest.param("[hunter2]: 1\n", "has a key that is not a scalar", id="a key that is a list"),
        pytest.param("a: " + "[" * 100_000 + "]" * 100_000, "is nested more than 100 levels deep", id="too deep"),
        pytest.param("a: \x00\n", "is not YAML", id="a zero byte"),
        pytest.param("a: 1\n---\nb: 2\n", "is not YAML", id="two documents"),
    ],
)
def test_variables_that_cannot_be_read_are_refused_without_quoting_them(text: str, said: str) -> None:
    with pytest.raises(VariablesError) as error:
        merge(text, "")

    assert said in str(error.value)
    assert "hunter2" not in str(error.value)


def test_each_side_has_the_faults_of_its_own_variables() -> None:
    found = inherits({"ansibleVars": "- a\n"}, {"ansibleVars": "b\n"})

    assert [(fault.reason, fault.error.partition(" ")[0]) for fault in found.faults] == [
        (Reason.VARS_INVALID, "spec.node.ansibleVars"),
        (Reason.VARS_INVALID, "spec.nodeTemplate.ansibleVars"),
    ]
    assert found.faults[0].error == (
        "spec.node.ansibleVars is not a mapping of variables to values: write one variable per line, as name: value"
    )
    assert found.section.ansible_vars == "- a\n"


# attachments


@pytest.mark.parametrize(
    ("of_node", "of_role", "found"),
    [
        pytest.param(["a", "b"], ["a", "b"], ("a", "b"), id="the same"),
        pytest.param([], ["a"], ("a",), id="the role's"),
        pytest.param(["a"], [], ("a",), id="the node's"),
        pytest.param([], [], (), id="none"),
    ],
)
def test_network_attachments_agree_or_one_side_has_none(of_node: Any, of_role: Any, found: tuple[str, ...]) -> None:
    whole = inherit(build.node(networkAttachments=of_node), build.role(networkAttachments=of_role))

    assert (whole.network_attachments, whole.faults) == (found, ())


@pytest.mark.parametrize("of_role", [["b"], ["b", "a"], ["a", "b", "c"]])
def test_network_attachments_that_differ_are_a_fault(of_role: list[str]) -> None:
    whole = inherit(build.node(networkAttachments=["a", "b"]), build.role(networkAttachments=of_role))

    assert [fault.reason for fault in whole.faults] == [Reason.ATTACHMENTS_DIFFER]
    assert whole.faults[0].error == (
        f"spec.networkAttachments is [a, b], but role edpm-compute has [{', '.join(of_role)}]: set the same list on "
        f"both, or remove one"
    )
    assert whole.network_attachments == ("a", "b")


# policy and status


@pytest.mark.parametrize(
    ("of_node", "of_role", "policy"),
    [
        pytest.param("", "", UpdatePolicy.AUTOMATIC, id="none"),
        pytest.param("", "Manual", UpdatePolicy.MANUAL, id="the role's"),
        pytest.param("Automatic", "Manual", UpdatePolicy.AUTOMATIC, id="the node's"),
        pytest.param("manual", "", UpdatePolicy.MANUAL, id="what nobody knows reconfigures nothing"),
    ],
)
def test_the_update_policy(of_node: str, of_role: str, policy: UpdatePolicy) -> None:
    node, role = build.node(profileUpdatePolicy=of_node), build.role(profileUpdatePolicy=of_role)

    assert inherit(node, role).update_policy is policy


def test_no_secret_reaches_the_status() -> None:
    found = inherits(
        {
            "ansibleVars": "password: hunter2\n",
            "nova": {"cellName": "c", "customServiceConfig": "[db]\npassword = hunter2\n"},
            "ansibleSSHPrivateKeySecret": "keys",
            "extraMounts": [{"volumes": [{"name": "ceph", "secret": {"secretName": "hunter2"}}]}],
        },
        env=[{"name": "PASSWORD", "value": "hunter2"}],
    ).wire()

    assert "hunter2" not in str(found)
    assert found["nova"] == {"cellName": "c"}
    assert (found["ansibleVars"], found["env"], found["extraMounts"]) == (["password"], ["PASSWORD"], ["ceph"])
    assert found["ansibleSSHPrivateKeySecret"] == "keys"
