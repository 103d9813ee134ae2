"""Every manifest on the pages is accepted by the API server, and all values by the chart.

A block that is neither begins after `<!-- excerpt: reason -->`; values after `<!-- values of charts/nodeyard -->`, a
scenario of `nodeyard rehearse` after `<!-- scenario -->`.
"""

import re
from collections.abc import Iterator

import pytest
import yaml
from tests.builders import chart_install
from tools import doc_pages

from nodeyard.app.capabilities import CAPABILITIES
from nodeyard.rehearsal.scenario import read_scenario
from nodeyard.testing import third_party_crds

EXCERPT = re.compile(r"excerpt: \S+ .+")
VALUES = "values of "
SCENARIO = "scenario"
BLOCKS = {
    f"{page.relative_to(doc_pages.ROOT)}:{block.line}": block
    for page in doc_pages.pages()
    for block in doc_pages.blocks(page.read_text())
    if block.language in ("yaml", "yml")
}
OTHERS = ("excerpt", VALUES, SCENARIO)
MANIFESTS = {where: each.text for where, each in BLOCKS.items() if not each.comment.startswith(OTHERS)}
SCENARIOS = {where: each.text for where, each in BLOCKS.items() if each.comment == SCENARIO}
CHARTS = {where: each for where, each in BLOCKS.items() if each.comment.startswith(VALUES)}
EXCERPTS = {where: each for where, each in BLOCKS.items() if each.comment.startswith("excerpt")}


def namespaces() -> Iterator[str]:
    """Yield the namespaces that the manifests are in."""
    for text in MANIFESTS.values():
        for each in yaml.safe_load_all(text):
            yield (each.get("metadata") or {}).get("namespace") or "default"


@pytest.fixture(scope="module")
def installed(api):
    third_party_crds.install(api.rest, [definition for each in CAPABILITIES for definition in each.definitions()])
    for name in {*namespaces()} - {"default"}:
        if api.rest.status(f"/api/v1/namespaces/{name}") == 404:
            api.rest.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


@pytest.mark.parametrize("text", MANIFESTS.values(), ids=MANIFESTS)
def test_the_api_server_accepts_the_manifest(installed, kubectl, text):
    done = kubectl("apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-", stdin=text)
    assert done.stderr == ""


@pytest.mark.parametrize("block", CHARTS.values(), ids=CHARTS)
def test_the_chart_accepts_the_values(block):
    chart = doc_pages.ROOT / block.comment.removeprefix(VALUES)
    assert chart_install.installed(chart, **yaml.safe_load(block.text))


@pytest.mark.parametrize("text", SCENARIOS.values(), ids=SCENARIOS)
def test_a_rehearsal_accepts_the_scenario(text, tmp_path):
    (file := tmp_path / "scenario.yaml").write_text(text)
    assert read_scenario(file).events


@pytest.mark.parametrize("block", EXCERPTS.values(), ids=EXCERPTS)
def test_an_excerpt_has_a_reason(block):
    assert EXCERPT.fullmatch(block.comment)


def test_excerpts_are_few():
    assert len(EXCERPTS) < len(MANIFESTS)
