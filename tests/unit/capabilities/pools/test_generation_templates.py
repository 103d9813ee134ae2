"""Template names and input hashes: which changes replace nodes."""

from __future__ import annotations

from typing import Any

import pytest

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.planning.generation import aws, bootstrap, bootstrap_template, worker_template
from nodeyard.capabilities.pools.planning.generation.template import Template
from nodeyard.capabilities.pools.types import LatticeNodeClass, resolved_pools

from ....builders.pools import AWS, cluster, node_class, pool
from ....golden.pools.clusters import SERVED

BASE: dict[str, Any] = {"labels": {"tier": "web"}, "taints": ["a=1:NoSchedule", "b:NoExecute"]}


def templates(node_class: LatticeNodeClass | None = None, **given: Any) -> tuple[Template, Template]:
    """Return the machine and bootstrap templates of a pool."""
    config = {"config": given.pop("config")} if "config" in given else {}
    lc = cluster("prod", workerPools={"p": pool(given.pop("replicas", 1), **{**BASE, **given})}, **config)
    [(pool_id, made)] = resolved_pools(lc.spec.nodes).items()
    return worker_template(lc, pool_id, made, node_class, SERVED), bootstrap_template(lc, pool_id, made)


def found(node_class: LatticeNodeClass | None = None, **given: Any) -> list[str]:
    return [each.name for each in templates(node_class, **given)]


@pytest.mark.parametrize(
    "change",
    [
        {"displayName": "Web servers"},
        {"replicas": 7},
        {"min": 1, "max": 9},
        {"labels": {"tier": "web", "node.cluster.x-k8s.io/row": "7"}},
        {"labels": {"tier": "web", "node-role.kubernetes.io/web": ""}},
        {"taints": ["b:NoExecute", "a=1:NoSchedule"]},
    ],
    ids=["displayName", "replicas", "bounds", "a synced label", "a role", "the order of taints"],
)
def test_a_harmless_change_keeps_both_templates_and_the_recorded_request(change: dict[str, Any]) -> None:
    assert found(**change) == found()
    assert [each.inputs for each in templates(**change)] == [each.inputs for each in templates()]


@pytest.mark.parametrize(
    "change",
    [
        {"labels": {"tier": "db"}},
        {"labels": {}},
        {"taints": ["a=2:NoSchedule", "b:NoExecute"]},
        {"taints": ["a=1:NoSchedule"]},
    ],
    ids=["a label", "no label", "a taint's value", "a taint less"],
)
def test_settings_of_joining_kubelets_replace_nodes_by_the_bootstrap_template_alone(
    change: dict[str, Any],
) -> None:
    (machines, joining), (machines_before, joining_before) = templates(**change), templates()
    assert machines == machines_before
    assert joining.name != joining_before.name
    assert joining.inputs != joining_before.inputs


def test_another_class_entry_replaces_nodes_by_the_machine_template_alone() -> None:
    small, large = node_class("c", docker={"image": "a"}), node_class("c", docker={"image": "b"})
    (machines, joining), (machines_before, joining_before) = (templates(each, nodeClass="c") for each in (large, small))
    assert machines.name != machines_before.name
    assert machines.inputs != machines_before.inputs
    assert joining == joining_before


def test_a_class_of_another_name_that_says_the_same_keeps_the_template_and_is_noted_on_it() -> None:
    machines, before = (
        templates(node_class(name, docker={"image": "a"}), nodeClass=name)[0] for name in ("new", "old")
    )
    assert machines.name == before.name
    assert machines.render(cluster())["metadata"]["annotations"][names.NODE_CLASS] == "new"


def test_settings_unsupported_by_the_provider_are_not_rendered() -> None:
    sized, plain = node_class("c", docker={"memory": "8Gi", "cpus": "4"}), node_class("c", docker={})
    machines, before = (templates(each, nodeClass="c")[0] for each in (sized, plain))
    assert (machines.name, machines.inputs) == (before.name, before.inputs)


def test_a_changed_default_changes_the_template_name_and_not_the_recorded_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = templates(config=AWS)
    monkeypatch.setattr(aws, "INSTANCE_TYPE", "t4g.medium")
    monkeypatch.setattr(bootstrap, "_ARGUMENTS", {"aws": [{"name": "v", "value": "2"}]})
    after = templates(config=AWS)
    assert all(new.name != old.name for new, old in zip(after, before, strict=True))
    assert [each.inputs for each in after] == [each.inputs for each in before]


def test_asking_for_what_is_the_default_is_asking_nevertheless() -> None:
    asked = templates(node_class("c", aws={"instanceType": aws.INSTANCE_TYPE}), nodeClass="c", config=AWS)[0]
    silent = templates(node_class("c", aws={}), nodeClass="c", config=AWS)[0]
    assert asked.name == silent.name
    assert asked.inputs != silent.inputs


def test_a_name_is_the_owner_and_ten_digits_and_depends_on_the_kind() -> None:
    one = Template(api_version="g/v1", kind="A", prefix="prod-pool-p", spec={"a": 1, "b": 2}, inputs="")
    other = Template(api_version="g/v1", kind="B", prefix="prod-pool-p", spec={"a": 1, "b": 2}, inputs="")
    turned = Template(api_version="g/v2", kind="A", prefix="prod-pool-p", spec={"b": 2, "a": 1}, inputs="x")
    assert one.name.startswith("prod-pool-p-")
    assert len(one.name) == len("prod-pool-p-") + 10
    assert one.name == turned.name != other.name


def test_a_rendered_template_has_a_pool_label_and_no_owner() -> None:
    metadata = templates()[0].render(cluster("prod"))["metadata"]
    assert metadata["namespace"] == "capi-prod"
    assert metadata["labels"] == {
        names.CLUSTER_NAME_LABEL: "prod",
        names.CLUSTER: "prod",
        names.POOL: "p",
    }
    assert set(metadata["annotations"]) == {names.INPUTS}
    assert "ownerReferences" not in metadata
