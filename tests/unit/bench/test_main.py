"""`python -m bench`: results, missed requirements and the exit code."""

from __future__ import annotations

from types import SimpleNamespace

import bench.__main__ as command
import pytest
from bench import measurements
from bench.harness import Requirement, Result


@pytest.fixture(autouse=True)
def _temporary_results(monkeypatch, tmp_path, tmp_path_factory):
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    monkeypatch.setattr(measurements, "PATH", tmp_path_factory.mktemp("kept") / "results.json")
    monkeypatch.setattr(command.logs, "configure", lambda _level: None)


def use_results(monkeypatch, *results: Result) -> None:
    monkeypatch.setattr(command.importlib, "import_module", lambda _name: SimpleNamespace(run=lambda: iter(results)))


def result(name: str, value: float) -> Result:
    return Result(name, {"ours": [{"rate": value}]}, (Requirement("rate", "ours", at_least=10),))


def test_each_result_of_a_benchmark_is_saved_and_printed(monkeypatch, tmp_path, capsys):
    use_results(monkeypatch, result("one", 10), result("two", 20))

    assert command.main(["spares"]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"one.json", "one.md", "two.json", "two.md"}
    shown = capsys.readouterr().out
    assert "### one" in shown
    assert "### two" in shown


def test_a_missed_requirement_fails_the_run_and_is_reported(monkeypatch, capsys):
    use_results(monkeypatch, result("one", 10), result("two", 9))

    assert command.main(["spares"]) == 1
    assert "MISSED two: rate: ours >= 10, is 9.00" in capsys.readouterr().err


def test_an_unknown_benchmark_is_an_error_that_lists_the_choices(capsys):
    assert command.main(["nothing"]) == 1
    choices = capsys.readouterr().err.rpartition("there are: ")[2].strip().split(", ")
    assert {"apiserver", "pools", "spares", "spares_plan"} <= set(choices)
    assert not {"harness", "replay", "pools_fleet"} & set(choices)


def test_results_are_merged_into_the_kept_file(monkeypatch):
    use_results(monkeypatch, result("one", 10), result("two", 20))
    command.main(["spares"])
    use_results(monkeypatch, result("one", 30))
    command.main(["spares"])

    assert {each.name: each.rows[0].value for each in measurements.read(measurements.PATH)} == {"one": 30, "two": 20}


def test_another_file_can_be_named(monkeypatch, tmp_path):
    use_results(monkeypatch, result("one", 10))

    assert command.main(["spares", "--results", str(tmp_path / "mine.json")]) == 0
    assert [each.benchmark for each in measurements.read(tmp_path / "mine.json")] == ["spares"]
    assert measurements.read(measurements.PATH) == []
