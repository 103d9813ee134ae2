"""Kept results: merging, the page and the plots made of them."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

from bench import measurements, peer, report
from bench.harness import Numbers, Requirement, Result
from bench.measurements import Machine, Measured, Row

MACHINE = Machine("A CPU", 2, 8, "3.11.7", "v1.36.4", "0.1.0")
SECONDS, RATE = "seconds until done", "writes per second"
GOLDEN = """\
Where it is slower or needs more than its ceiling or peer, also where that is allowed:

| benchmark | | times | limit |
|---|---|--:|--:|
| job | CPU seconds: operator / ceiling | 4.00 |  |
| job | seconds until done: operator / ceiling | 1.50 | 1.25, **missed** |

## Results

Machine of spares: 2 cores of A CPU, 8 GB; Python 3.11.7, Kubernetes v1.36.4, Nodeyard 0.1.0.

![Cost against the raw ceiling, which is 1](images/performance-ceiling.svg)

### Required and measured

| benchmark | | measured | limit | met |
|---|---|--:|--:|---|
| job | writes: operator | 1 | 1 | yes |
| job | seconds until done: operator / ceiling | 1.5 | ≤ 1.25 | **no** |
| job | writes per second: operator / ceiling | 1.25 | ≥ 0.8 | yes |

### All figures

#### job

2026-11-19, medians of 3 rounds, ± half the range.

| | operator | ceiling |
|---|--:|--:|
| seconds until done | 3 (±50%) | 2 (±0%) |
| writes per second | 2,500 (±0%) | 2,000 (±0%) |
| CPU seconds | 4 (±0%) | 1 (±0%) |
| writes | 1 (±0%) | 1 (±0%) |

"""


def numbers(seconds: float, rate: float, cpu: float) -> Numbers:
    return {SECONDS: seconds, RATE: rate, "CPU seconds": cpu, "writes": 1}


def sample(name: str = "job", date: str = "2026-11-19") -> Measured:
    rounds = {
        "operator": [numbers(each, 2500, 4) for each in (2, 3, 5)],
        "ceiling": [numbers(2, 2000, 1)] * 3,
    }
    requirements = (
        Requirement(SECONDS, "operator", "ceiling", at_most=1.25),
        Requirement(RATE, "operator", "ceiling", at_least=0.8),
        Requirement("writes", "operator", at_least=1, at_most=1),
    )
    return measurements.measured("spares", Result(name, rounds, requirements), date, MACHINE)


def test_a_row_has_value_unit_spread_and_limit():
    rows = sample().rows
    assert rows[0] == Row("operator", SECONDS, 3, "s", spread=1.0)
    assert rows[3] == Row("operator", "writes", 1, spread=0, at_least=1, at_most=1, met=True)
    assert rows[-2] == Row("operator", SECONDS, 1.5, against="ceiling", at_most=1.25, met=False)


def test_one_round_has_no_spread():
    [row] = measurements.measured("x", Result("x", {"ours": [{"memory, MB": 2.0}]}), "2026-11-19", MACHINE).rows
    assert row == Row("ours", "memory, MB", 2, "MB", spread=None)


def test_a_result_replaces_only_the_one_of_its_name(tmp_path):
    path = tmp_path / "results.json"
    for each in (sample("one", "2026-11-01"), sample("two", "2026-11-01"), sample("one", "2026-11-19")):
        measurements.merge(path, each)

    assert {each.name: each.date for each in measurements.read(path)} == {"one": "2026-11-19", "two": "2026-11-01"}
    assert measurements.read(path)[1] == sample("one")


def test_the_machine_is_described_without_its_host_name():
    machine = measurements.this_machine()
    assert machine.cores > 0
    assert machine.memory_gb > 0
    assert machine.kubernetes.startswith("v1.")


def test_the_page_shows_losses_limits_and_figures():
    shown = report.page(f"before\n{report.BEGIN}stale\n{report.END}after\n", [sample()])
    assert shown.startswith(f"before\n{report.BEGIN}\n{GOLDEN}")
    assert shown.endswith(f"{report.END}after\n")
    assert "stale" not in shown


def test_the_peer_is_quoted_only_if_it_was_not_measured():
    theirs = Measured("spares", "peer", "2026-11-19", MACHINE, 1, [Row(peer.NAME, SECONDS, 300, "s")])
    text = report.BEGIN + report.END
    assert "nyallocator, quoted\n\nQuoted from another run, not measured here" in report.page(text, [sample()])
    assert "quoted" not in report.page(text, [theirs])


def test_without_results_nothing_is_claimed_or_drawn():
    assert report.plots([]) == {}
    assert "## Results" not in report.page(report.BEGIN + report.END, [])


def test_a_plot_has_a_bar_and_a_limit_for_each_required_ratio():
    plots = report.plots([sample()])
    assert list(plots) == ["performance-ceiling.svg"]
    svg = ElementTree.fromstring(plots["performance-ceiling.svg"])
    bars = {each.get("class"): float(each.get("width", 0)) for each in svg.iter("{http://www.w3.org/2000/svg}rect")}
    # Half as much again as the ceiling; and 1 / 1.25, because a higher rate is a lower cost.
    assert bars == {"missed": report.BAR, "met": round(report.BAR * 0.8 / 1.5, 1)}


def test_page_and_plots_are_those_of_the_kept_results():
    results = measurements.read(measurements.PATH)
    assert report.PAGE.read_text() == report.page(report.PAGE.read_text(), results)
    assert {path.name: path.read_text() for path in report.IMAGES.glob("performance-*.svg")} == report.plots(results)
