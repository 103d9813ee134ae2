"""The server accepts what is planned for definitions and applications, and the next plan changes nothing.

On the real server HelmReleases are Flux's own kind, on the embedded one their stand-in.
"""

import itertools
import json
from pathlib import Path
from urllib.parse import urlencode

import msgspec
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from tests.builders.applications import CLASSES, affinity_class, builder
from tests.builders.schemas import schemas

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.planning.application_plan import plan_application
from nodeyard.capabilities.affinity.planning.definitions import crd_of, plan_definition
from nodeyard.capabilities.affinity.planning.structural_schema import structural
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.snapshot import ApplicationSnapshot, DefinitionSnapshot
from nodeyard.capabilities.affinity.types import ApplicationDefinition
from nodeyard.plan.model import Verb
from nodeyard.sim import stand_in_crds as stand_ins
from nodeyard.testing import third_party_crds
from nodeyard.testing.embedded import EmbeddedServer
from nodeyard.testing.rest import RestError
from nodeyard.testing.session import APPLY, MERGE
from nodeyard.testing.wait import until

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
EXAMPLE = Path(__file__).parents[2] / "examples" / "03-affinity" / "definitions.yaml"
NAMESPACE = "tenant-definitions"
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def rest(api):
    is_embedded = isinstance(api, EmbeddedServer)
    third_party_crds.install(
        api.rest, stand_ins.definitions("flux") if is_embedded else third_party_crds.definitions("flux-helm")
    )
    api.rest.replace_or_create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    yield api.rest
    api.rest.call("DELETE", f"/api/v1/namespaces/{NAMESPACE}")


class Declared:
    """A kind of one test, and the applied plans for it."""

    def __init__(self, rest, schema, example="postgres"):
        number = next(_numbers)
        body = next(each for each in yaml.safe_load_all(EXAMPLE.read_text()) if each["metadata"]["name"] == example)
        kind = f"{body['spec']['application']['kind']}{number}"
        application = {**body["spec"]["application"], "kind": kind}
        application |= {"plural": f"{kind.lower()}s", "singular": kind.lower()}
        if schema is not None:
            application["openAPISchema"] = json.dumps(schema)
        release = {**body["spec"]["release"], "prefix": f"{kind.lower()}-"}
        metadata = {"name": kind.lower(), "finalizers": [names.DEFINITION_FINALIZER]}
        self.rest, self.kind = rest, kind
        self.body = {"metadata": metadata, "spec": {"application": application, "release": release}}
        self.crd = f"{CRDS}/{kind.lower()}s.{names.APPS_GROUP}"

    @property
    def definition(self):
        return msgspec.convert(self.body, ApplicationDefinition)

    def with_schema(self, schema):
        application = {**self.body["spec"]["application"], "openAPISchema": json.dumps(schema)}
        self.body = {**self.body, "spec": {**self.body["spec"], "application": application}}

    def serve(self):
        """Plan and apply; return the reasons of the actions."""
        made = builder()
        plan_definition(made, DefinitionSnapshot(definition=self.definition, crd=found(self.rest, self.crd)))
        carry_out(self.rest, made, lambda _ref: self.crd)
        return [each.reason for each in made.actions]

    def create(self, name, spec):
        obj = {"apiVersion": names.APPS_API_VERSION, "kind": self.kind, "spec": spec}
        return self.rest.create({**obj, "metadata": {"name": name, "namespace": NAMESPACE}})

    def release_path(self, name):
        base = f"/apis/{names.FLUX_API_VERSION}/namespaces/{NAMESPACE}/{names.RELEASE_PLURAL}"
        return f"{base}/{self.kind.lower()}-{name}"

    def release(self, application, **given):
        """Plan and apply, record the class; return the reasons of the actions on the release."""
        name = application["metadata"]["name"]
        path = self.release_path(name)
        own = f"/apis/{names.APPS_API_VERSION}/namespaces/{NAMESPACE}/{self.kind.lower()}s/{name}"
        metadata = found(self.rest, own)["metadata"]
        application = {**application, "metadata": metadata}
        live = found(self.rest, path)
        made = builder()
        given = {"classes": CLASSES, **given}
        plan_application(
            made, ApplicationSnapshot(application=application, definition=self.definition, release=live, **given)
        )
        carry_out(self.rest, made, lambda ref: own if ref.kind == self.kind else path)
        return [each.reason for each in made.actions if each.reason != Reason.CLASS_RECORDED]


