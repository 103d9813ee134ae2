"""Tolerations match taints like in the scheduler."""

import pytest

from nodeyard.kube import taints

GPU = {"key": "gpu", "value": "a100", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        pytest.param({"key": "gpu", "value": "a100", "effect": "NoSchedule"}, True, id="equal"),
        pytest.param({"key": "gpu", "operator": "Equal", "value": "a100"}, True, id="any-effect"),
        pytest.param({"key": "gpu", "value": "t4"}, False, id="other-value"),
        pytest.param({"key": "gpu", "operator": "Exists"}, True, id="exists"),
        pytest.param({"operator": "Exists"}, True, id="everything"),
        pytest.param({"operator": "Exists", "effect": "NoExecute"}, False, id="other-effect"),
        pytest.param({"key": "cpu", "operator": "Exists"}, False, id="other-key"),
        pytest.param({"key": "gpu", "operator": "Nonsense", "value": "a100"}, False, id="unknown-operator"),
    ],
)
def test_a_toleration_matches_by_effect_key_and_value(toleration: dict[str, str], tolerated: bool) -> None:
    assert taints.tolerates(toleration, GPU) is tolerated


@pytest.mark.parametrize(
    ("operator", "bound", "tolerated"),
    [("Gt", "4", True), ("Gt", "5", False), ("Lt", "6", True), ("Lt", "5", False), ("Gt", "many", False)],
)
def test_numeric_operators_compare_the_taints_value_with_the_tolerations(
    operator: str, bound: str, tolerated: bool
) -> None:
    taint = {"key": "level", "value": "5", "effect": "NoExecute"}
    assert taints.tolerates({"key": "level", "operator": operator, "value": bound}, taint) is tolerated


def test_a_prefer_taint_repels_no_pod_by_default() -> None:
    soft = {"key": "spot", "effect": "PreferNoSchedule"}
    assert taints.is_tolerated([soft], [])
    assert not taints.is_tolerated([soft], [], taints.EFFECTS)
    assert list(taints.untolerated([soft, GPU], [])) == [GPU]


def test_taints_are_the_same_by_key_and_effect() -> None:
    other_value = {**GPU, "value": "t4"}
    assert taints.is_same(GPU, other_value)


def test_removing_takes_every_effect_of_a_key_or_the_one_named() -> None:
    drain = {"key": "gpu", "effect": "NoExecute"}
    assert taints.without([GPU, drain], "gpu") == []
    assert taints.without([GPU, drain], "gpu", "NoExecute") == [GPU]


def test_a_taint_reads_as_kubectl_writes_it() -> None:
    assert taints.render(GPU) == "gpu=a100:NoSchedule"
    assert taints.render({"key": "gpu", "effect": "NoExecute"}) == "gpu:NoExecute"
