"""The trace of docs/architecture.md: an operator on the embedded server runs every function that it names."""

import re
from pathlib import Path

from tools.code_map import trace_event

PAGE = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text()
STEP = re.compile(r"^\| \d+ \| `([\w/.]+)` \| (`[^|]+`) \|", re.M)


async def test_a_claim_runs_every_function_of_the_trace():
    visited = (await trace_event()).visited

    named = {(file, name) for file, names in STEP.findall(PAGE) for name in re.findall(r"[\w.]+", names)}
    assert len(named) > 20
    assert {(file, name) for file, name in named if name not in visited[file]} == set()
