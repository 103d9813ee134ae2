"""`nodeyard status`: counts, and the remedy if no operator runs."""

from datetime import UTC, datetime

from nodeyard.app.capabilities import CAPABILITIES
from nodeyard.app.operators import OperatorProcess, Operators
from nodeyard.cli.status import render
from nodeyard.runtime.publication import HeldPlan, Publication

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def test_where_nobody_runs_anything_it_says_what_to_do():
    told = list(render(Operators(), CAPABILITIES, NOW))
    assert "  no operator runs on this cluster: install the chart, or start nodeyard run" in told


def test_held_plans_are_listed_with_what_they_disrupt():
    held = HeldPlan(id="abc", key="tenants", nodes=1, actions=1, disrupts="1 Namespace")
    told = Publication(version="1", held=(held,), held_count=1)
    process = OperatorProcess("affinity", "a", NOW, told, held=(held,), held_count=1)
    lines = list(render(Operators(running={"affinity": process}), CAPABILITIES, NOW))
    assert "  abc  affinity tenants: 1 Namespace disrupted by 1 action" in lines
