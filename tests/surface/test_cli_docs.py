"""Transcripts in the docs are what the command line prints today.

The manifests are those of the page; a transcript that differs fails here. docs/cli.md is printed from the operators
below.
"""

import asyncio
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml

from nodeyard.app.capabilities import CAPABILITIES
from nodeyard.app.operators import OperatorProcess, Operators
from nodeyard.capabilities.spares import names
from nodeyard.cli import plan
from nodeyard.cli.status import render
from nodeyard.kube.names import ZONE
from nodeyard.plan.brake import Limit
from nodeyard.runtime.publication import HeldPlan, Publication

DOCS = Path(__file__).parents[2] / "docs"
NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)


def blocks(page, language=""):
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL)
    return [text for written, text in fenced if written == language]


def spare(name, zone):
    taint = {"key": names.SPARE_TAINT, "value": "true", "effect": "NoSchedule"}
    labels = {"role": "compute", ZONE: zone}
    ready = {"type": "Ready", "status": "True"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": [taint]},
        "status": {"conditions": [ready]},
    }


def test_the_plan_of_the_worked_example_of_spares(tmp_path):
    manifests, *_ = (block for block in blocks("spares.md", "yaml") if "kind: NodeTemplate" in block)
    nodes = [spare("n1", "a"), spare("n2", "b"), spare("n3", "a"), spare("n4", "b")]
    file = tmp_path / "all.yaml"
    file.write_text(f"{manifests}---\n{yaml.safe_dump_all(nodes)}")
    (none := tmp_path / "none").touch()
    options = plan.PlanOptions(paths=(file,), capabilities=CAPABILITIES)
    result = asyncio.run(plan.make_plans(none, "", options))
    printed = plan.render(result.dry_plans, "text")
    transcript, *_ = (block for block in blocks("spares.md") if block.startswith("  Patch 2 Nodes: n1, n2"))
    assert transcript.rstrip() in printed


def operators():
    def process(name, renewed, **told):
        held = told.get("held", ())
        published = Publication(version="0.1.0", limit="25,10%", held_count=len(held), **told)
        renewed = NOW - timedelta(seconds=renewed)
        return OperatorProcess(name, f"nodeyard-7d9f-{name}_1f3a", renewed, published, held, len(held))

    held = HeldPlan(id="668a8d15afa6", key="nodetemplates", nodes=40, actions=80)
    running = [process("spares", 1, held=(held,)), process("pools", 2), process("affinity", 1, observe="--observe")]
    return Operators({each.capability: each for each in running}, {"profiles": process("profiles", 300)})


def test_the_status_of_the_page_about_the_command_line():
    printed = "\n".join(render(operators(), CAPABILITIES, NOW))
    (transcript,) = (block for block in blocks("cli.md", "console") if block.startswith("$ nodeyard status\n"))
    assert transcript == f"$ nodeyard status\n{printed}\n"


def test_the_first_line_of_plan_on_the_page_about_the_command_line():
    assert operators().describe(Limit(), ["clustertree", "profiles"]) in (DOCS / "cli.md").read_text()
