"""The schemas of the example's definitions equal the values of its charts."""

import json
from pathlib import Path

import msgspec
import pytest
import yaml

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.planning.structural_schema import structural
from nodeyard.capabilities.affinity.types import ApplicationDefinition
from nodeyard.capabilities.affinity.validation import declaration_faults

EXAMPLE = Path(__file__).parents[4] / "examples" / "03-affinity"
DEFINITIONS = {
    each["metadata"]["name"]: each for each in yaml.safe_load_all((EXAMPLE / "definitions.yaml").read_text())
}


def chart(name, file):
    return (EXAMPLE / "charts" / name / file).read_text()


@pytest.fixture(params=["postgres", "redis"])
def name(request):
    return request.param


@pytest.fixture
def definition(name):
    return msgspec.convert(DEFINITIONS[name], ApplicationDefinition)


def test_it_can_be_served_and_nothing_is_left_out(definition):
    assert declaration_faults(definition) == []
    assert structural(definition.spec.application.open_api_schema)[1] == ()


def test_it_offers_the_values_of_its_chart_with_their_defaults(name, definition):
    schema, _left_out = structural(definition.spec.application.open_api_schema)
    offered = {field: node.get("default") for field, node in schema["properties"].items() if field != names.CLASS_FIELD}
    assert offered == {
        key: value for key, value in yaml.safe_load(chart(name, "values.yaml")).items() if key != names.CLASS_FIELD
    }
    assert names.CLASS_FIELD in schema["properties"]


def test_it_checks_what_its_chart_checks(name, definition):
    theirs = json.loads(chart(name, "values.schema.json"))["properties"]
    ours = json.loads(definition.spec.application.open_api_schema)["properties"]
    for field, node in ours.items():
        assert node["type"] in theirs[field]["type"]
        assert node.get("pattern") == theirs[field].get("pattern")
        assert node.get("minimum") == theirs[field].get("minimum")
