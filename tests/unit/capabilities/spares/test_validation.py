"""An invalid template reports its error and affects no other."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.plan import plan
from nodeyard.capabilities.spares.types import NodeTemplate
from nodeyard.capabilities.spares.validation import faults

from ....builders.spares import NOW, described, owned, snapshot, spare, template

BAD = [
    pytest.param({"name": "x" * 64}, "metadata.name", id="name-too-long-for-a-label"),
    pytest.param({"name": "spare"}, "metadata.name", id="name-of-the-spare-role"),
    pytest.param({"name": "out-of-management"}, "metadata.name", id="name-of-the-out-role"),
    pytest.param({"nodes": -1}, "spec.nodes", id="negative-count"),
    pytest.param(
        {"selector": {"matchExpressions": [{"key": "a", "operator": "Foo"}]}},
        "spec.selector.matchExpressions[0].operator",
        id="unknown-operator",
    ),
    pytest.param({"selector": {"matchLabels": {"a b": "c"}}}, "spec.selector.matchLabels", id="bad-selector-key"),
    pytest.param({"dryRun": True, "dry-run": False}, "spec.dry-run", id="contradicting-dry-runs"),
    pytest.param({"releasePolicy": "Burn"}, "spec.releasePolicy", id="unknown-policy"),
    pytest.param({"release": {"evictAfterSeconds": -1}}, "spec.release.evictAfterSeconds", id="negative-time"),
    pytest.param({"spread": {"topologyKey": "a b"}}, "spec.spread.topologyKey", id="bad-topology-key"),
    pytest.param({"template": described(labels={"a b": "c"})}, "spec.template.metadata.labels", id="bad-label-key"),
    pytest.param(
        {"template": described(labels={"a": "b c"})}, "spec.template.metadata.labels[a]", id="bad-label-value"
    ),
    pytest.param(
        {"template": described(labels={names.SPARE_LABEL: "true"})},
        f"spec.template.metadata.labels[{names.SPARE_LABEL}]",
        id="reserved-label",
    ),
    pytest.param(
        {"template": described(annotations={names.RECORD: ""})},
        f"spec.template.metadata.annotations[{names.RECORD}]",
        id="reserved-annotation",
    ),
    pytest.param(
        {"template": described(taints=[f"{names.SPARE_TAINT}=true:NoSchedule"])},
        "spec.template.spec.taints[0].key",
        id="reserved-taint",
    ),
    pytest.param({"template": described(taints=["a:Now"])}, "spec.template.spec.taints[0].effect", id="bad-effect"),
    pytest.param(
        {"template": described(taints=["a=1:NoSchedule", "a=2:NoSchedule"])},
        "spec.template.spec.taints[1]",
        id="duplicate-taint",
    ),
]


def bad(given: dict[str, Any]) -> Any:
    return template(**{"name": "bad", "nodes": 1, "priority": 9, **given})


@pytest.mark.parametrize(("given", "field"), BAD)
def test_the_fault_names_the_field(given: dict[str, Any], field: str) -> None:
    assert [fault.field for fault in faults(bad(given))] == [field]


@pytest.mark.parametrize(("given", "field"), BAD)
def test_it_breaks_only_itself(given: dict[str, Any], field: str) -> None:
    broken = bad(given)
    seen = snapshot([spare("a"), owned("b", broken.name)], [broken, template("good")])
    planned = plan(seen, NOW)
    assert [(action.object.name, action.facts.template) for action in planned.plan.actions] == [("a", "good")]
    assert field in next(each.facts.error for each in planned.plan.blocked if each.object.name == broken.name)


def test_a_taint_key_may_have_several_effects() -> None:
    assert not faults(template("web", template=described(taints=["a=1:NoSchedule", "a=2:NoExecute"])))


def test_dry_runs_that_agree_are_fine() -> None:
    assert not faults(template("web", **{"dryRun": True, "dry-run": True}))


def test_a_missing_selector_is_a_fault_and_an_empty_one_is_not() -> None:
    without = msgspec.convert({"metadata": {"name": "web"}, "spec": {"nodes": 1}}, NodeTemplate)
    assert [str(fault) for fault in faults(without)] == ["spec.selector: Required value"]
    assert not faults(template("web", selector={}))


@pytest.mark.parametrize(("given", "_field"), BAD)
def test_a_deleted_invalid_template_releases_its_nodes(given: dict[str, Any], _field: str) -> None:
    broken = bad(given)
    deleted = msgspec.structs.replace(
        broken,
        metadata=msgspec.structs.replace(broken.metadata, deletion_timestamp=NOW, finalizers=(names.FINALIZER,)),
    )
    planned = plan(snapshot([owned("b", broken.name)], [deleted]), NOW)
    reasons = [(action.object.name, action.reason) for action in planned.plan.actions]
    expected = [("b", "Detached"), (broken.name, "FinalizerRemoved")]
    assert reasons == ([] if deleted.is_dry_run else expected)
