"""Invalid templates admitted by a laxer CRD affect no other template."""

import pytest
from tests.builders.spares_env import ENV_LABEL, TEMPLATES

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


def test_a_bad_template_breaks_only_itself(lax_definition, spares_env, operator):
    spares_env.spares(3)
    senseless = {"matchExpressions": [{"key": ENV_LABEL, "operator": "Foo"}]}
    bad = spares_env.template("bad", 1, selector=senseless, priority=9)
    unreadable = spares_env.template("unreadable", 1, template=["not", "a", "template"], priority=9)
    good = spares_env.template("good", 2)
    operator("spares")

    spares_env.wait_for_owned(good, 2)

    spares_env.wait_for_condition(bad, "ReconcileSuccess", "False", "ReconcileError")
    assert spares_env.condition(good, "Sufficient") == ("True", "SufficientNodes")
    for name in (bad, unreadable):
        (event, *_) = spares_env.wait_for_event(name, "InvalidTemplate")
        assert event["type"] == "Warning"
        assert spares_env.owned(name) == []


def test_a_bad_template_that_is_fixed_is_served_like_any_other(lax_definition, spares_env, operator):
    spares_env.spares(1)
    web = spares_env.template("web", 1, template="nonsense")
    operator("spares")
    spares_env.wait_for_event(web, "InvalidTemplate")

    spares_env.change(web, template={"metadata": {"labels": {"team": "mended"}}})

    spares_env.wait_for_owned(web, 1)


def test_a_bad_template_can_be_deleted(lax_definition, spares_env, operator, eventually):
    web = spares_env.template("web", 1)
    operator("spares")
    spares_env.wait_for_condition(web, "Sufficient", "False", "NoSpareNodesFound")
    spares_env.change(web, nodes=-3)
    spares_env.wait_for_condition(web, "ReconcileSuccess", "False", "ReconcileError")

    spares_env.delete(web)

    eventually(lambda: spares_env.get_template(web) is None, "the template is gone")


def test_a_template_that_cannot_be_read_any_more_can_be_deleted_and_its_nodes_stay_as_they_are(
    lax_definition, spares_env, operator, eventually
):
    name = spares_env.spare("one")
    operator("spares")
    web = spares_env.template("web", 1, releasePolicy="Release")
    spares_env.wait_for_owned(web, 1)
    spares_env.change(web, template="nonsense")
    spares_env.wait_for_event(web, "InvalidTemplate")
    before = spares_env.get_node(name)["metadata"]["labels"]

    spares_env.delete(web)

    eventually(lambda: spares_env.get_template(web) is None, "the template is gone")
    (event,) = spares_env.wait_for_event(web, "Abandoned")
    assert "its nodes are unchanged" in event["note"]
    assert spares_env.get_node(name)["metadata"]["labels"] == before
