"""Golden transcripts of scenarios. Review the diff of a renewed transcript.

Renew: NODEYARD_RENEW=1 pytest tests/golden/spares
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from .transcript import play

SCENARIOS = sorted(Path(__file__).parent.glob("*.yaml"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_the_transcript_of_the_scenario_is_unchanged(path: Path) -> None:
    told = play(yaml.safe_load(path.read_text()))
    written = path.with_suffix(".txt")
    if os.environ.get("NODEYARD_RENEW"):
        written.write_text(told)
    assert told == written.read_text()


def test_there_are_scenarios() -> None:
    assert len(SCENARIOS) >= 8