def found(rest, path):
    try:
        return rest.get(path)
    except RestError as error:
        if error.status != 404:
            raise
        return None


def carry_out(rest, made, path_of):
    for action in made.actions:
        path, body = path_of(action.object), made.writes[action.id].body
        if action.verb is Verb.PATCH:
            rest.call("PATCH", path, body, content_type=MERGE)
            continue
        assert action.verb is Verb.APPLY
        query = urlencode({"fieldManager": names.MANAGER, "force": "true", "fieldValidation": "Strict"})
        rest.call("PATCH", f"{path}?{query}", body, content_type=APPLY)


@pytest.fixture
def declared(rest):
    made = []

    def declare(schema=None, example="postgres"):
        made.append(Declared(rest, schema, example))
        assert made[-1].serve() == [Reason.DEFINITION_SERVED]
        base, kind = f"/apis/{names.APPS_API_VERSION}", made[-1].kind
        until(lambda: rest.status(f"{base}/{kind.lower()}s") == 200, f"{kind} is served")
        # A real server lists a new kind a moment after it serves it.
        until(lambda: kind in [each["kind"] for each in (found(rest, base) or {}).get("resources", ())], "it is listed")
        return made[-1]

    yield declare
    for each in made:
        rest.call("DELETE", each.crd)


# definitions


@pytest.mark.parametrize("example", ["postgres", "redis"])
def test_the_examples_are_served_and_nothing_is_left_to_do(declared, example):
    kind = declared(example=example)
    assert kind.serve() == []


RICH = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True, "default": 1},
        "users": {"type": "object", "default": {}, "additionalProperties": {"properties": {"a": True}}},
        "list": {"type": "array", "items": {"type": "object", "required": ["name"]}, "default": [{"name": "x"}]},
        "ratio": {"type": "number", "exclusiveMinimum": 0.0, "multipleOf": 0.5, "default": 1.0},
        "mode": {"type": ["string", "null"], "enum": ["a", "b", None], "default": "a"},
        "either": {"type": "object", "properties": {"x": {}, "y": {}}, "oneOf": [{"required": ["x"]}, {"not": {}}]},
        "strange": {"type": ["string", "boolean"], "description": "d", "$ref": "#/nowhere"},
        "closed": {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False},
    },
}  # fmt: skip


def test_a_rich_schema_is_served_and_nothing_is_left_to_do(declared):
    assert declared(RICH).serve() == []


def test_a_schema_that_changes_is_served_anew(declared):
    kind = declared(RICH)
    kind.with_schema({"type": "object", "properties": {"size": {"type": "string"}}})
    assert kind.serve() == [Reason.DEFINITION_SERVED]
    assert kind.serve() == []


@settings(deadline=None, max_examples=60, derandomize=True, suppress_health_check=list(HealthCheck))
@given(schema=schemas())
def test_the_crd_of_any_schema_is_stored_unchanged(rest, schema):
    made, _left_out = structural(json.dumps(schema))
    kind = Declared(rest, schema)
    body = crd_of(kind.definition, made)
    answer = rest.call("POST", f"{CRDS}?dryRun=All&fieldValidation=Strict", body)
    made = builder()
    plan_definition(made, DefinitionSnapshot(definition=kind.definition, crd=answer))
    assert [each.reason for each in made.actions] == []


def test_an_application_is_checked_defaulted_and_kept_whole(declared):
    kind = declared()
    made = kind.create("main", {"affinityClass": "dc1", "nodeAffinity": {"deep": {"er": 1}}, "unknown": {"x": [1]}})
    assert made["spec"]["replicas"] == 2
    assert made["spec"]["size"] == "10Gi"
    assert made["spec"]["nodeAffinity"] == {"deep": {"er": 1}}
    assert made["spec"]["unknown"] == {"x": [1]}
    assert "affinityClass" not in kind.create("plain", {})["spec"]
    for spec in ({"replicas": 0}, {"size": "big"}, {"affinityClass": "Not A Name"}, {"affinityClass": "a" * 64}):
        with pytest.raises(RestError) as refused:
            kind.create("refused", spec)
        assert refused.value.status == 422


# applications


TERMS = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["dc1", "dc2"]}]}]}
EITHER = affinity_class("either", {}, nodeAffinity={"requiredDuringSchedulingIgnoredDuringExecution": TERMS})

