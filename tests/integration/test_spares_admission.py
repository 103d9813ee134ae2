"""CRD validation: the API server admits valid NodeTemplates unchanged and rejects others with field and reason."""

from __future__ import annotations

import pytest

from nodeyard.capabilities.spares.definition import NODE_TEMPLATE
from nodeyard.kube.json import Object
from nodeyard.testing import third_party_crds
from nodeyard.testing.session import Session

PATH = "/apis/nyallocator.cybozu.io/v1/nodetemplates"


@pytest.fixture(scope="session")
def http(api) -> Session:
    third_party_crds.install(api.rest, [NODE_TEMPLATE.render()])
    return Session(api.url, api.authority.pem, api.admin_token)


def template(name: str = "compute", **spec) -> Object:
    body = {"selector": {"matchLabels": {"role": "compute"}}, "nodes": 3, **spec}
    return {
        "apiVersion": "nyallocator.cybozu.io/v1",
        "kind": "NodeTemplate",
        "metadata": {"name": name},
        "spec": {name: value for name, value in body.items() if value is not None},
    }


def send(http: Session, body: Object):
    return http.post(PATH, body, query={"dryRun": "All", "fieldValidation": "Strict"})


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"priority": 7, "dryRun": True},
        {"dry-run": True},
        {"dryRun": False, "dry-run": False},
        {"nodes": 0},
        {"selector": {}},
        {"selector": {"matchExpressions": [{"key": "cke.cybozu.com/role", "operator": "In", "values": ["a"]}]}},
        {
            "template": {
                "metadata": {"labels": {"baz": "qux"}, "annotations": {"for": "bar"}},
                "spec": {"taints": [{"key": "foo", "value": "bar", "effect": "NoSchedule"}]},
            }
        },
        {"template": {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoExecute"}]}}},
        {"eligibility": {"requireReady": True, "requireEmpty": True}, "spread": {"topologyKey": "rack"}},
        {"prune": True, "releasePolicy": "Release", "release": {"evictAfterSeconds": 60}, "paused": True},
    ],
    ids=[
        "least",
        "upstream",
        "seed's spelling",
        "both agree",
        "no nodes",
        "every node",
        "expression",
        "template",
        "one key two effects",
        "eligibility",
        "release",
    ],
)
def test_a_good_template_passes(http, spec):
    answer = send(http, template(**spec))

    assert answer.status == 201, answer.content
    assert answer.json["spec"]["priority"] == spec.get("priority", 1)
    assert "dryRun" not in answer.json["spec"] or "dryRun" in spec


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        (template(selector=None), "spec.selector", "Required value"),
        (template(nodes=None), "spec.nodes", "Required value"),
        (template(nodes=-1), "spec.nodes", "should be greater than or equal to 0"),
        (template(dryRun=True, **{"dry-run": False}), "spec", "must have the same value"),
        (template(releasePolicy="Drop"), "spec.releasePolicy", "Unsupported value"),
        (template("x" * 64), "", "at most 63 characters"),
        (template("spare"), "", "reserved"),
        (
            template(selector={"matchExpressions": [{"key": "a", "operator": "Foo"}]}),
            "spec.selector.matchExpressions[0].operator",
            "Unsupported value",
        ),
        (
            template(selector={"matchExpressions": [{"key": "a", "operator": "In"}]}),
            "spec.selector.matchExpressions[0]",
            "require values",
        ),
        (
            template(template={"metadata": {"labels": {"not valid": "x"}}}),
            "spec.template.metadata.labels",
            "optional DNS prefix",
        ),
        (
            template(template={"metadata": {"labels": {"a" * 64: "x"}}}),
            "spec.template.metadata.labels",
            "name of at most 63",
        ),
        (
            template(template={"metadata": {"annotations": {"a..b/c": "x"}}}),
            "spec.template.metadata.annotations",
            "optional DNS prefix",
        ),
        (
            template(template={"spec": {"taints": [{"key": "not valid", "effect": "NoSchedule"}]}}),
            "spec.template.spec.taints[0].key",
            "optional DNS prefix",
        ),
        (template(selector={"matchLabels": {"not valid": "x"}}), "spec.selector.matchLabels", "optional DNS prefix"),
        (template(selector={"matchLabels": {"ok": "not valid!"}}), "spec.selector.matchLabels", "a label value is"),
        (
            template(selector={"matchExpressions": [{"key": f"{'a' * 254}/x", "operator": "Exists"}]}),
            "spec.selector.matchExpressions[0].key",
            "optional DNS prefix",
        ),
        (template(spread={"topologyKey": "/rack"}), "spec.spread.topologyKey", "optional DNS prefix"),
        (
            template(template={"metadata": {"labels": {"ok": "not valid!"}}}),
            "spec.template.metadata.labels",
            "a label value is",
        ),
        (
            template(template={"metadata": {"labels": {"nyallocator.cybozu.io/node-template": "x"}}}),
            "spec.template.metadata.labels",
            "are reserved",
        ),
        (
            template(template={"spec": {"taints": [{"key": "node.cybozu.io/spare", "effect": "NoSchedule"}]}}),
            "spec.template.spec.taints[0]",
            "is reserved",
        ),
        (
            template(template={"spec": {"taints": [{"key": "a", "effect": "Sometimes"}]}}),
            "spec.template.spec.taints[0]",
            "effect is one of",
        ),
        (
            template(template={"spec": {"taints": [{"key": "a", "effect": "NoExecute"}] * 2}}),
            "spec.template.spec.taints[1]",
            "Duplicate value",
        ),
    ],
    ids=[
        "no selector",
        "no count",
        "negative",
        "two spellings",
        "policy",
        "long name",
        "reserved name",
        "operator",
        "no values",
        "label key",
        "long label key",
        "annotation key",
        "taint key",
        "selector key",
        "selector value",
        "expression key",
        "topology key",
        "label value",
        "reserved label",
        "reserved taint",
        "effect",
        "taint twice",
    ],
)
def test_a_bad_template_is_refused_with_field_and_reason(http, body, field, words):
    answer = send(http, body)

    assert (answer.status, answer.reason) == (422, "Invalid"), answer.content
    told = [cause for cause in answer.causes if words in cause["message"]]
    assert told, answer.causes
    assert told[0]["field"].removeprefix("<nil>") == field


def test_an_unknown_field_is_refused(http):
    assert send(http, template(nodez=3)).status == 400


def test_kubectl_explains_and_scales(http, api, kubectl, eventually):
    http.post(PATH, template("scaled"))
    eventually(
        lambda: "Desired number of nodes." in kubectl("explain", "nodetemplate.spec.nodes", check=False).stdout,
        "the schema is published",
    )

    assert kubectl("scale", "nodetemplate", "scaled", "--replicas=5").stdout.endswith("scaled\n")
    assert http.get(f"{PATH}/scaled").json["spec"]["nodes"] == 5
    assert kubectl("get", "nt", "scaled", "--no-headers").stdout.split()[:2] == ["scaled", "5"]
    http.delete(f"{PATH}/scaled")
