"""Rounds, medians and requirements of benchmarks."""

from __future__ import annotations

import json

from bench.harness import Contestant, Requirement, Result, compare


def silent(_line: str) -> None:
    """Log nothing."""


def recorder(name: str, log: list[str], *values: float) -> Contestant:
    numbers = iter(values)

    def run() -> dict[str, float]:
        log.append(name)
        return {"rate": next(numbers)}

    return Contestant(name, run)


def test_contestants_run_in_alternating_order():
    log: list[str] = []

    compare("x", [recorder("a", log, *range(9)), recorder("b", log, *range(9))], rounds=3, log=silent)

    assert log == ["a", "b", "a", "b", "b", "a", "a", "b"]


def test_the_warm_up_does_not_count():
    log: list[str] = []

    result = compare("x", [recorder("a", log, 1000, 1, 2, 3)], rounds=3, log=silent)

    assert result.medians() == {"a": {"rate": 2}}


def test_medians_and_spread():
    result = Result("x", {"a": [{"rate": 10}, {"rate": 40}, {"rate": 20}]})

    assert result.medians() == {"a": {"rate": 20}}
    assert result.spread("a", "rate") == 1.5


def test_a_missed_ratio_is_reported():
    rounds = {"ours": [{"rate": 90}], "theirs": [{"rate": 100}]}
    result = Result("x", rounds, (Requirement("rate", "ours", "theirs", at_least=1.0),))

    assert result.missed() == ["rate: ours / theirs >= 1, is 0.90"]
    assert "MISSED" in result.markdown()


def test_a_met_ratio_is_not_reported():
    rounds = {"ours": [{"rate": 90}], "theirs": [{"rate": 100}]}
    requirements = (
        Requirement("rate", "ours", "theirs", at_most=1.0),
        Requirement("rate", "ours", at_most=90),
    )

    assert Result("x", rounds, requirements).missed() == []


def test_results_are_saved_as_json_and_markdown(tmp_path):
    Result("x", {"ours": [{"rate": 1}], "theirs": [{"rate": 2}]}).save(tmp_path)

    assert json.loads((tmp_path / "x.json").read_text())["medians"] == {"ours": {"rate": 1}, "theirs": {"rate": 2}}
    assert "| rate | 1.0 (±0%) | 2.0 (±0%) | 0.50 |" in (tmp_path / "x.md").read_text()
