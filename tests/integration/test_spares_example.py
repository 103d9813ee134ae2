"""examples/01-spares gives the results in its README."""

from pathlib import Path

import pytest
from tests.builders.spares_env import NODES, labels, taints

from nodeyard.capabilities.spares import names
from nodeyard.kube.names import ZONE

EXAMPLE = Path(__file__).parents[2] / "examples" / "01-spares"


@pytest.fixture
def applied(node_templates, kubectl, operator):
    """Apply the example while the operator runs."""
    operator("spares")
    kubectl("apply", "-f", str(EXAMPLE))
    yield
    kubectl("delete", "--ignore-not-found", "-f", str(EXAMPLE))


def example_nodes(api):
    return [node for node in api.rest.get(NODES)["items"] if node["metadata"]["name"].startswith("example-")]


def left_over(api):
    return {node["metadata"]["name"] for node in example_nodes(api) if labels(node).get(names.SPARE_LABEL) == "true"}


def test_the_example_works_as_its_readme_describes(api, applied, kubectl, eventually):
    def row():
        return kubectl("get", "nodetemplate", "compute", "--no-headers").stdout.split()[:4]

    eventually(lambda: row() == ["compute", "10", "10", "True"], "ten nodes")
    owned = [node for node in example_nodes(api) if labels(node).get(names.TEMPLATE_LABEL) == "compute"]
    zones = [labels(node)[ZONE] for node in owned]
    assert sorted(map(zones.count, sorted(set(zones)))) == [3, 3, 4]
    assert zones.count("zone-a") == 4
    for node in owned:
        assert labels(node)[names.role_label("compute")] == "true"
        assert labels(node)["baz"] == "qux"
        assert node["metadata"]["annotations"]["for"] == "bar"
        assert taints(node)["foo"] == ("bar", "NoSchedule")
        assert names.SPARE_TAINT not in taints(node)
    eventually(lambda: left_over(api) == {"example-11", "example-12"}, "what is left over is labelled")

    kubectl("label", "node", "example-01", "baz=other", "--overwrite")
    eventually(lambda: labels(api.rest.get(f"{NODES}/example-01"))["baz"] == "qux", "it is put right")

    kubectl("delete", "-f", str(EXAMPLE))
    assert example_nodes(api) == []