SPECS = [
    {},
    {"affinityClass": "dc1"},
    {"affinityClass": "either"},
    {"affinityClass": "", "users": [{"name": "a"}, {"name": "b"}], "ratio": 1.5, "flags": {"on": True, "off": None}},
    {"nodeSelector": {"disk": "ssd"}, "empty": {}, "none": [], "deep": {"a": {"b": [{"c": []}]}}},
]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: ",".join(spec) or "nothing")
def test_a_release_is_accepted_and_nothing_is_left_to_do(declared, spec):
    kind = declared()
    application = kind.create("main", spec)
    classes = {**CLASSES, "either": EITHER}
    assert kind.release(application, classes=classes) == [Reason.RELEASE_APPLIED]
    assert kind.release(application, classes=classes) == []


def test_removed_values_and_list_items_are_removed_from_the_release(declared):
    kind = declared()
    application = kind.create("main", {"a": {"b": 1, "c": 2}, "users": [{"name": "a"}, {"name": "b"}]})
    kind.release(application)
    application["spec"] = {**application["spec"], "a": {"b": 1}, "users": [{"name": "a"}]}
    assert kind.release(application) == [Reason.RELEASE_APPLIED]
    values = kind.rest.get(kind.release_path("main"))["spec"]["values"]
    assert values["a"] == {"b": 1}
    assert values["users"] == [{"name": "a"}]
    assert kind.release(application) == []


def test_a_class_change_replaces_the_placement_whole_and_settles_when_flux_is_done(declared):
    kind = declared()
    gpu = affinity_class("gpu", {"gpu": "true"})
    classes = {**CLASSES, "gpu": gpu}
    application = kind.create("main", {"affinityClass": "dc1"})
    kind.release(application)
    application["spec"] = {**application["spec"], "affinityClass": "gpu"}
    assert kind.release(application, classes=classes) == [Reason.CLASS_CHANGED]
    live = kind.rest.get(kind.release_path("main"))
    assert live["spec"]["values"]["_scheduling"] == {"affinityClass": "gpu", "nodeSelector": {"gpu": "true"}}
    assert live["metadata"]["labels"][names.PREVIOUS_CLASS] == "dc1"
    assert kind.release(application, classes=classes) == []
    report(kind, "main", live["metadata"]["generation"])
    assert kind.release(application, classes=classes) == [Reason.CLASS_SETTLED]
    assert names.PREVIOUS_CLASS not in kind.rest.get(kind.release_path("main"))["metadata"]["labels"]
    assert kind.release(application, classes=classes) == []


def report(kind, name, generation):
    """Set the conditions by which Flux says that a release is ready."""
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "UpgradeSucceeded",
        "message": "done",
        "observedGeneration": generation,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    status = {"status": {"observedGeneration": generation, "conditions": [ready]}}
    kind.rest.call("PATCH", f"{kind.release_path(name)}/status", status, content_type=MERGE)


def test_a_release_of_the_platform_is_adopted_and_its_foreign_values_are_removed(declared):
    kind = declared()
    application = kind.create("main", {"replicas": 2})
    kind.rest.create(
        {
            "apiVersion": names.FLUX_API_VERSION,
            "kind": names.RELEASE_KIND,
            "metadata": {
                "name": f"{kind.kind.lower()}-main",
                "namespace": NAMESPACE,
                "labels": {
                    names.APPLICATION_GROUP: names.APPS_GROUP,
                    names.APPLICATION_KIND: kind.kind,
                    names.APPLICATION_NAME: "main",
                    names.SHARDING_KEY: "shard-7",
                },
            },
            "spec": {
                "interval": "1h",
                "suspend": True,
                "chartRef": {"kind": "OCIRepository", "name": "old"},
                "values": {"replicas": 1, "left": {"over": 1}, "_scheduling": {"nodeSelector": {"a": "b"}}},
                "valuesFrom": [{"kind": "ConfigMap", "name": "mine", "targetPath": "x"}],
            },
        }
    )
    assert kind.release(application) == [Reason.VALUES_CLEARED, Reason.RELEASE_APPLIED]
    live = kind.rest.get(kind.release_path("main"))
    assert live["spec"]["values"] == application["spec"]
    assert live["spec"]["valuesFrom"] == [{"kind": "Secret", "name": names.VALUES_SECRET}]
    assert live["spec"]["suspend"] is True
    assert live["metadata"]["labels"][names.SHARDING_KEY] == "shard-7"
    assert live["metadata"]["ownerReferences"][0]["uid"] == application["metadata"]["uid"]
    assert kind.release(application) == []
