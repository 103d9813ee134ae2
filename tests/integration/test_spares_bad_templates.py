"""Invalid templates admitted by a laxer CRD affect no other template."""

import pytest
from tests.builders.yards import TEMPLATES, YARD

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.definition import NODE_TEMPLATE
from nodeyard.testing import third_party_crds
from nodeyard.testing.rest import RestError


def lax():
    """Return a CRD that admits anything, without the scale subresource, which makes the server read the spec."""
    definition = NODE_TEMPLATE.render()
    (version,) = definition["spec"]["versions"]
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": anything, "status": anything}}
    version = {**version, "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}}
    return {**definition, "spec": {**definition["spec"], "versions": [version]}}


def is_let_in(rest):
    body = {"apiVersion": names.API_VERSION, "kind": names.KIND, "metadata": {"name": "probe"}, "spec": {"nodes": "?"}}
    try:
        rest.call("POST", f"{TEMPLATES}?dryRun=All", body)
    except RestError as error:
        if error.status != 422:
            raise
        return False
    return True


@pytest.fixture
def lax_definition(api, node_templates, eventually):
    third_party_crds.install(api.rest, [lax()])
    eventually(lambda: is_let_in(api.rest), "the lax definition is served")
    yield
    third_party_crds.install(api.rest, [NODE_TEMPLATE.render()])
    eventually(lambda: not is_let_in(api.rest), "the strict definition is served again")


def test_a_bad_template_breaks_only_itself(lax_definition, yard, operator):
    yard.spares(3)
    senseless = {"matchExpressions": [{"key": YARD, "operator": "Foo"}]}
    bad = yard.template("bad", 1, selector=senseless, priority=9)
    unreadable = yard.template("unreadable", 1, template=["not", "a", "template"], priority=9)
    good = yard.template("good", 2)
    operator("spares")

    yard.until_owned(good, 2)

    yard.until_condition(bad, "ReconcileSuccess", "False", "ReconcileError")
    assert yard.condition(good, "Sufficient") == ("True", "SufficientNodes")
    for name in (bad, unreadable):
        (event, *_) = yard.until_told(name, "InvalidTemplate")
        assert event["type"] == "Warning"
        assert yard.owned(name) == []


def test_a_bad_template_that_is_mended_is_served_like_any_other(lax_definition, yard, operator):
    yard.spares(1)
    web = yard.template("web", 1, template="nonsense")
    operator("spares")
    yard.until_told(web, "InvalidTemplate")

    yard.change(web, template={"metadata": {"labels": {"team": "mended"}}})

    yard.until_owned(web, 1)


def test_a_bad_template_can_be_deleted(lax_definition, yard, operator, eventually):
    web = yard.template("web", 1)
    operator("spares")
    yard.until_condition(web, "Sufficient", "False", "NoSpareNodesFound")
    yard.change(web, nodes=-3)
    yard.until_condition(web, "ReconcileSuccess", "False", "ReconcileError")

    yard.delete(web)

    eventually(lambda: yard.see(web) is None, "the template is gone")


def test_a_template_that_cannot_be_read_any_more_can_be_deleted_and_its_nodes_stay_as_they_are(
    lax_definition, yard, operator, eventually
):
    name = yard.spare("one")
    operator("spares")
    web = yard.template("web", 1, releasePolicy="Release")
    yard.until_owned(web, 1)
    yard.change(web, template="nonsense")
    yard.until_told(web, "InvalidTemplate")
    before = yard.get(name)["metadata"]["labels"]

    yard.delete(web)

    eventually(lambda: yard.see(web) is None, "the template is gone")
    (event,) = yard.until_told(web, "Abandoned")
    assert "its nodes are unchanged" in event["note"]
    assert yard.get(name)["metadata"]["labels"] == before
