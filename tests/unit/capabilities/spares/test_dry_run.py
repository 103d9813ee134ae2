"""A dry run writes nothing and reports what it would do."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from nodeyard.capabilities.spares.plan import plan
from nodeyard.capabilities.spares.snapshot import SparesSnapshot

from ....builders.spares import NOW, described, owned, owner_of, snapshot, spare, template

COMPUTE = {"matchLabels": {"role": "compute"}}
DELETING = {"deletionTimestamp": "2030-01-01T00:00:00Z"}


def would_do(seen: SparesSnapshot) -> dict[str, Any]:
    [blocked] = [each for each in plan(seen, NOW).plan.blocked if each.reason == "DryRun"]
    facts: dict[str, Any] = msgspec.to_builtins(blocked.facts)
    return facts


@pytest.mark.parametrize("spelling", ["dryRun", "dry-run"])
def test_both_spellings_are_a_dry_run(spelling: str) -> None:
    seen = snapshot([spare("a")], [template("web", **{spelling: True})])
    assert not plan(seen, NOW).plan.actions
    assert would_do(seen)["claims"] == 1


def test_it_does_not_even_set_a_finalizer() -> None:
    seen = snapshot([spare("a")], [template("web", dryRun=True, metadata={"finalizers": []})])
    assert not plan(seen, NOW).plan.actions


def test_it_counts_what_it_would_do_and_names_the_nodes() -> None:
    nodes = [
        owned("drifted", "web", labels={"role": "compute"}),
        owned("stranger", "web"),
        spare("fresh", labels={"role": "compute"}),
    ]
    wanted = described(labels={"tier": "web"})
    seen = snapshot(nodes, [template("web", 2, selector=COMPUTE, template=wanted, dryRun=True)])
    assert not plan(seen, NOW).plan.actions
    assert would_do(seen) == {
        "template": "web",
        "claims": 1,
        "updates": 1,
        "moves": 1,
        "nodes": ("drifted", "fresh", "stranger"),
    }


def test_a_dry_run_claims_no_spares_of_others() -> None:
    seen = snapshot([spare("a"), spare("b")], [template("high", 2, priority=2, dryRun=True), template("low", 2)])
    assert [action.facts.template for action in plan(seen, NOW).plan.actions] == ["low", "low"]


def test_a_dry_run_leaves_spares_to_higher_templates() -> None:
    seen = snapshot([spare("a"), spare("b")], [template("high", priority=2), template("low", 2, dryRun=True)])
    assert would_do(seen)["nodes"] == ("b",)


def test_deleting_it_waits_while_it_still_has_nodes() -> None:
    seen = snapshot([owned("a", "web")], [template("web", dryRun=True, metadata=DELETING)])
    assert not plan(seen, NOW).plan.actions
    assert [owner_of(each) for each in seen.nodes] == ["web"]
    assert would_do(seen)["moves"] == 1


def test_a_deleted_dry_run_without_nodes_loses_its_finalizer() -> None:
    seen = snapshot([], [template("web", dryRun=True, metadata=DELETING)])
    assert [action.reason for action in plan(seen, NOW).plan.actions] == ["FinalizerRemoved"]


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"paused": True}, id="by-the-field"),
        pytest.param({"metadata": {"annotations": {"nodeyard.dev/paused": "true"}}}, id="by-the-annotation"),
    ],
)
def test_a_paused_template_is_skipped_and_others_proceed(given: dict[str, Any]) -> None:
    seen = snapshot([spare("a"), owned("b", "web")], [template("web", 2, priority=2, **given), template("other")])
    planned = plan(seen, NOW)
    assert [action.facts.template for action in planned.plan.actions] == ["other"]
    assert "Paused" in {each.reason for each in planned.plan.blocked}
