"""docs/sim.md is complete, and its examples can be loaded."""

import re
from pathlib import Path

import pytest

from nodeyard.sim.conditions import COMPARISONS
from nodeyard.sim.stage_format import VERBS
from nodeyard.sim.stage_set import SHIPPED, parse_stages
from nodeyard.sim.stand_in_crds import GROUPS, definitions

PAGE = (Path(__file__).parents[2] / "docs" / "sim.md").read_text()
EXAMPLES = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_is_a_stage_file(example):
    text = example if "stages:" in example else f"{example}\nstages: []"
    assert parse_stages([("docs/sim.md", text)])


@pytest.mark.parametrize("word", [*VERBS, *COMPARISONS, *(f"{name}` |" for name in SHIPPED)])
def test_every_verb_comparison_and_stage_is_explained(word):
    assert f"`{word}" in PAGE


def test_every_stand_in_is_named():
    assert len(GROUPS) == 6
    core = ("Cluster", "MachineDeployment", "KubeadmControlPlane", "HelmRelease")
    assert {one["spec"]["names"]["kind"] for one in definitions()} >= set(core)
    assert all(kind in PAGE for kind in core)
