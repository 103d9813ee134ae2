"""The chart's Grafana dashboards: generated, with existing metrics and valid expressions."""

import json
import re

import pytest
from tests.builders import promtool
from tests.builders.chart_install import installed
from tests.builders.expressions import faults
from tools.dashboards import DASHBOARDS, FOLDER, render
from tools.reference import exported

SHOWN = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
EXPRESSIONS = {
    f"{name}, {panel['title']}": target
    for name, dashboard in SHOWN.items()
    for panel in dashboard["panels"]
    for target in panel["targets"]
}
NOT_SHOWN = {
    # Details of caches, read on /metrics after an alert.
    "nodeyard_informer_malformed_objects",
    "nodeyard_informer_objects",
    "nodeyard_informer_restarts",
    "nodeyard_informer_silence_seconds",
    "nodeyard_informer_synced",
    "nodeyard_informer_unconfirmed_writes",
    # A join for users' own dashboards.
    "nyallocator_annotations",
    "process_max_fds",
    "process_open_fds",
    "process_start_time_seconds",
    "process_virtual_memory_bytes",
}


def plain(expression):
    """Return the expression with sample values for Grafana's variables."""
    return expression.replace("$__rate_interval", "5m")


def test_they_have_not_drifted():
    assert {each.name: json.loads(render(each)) for each in DASHBOARDS} == SHOWN, "run python -m tools.dashboards"
    for each in DASHBOARDS:
        assert (FOLDER / f"{each.name}.json").read_text() == render(each)


@pytest.mark.parametrize("target", EXPRESSIONS.values(), ids=EXPRESSIONS)
async def test_metrics_labels_and_legend_of_a_panel_exist(target):
    expression = plain(target["expr"])
    assert await faults(expression) == []
    legend = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
    grouped = {label.strip() for group in re.findall(r"by \(([^)]*)\)", expression) for label in group.split(",")}
    assert legend <= (grouped or {"pod"})


def test_prometheus_reads_every_expression(tmp_path):
    rules = [
        {"record": f"panel:{index}", "expr": plain(each["expr"])} for index, each in enumerate(EXPRESSIONS.values())
    ]
    file = promtool.write(tmp_path / "rules.json", {"groups": [{"name": "panels", "rules": rules}]})
    code, said = promtool.run("check", "rules", file)
    assert code == 0, said
    assert f"{len(rules)} rules found" in said


async def test_every_metric_is_on_a_dashboard():
    everything = " ".join(target["expr"] for target in EXPRESSIONS.values())
    assert {each.name for each in await exported() if each.name not in everything} == NOT_SHOWN


@pytest.mark.parametrize("dashboard", SHOWN.values(), ids=SHOWN)
async def test_variables_are_values_of_a_label_that_exists(dashboard):
    names = {each["name"] for each in dashboard["templating"]["list"]}
    used = set(re.findall(r"\$(\w+)", json.dumps([panel["targets"] for panel in dashboard["panels"]])))
    assert used - {"__rate_interval"} <= names
    for each in dashboard["templating"]["list"]:
        if each["type"] == "query":
            metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", each["definition"]).groups()
            assert await faults(f'{metric}{{{label}=""}}') == []


def test_uids_are_unique_and_panels_do_not_overlap():
    assert len({each["uid"] for each in SHOWN.values()}) == len(SHOWN)
    for each in SHOWN.values():
        places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in each["panels"]]
        assert len(set(places)) == len(places)


def test_grafanas_sidecar_finds_all_of_them_whole():
    maps = [each for each in installed(metrics={"dashboards": {"enabled": True}}) if each["kind"] == "ConfigMap"]

    assert all(each["metadata"]["labels"]["grafana_dashboard"] == "1" for each in maps)
    found = {file: json.loads(text) for each in maps for file, text in each["data"].items()}
    assert found == {f"nodeyard-{name}.json": dashboard for name, dashboard in SHOWN.items()}
