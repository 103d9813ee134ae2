"""The chart's alerts: they fire as documented, use existing metrics, and each has a runbook."""

import re
from importlib import import_module
from pathlib import Path

import pytest
import yaml
from tests.builders import promtool
from tests.builders.expressions import faults

from nodeyard.app.capabilities import CAPABILITIES

ROOT = Path(__file__).parents[2]
FILE = ROOT / "charts" / "nodeyard" / "monitoring" / "alerts.yaml"
RUNBOOKS = ROOT / "docs" / "runbooks"
RULES = {rule["alert"]: rule for group in yaml.safe_load(FILE.read_text())["groups"] for rule in group["rules"]}
HEALTHY = {
    'nodeyard_plans_held{capability="spares"}': "0x120",
    'nyallocator_sufficient_nodes{nodetemplate="web"}': "1x120",
    'nodeyard_pool_desired{cluster="prod",pool="gpu"}': "3x120",
    'nodeyard_pool_ready{cluster="prod",pool="gpu"}': "3x120",
    'nodeyard_pool_blocked{cluster="prod",pool="gpu"}': "0x120",
    'nodeyard_leaf_contact_age_seconds{cluster="east"}': "10x120",
    'nodeyard_leaf_lease_age_seconds{cluster="east"}': "9x120",
    'nodeyard_plan_blocked{capability="pools",reason="PoolEmpty"}': "2x120",
    'nodeyard_informer_stalled{view="",resource="nodes"}': "0x120",
    "nodeyard_webhook_certificate_expiry_seconds": "5184000x120",
    'nodeyard_leader{capability="spares",pod="a"}': "1x120",
    'nodeyard_leader{capability="spares",pod="b"}': "0x120",
    'nodeyard_webhook_reviews_total{webhook="pods",response="denied"}': "0+60x120",
}
"""Metrics of two replicas of a fleet without problems, a sample a minute."""

# alert: what differs from a healthy fleet, labels, summary
FIRING = {
    "held": (
        "NodeyardPlanHeld",
        {'nodeyard_plans_held{capability="spares"}': "2x120"},
        {"capability": "spares"},
        "2 plans of spares wait for an approval.",
    ),
    "a template lacks nodes": (
        "NodeyardNodeShortage",
        {'nyallocator_sufficient_nodes{nodetemplate="web"}': "0x120"},
        {"nodetemplate": "web"},
        "NodeTemplate web lacks nodes.",
    ),
    "a pool lacks nodes": (
        "NodeyardNodeShortage",
        {'nodeyard_pool_ready{cluster="prod",pool="gpu"}': "2x120"},
        {"cluster": "prod", "pool": "gpu"},
        "Pool gpu of prod lacks nodes.",
    ),
    "a leaf is silent": (
        "NodeyardLeafSilent",
        {'nodeyard_leaf_contact_age_seconds{cluster="east"}': "90x120"},
        {"cluster": "east"},
        "Leaf cluster east has not responded for 1m 30s.",
    ),
    "leases are late": (
        "NodeyardLeafLeasesLate",
        {'nodeyard_leaf_lease_age_seconds{cluster="east"}': "30x120"},
        {"cluster": "east"},
        "Node leases of leaf east are 30s old; nodes become NotReady at 40 s.",
    ),
    "a drain is blocked": (
        "NodeyardDrainBlocked",
        {'nodeyard_plan_blocked{capability="pools",reason="DrainTimeout"}': "1x120"},
        {"capability": "pools", "reason": "DrainTimeout"},
        "1 drains of pools have not finished for an hour: DrainTimeout.",
    ),
    "a rollout has stopped": (
        "NodeyardRolloutStopped",
        {'nodeyard_plan_blocked{capability="profiles",reason="ProgressDeadlineExceeded"}': "1x120"},
        {"capability": "profiles", "reason": "ProgressDeadlineExceeded"},
        "A rollout of profiles has stopped: ProgressDeadlineExceeded.",
    ),
    "a pool is blocked": (
        "NodeyardRolloutStopped",
        {'nodeyard_pool_blocked{cluster="prod",pool="gpu"}': "1x120"},
        {"cluster": "prod", "pool": "gpu"},
        "Pool gpu of prod is blocked.",
    ),
    "an informer is stalled": (
        "NodeyardInformerStalled",
        {'nodeyard_informer_stalled{view="",resource="nodes"}': "1x120"},
        {"resource": "nodes"},
        "The cache of nodes may be stale.",
    ),
    "the certificate ends": (
        "NodeyardCertificateExpiring",
        {"nodeyard_webhook_certificate_expiry_seconds": "439200x120"},
        {},
        "The webhook certificate ends in 5d 0h 0m 0s.",
    ),
    "nobody leads": (
        "NodeyardNoLeader",
        {'nodeyard_leader{capability="spares",pod="a"}': "0x120"},
        {"capability": "spares"},
        "Capability spares has no leader.",
    ),
    "nothing runs": (
        "NodeyardNoLeader",
        {
            'nodeyard_leader{capability="spares",pod="a"}': "_x120",
            'nodeyard_leader{capability="spares",pod="b"}': "_x120",
        },
        {},
        "No operator is running.",
    ),
    "reviews fail": (
        "NodeyardWebhookErrors",
        {'nodeyard_webhook_reviews_total{webhook="pods",response="error"}': "0+120x120"},
        {"webhook": "pods"},
        "Webhook pods fails 2 reviews a second.",
    ),
}


