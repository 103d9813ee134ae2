"""docs/security.md: every threat names tests that exist. SECURITY.md: every account's dangerous rights are named."""

import re
from pathlib import Path

import pytest

from nodeyard.app.capabilities import CAPABILITIES

ROOT = Path(__file__).parents[2]
TEST = re.compile(r"tests/[\w/]+\.py(?:::\w+)?")


def rows():
    """Return rows of the table of threats: the first column, and the tests in the last."""
    text = (ROOT / "docs/security.md").read_text().partition("## Threats")[2]
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [(cells[0], TEST.findall(cells[-1])) for cells in lines if not cells[0].startswith(("threat", "---"))]


def test_there_are_threats():
    assert len(rows()) > 40


@pytest.mark.parametrize(("threat", "tests"), rows(), ids=[f"row-{number}" for number in range(len(rows()))])
def test_each_threat_names_tests_that_exist(threat, tests):
    assert tests, f"{threat}: no test is named"
    for named in tests:
        path, _, function = named.partition("::")
        assert (ROOT / path).is_file(), f"{threat}: {path} is missing"
        if function:
            assert re.search(rf"def {function}\b", (ROOT / path).read_text()), f"{threat}: {named} is missing"


RIGHTS = {
    ("delete", "namespaces"): "delete any Namespace",
    ("delete", "nodes"): "delete any Node",
    ("create", "pods/eviction"): "drain nodes",
}
"""Consequences of a right in a stolen token."""


@pytest.mark.parametrize("capability", CAPABILITIES, ids=lambda each: each.name)
def test_the_dangerous_rights_of_a_stolen_token_are_named(capability):
    lines = (ROOT / "SECURITY.md").read_text().splitlines()
    (row,) = [line.split(" | ") for line in lines if line.startswith(f"| `{capability.name}` | ")]
    rules = [rule for rule in capability.rbac if not (rule.namespace or rule.names or rule.grant)]
    for (verb, resource), text in RIGHTS.items():
        if any(rule.group == "" and resource in rule.resources and verb in rule.verbs for rule in rules):
            assert text in row[2], f"{capability.name} may {verb} {resource}"


def test_the_capabilities_that_register_webhooks_are_named():
    text = (ROOT / "SECURITY.md").read_text()
    registering = [f"`{each.name}`" for each in CAPABILITIES if each.admission.webhooks]
    assert f"{', '.join(registering[:-1])} and {registering[-1]} also write their own webhook configurations" in text