def cases_of(series, expected):
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "alert_rule_test": [
            {"eval_time": "2h", "alertname": name, "exp_alerts": expected.get(name, [])} for name in RULES
        ],
    }


def alert_of(name, labels, summary):
    rule = RULES[name]
    return {
        "exp_labels": {**labels, **rule["labels"]},
        "exp_annotations": {**rule["annotations"], "summary": summary},
    }


def unit_test(folder, *tests):
    file = promtool.write(folder / "tests.yaml", {"rule_files": [str(FILE)], "tests": tests})
    return promtool.run("test", "rules", file)


def test_there_are_ten_and_every_one_is_tried():
    assert len(RULES) == 10
    assert {name for name, *_ in FIRING.values()} == RULES.keys()
    code, said = promtool.run("check", "rules", FILE)
    assert code == 0, said


def test_none_fires_in_a_fleet_without_problems(tmp_path):
    code, said = unit_test(tmp_path, cases_of(HEALTHY, {}))
    assert code == 0, said


@pytest.mark.parametrize(("name", "series", "labels", "summary"), FIRING.values(), ids=FIRING)
def test_it_fires_alone_and_names_its_object(tmp_path, name, series, labels, summary):
    code, said = unit_test(tmp_path, cases_of({**HEALTHY, **series}, {name: [alert_of(name, labels, summary)]}))
    assert code == 0, said


async def test_their_metrics_and_labels_are_those_of_the_operator():
    assert {name: found for name, rule in RULES.items() if (found := await faults(rule["expr"]))} == {}


def test_reasons_in_them_are_reasons_of_capabilities():
    modules = [import_module(f"nodeyard.capabilities.{capability.name}.reasons") for capability in CAPABILITIES]
    known = {reason.value for module in modules for reason in module.Reason}
    for rule in RULES.values():
        for pattern in re.findall(r'reason=~"([^"]+)"', rule["expr"]):
            assert set(pattern.split("|")) <= known, rule["alert"]


@pytest.mark.parametrize("name", RULES)
def test_each_has_a_runbook_that_begins_with_why(name):
    page = (RUNBOOKS / f"{name}.md").read_text()
    assert page.startswith(f"# {name}\n\n```console\n$ nodeyard why ")
    assert f"`{RULES[name]['expr']}`; severity {RULES[name]['labels']['severity']}" in page
    assert RULES[name]["annotations"]["runbook_url"].endswith(f"/runbooks/{name}")


def test_there_is_no_runbook_without_an_alert():
    assert {path.stem for path in RUNBOOKS.glob("*.md")} == RULES.keys()
