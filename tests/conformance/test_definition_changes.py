"""CRDs that change while objects exist, whose names are taken, or that are deleted."""

from __future__ import annotations

import pytest

from nodeyard.testing.session import JSON_PATCH

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
STRING = {"type": "string"}


def version(name: str = "v1", *, served: bool = True, storage: bool = True, **fields: dict) -> dict:
    spec = {"type": "object", "properties": fields}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {"name": name, "served": served, "storage": storage, "schema": schema}


class Group:
    """Installs CRDs in an API group of the test's own."""

    def __init__(self, http, name: str, namespace: str, eventually) -> None:
        self.http, self.name, self.namespace, self.eventually = http, name, namespace, eventually

    def define(self, plural: str, kind: str, *versions: dict, **names: object) -> None:
        spec = {
            "group": self.name,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind, **names},
            "versions": versions or [version(a=STRING)],
        }
        answer = self.http.post(DEFINITIONS, {"metadata": {"name": f"{plural}.{self.name}"}, "spec": spec})
        assert answer.status == 201, answer.content

    def definition(self, plural: str) -> str:
        return f"{DEFINITIONS}/{plural}.{self.name}"

    def objects(self, plural: str, version: str = "v1") -> str:
        return f"/apis/{self.name}/{version}/namespaces/{self.namespace}/{plural}"

    def served(self, plural: str, version: str = "v1") -> str:
        path = self.objects(plural, version)
        self.eventually(lambda: self.http.get(path).status == 200, f"{plural} are served")
        return path

    def is_gone(self, plural: str) -> bool:
        return self.http.get(self.definition(plural)).status == 404

    def make(self, path: str, name: str, **spec: object) -> dict:
        api_version = "/".join(path.split("/")[2:4])
        answer = self.http.post(
            path, {"apiVersion": api_version, "kind": "Foo", "metadata": {"name": name}, "spec": spec}
        )
        assert answer.status == 201, answer.content
        return answer.json

    def condition(self, plural: str, kind: str) -> tuple[str, str, str]:
        found = self.http.get(self.definition(plural)).json["status"].get("conditions") or ()
        return next(((c["status"], c["reason"], c["message"]) for c in found if c["type"] == kind), ("", "", ""))


@pytest.fixture
def group(http, fresh, namespace, eventually) -> Group:
    return Group(http, f"{fresh('changing')}.example", namespace, eventually)


# objects under a new schema


@pytest.fixture
def changed(http, group, eventually) -> str:
    """Create the Foos, one of which was stored when the schema knew `old` and had no default for `b`."""
    group.define("foos", "Foo", version(a=STRING, old=STRING))
    path = group.served("foos")
    group.make(path, "x", a="1", old="y")
    definition = http.get(group.definition("foos")).json
    newer = version(a=STRING, b={"type": "string", "default": "given"})
    definition["spec"]["versions"] = [{**newer, "selectableFields": [{"jsonPath": ".spec.a"}]}]
    assert http.put(group.definition("foos"), definition).status == 200
    eventually(lambda: http.get(path, query={"fieldSelector": "spec.a=1"}).status == 200, "the new schema is served")
    return path


def test_an_old_object_is_read_as_the_new_schema_has_it(http, changed):
    shown = http.get(f"{changed}/x").json
    listed = http.get(changed).json["items"]

    assert shown["spec"] == {"a": "1", "b": "given"}
    assert [item["spec"] for item in listed] == [{"a": "1", "b": "given"}]


def test_rereading_it_is_no_change(http, changed):
    before = http.get(f"{changed}/x").json["metadata"]
    after = http.patch(f"{changed}/x", {"metadata": {"labels": {"l": "1"}}}).json["metadata"]

    assert (before["generation"], after["generation"]) == (1, 1)


def test_an_old_object_is_found_by_a_field_that_has_become_selectable(http, changed):
    def found(selector: str) -> list[str]:
        return [item["metadata"]["name"] for item in http.get(changed, query={"fieldSelector": selector}).json["items"]]

    assert (found("spec.a=1"), found("spec.a=2")) == (["x"], [])


# deletion


def test_a_definition_can_be_deleted_though_its_stored_version_is_not_served(http, group, eventually):
    group.define("foos", "Foo", version(storage=False, a=STRING), version("v2", served=False, a=STRING))
    group.make(group.served("foos"), "x", a="1")

    http.delete(group.definition("foos"))

    eventually(lambda: group.is_gone("foos"), "the definition is gone")


def test_a_definition_can_be_deleted_though_none_of_its_versions_is_served(http, group, eventually):
    group.define("foos", "Foo", version(a=STRING))
    group.make(path := group.served("foos"), "x", a="1")
    http.patch(
        group.definition("foos"), [{"op": "replace", "path": "/spec/versions/0/served", "value": False}], JSON_PATCH
    )
    eventually(lambda: http.get(path).status == 404, "foos are no longer served")

    http.delete(group.definition("foos"))

    eventually(lambda: group.is_gone("foos"), "the definition is gone")


# names


def test_a_kind_with_a_conflicting_name_is_not_served(http, group, eventually):
    group.define("foos", "Foo")
    group.served("foos")

    group.define("bazes", "Foo")

    told = ("False", "ListKindConflict", '"FooList" is already in use')
    eventually(lambda: group.condition("bazes", "NamesAccepted") == told, "the name is refused")
    assert group.condition("bazes", "Established") == ("False", "NotAccepted", "not all names are accepted")
    assert http.get(group.objects("bazes")).status == 404
    assert [each["name"] for each in http.get(f"/apis/{group.name}/v1").json["resources"]] == ["foos"]


def test_a_short_name_can_be_taken_too(http, group, eventually):
    group.define("foos", "Foo", shortNames=["fo"])
    group.served("foos")

    group.define("bars", "Bar", shortNames=["fo"])

    told = ("False", "ShortNamesConflict", '"fo" is already in use')
    eventually(lambda: group.condition("bars", "NamesAccepted") == told, "the name is refused")
    assert http.get(group.definition("bars")).json["status"]["acceptedNames"] == {
        "plural": "bars",
        "singular": "bar",
        "kind": "Bar",
        "listKind": "BarList",
    }
    assert http.get(group.objects("bars")).status == 404


@pytest.fixture
def rivals(group, eventually):
    """Two definitions of one kind: `foos` is served, `bazes` is not."""
    group.define("foos", "Foo")
    group.served("foos")
    group.define("bazes", "Foo")
    eventually(lambda: group.condition("bazes", "NamesAccepted")[0] == "False", "the name is refused")
    return group


def test_a_kind_is_served_once_its_name_is_free(http, rivals):
    http.delete(rivals.definition("foos"))

    rivals.make(rivals.served("bazes"), "x", a="1")
    assert rivals.condition("bazes", "Established")[0] == "True"


def test_a_definition_that_is_not_served_can_be_deleted(http, rivals, eventually):
    http.delete(rivals.definition("bazes"))

    eventually(lambda: rivals.is_gone("bazes"), "the definition is gone")
    assert http.get(rivals.objects("foos")).status == 200


def test_an_established_crd_stays_established_after_a_name_conflict(http, group, eventually):
    group.define("foos", "Foo", shortNames=["fo"])
    group.define("bars", "Bar")
    group.served("foos")
    group.served("bars")

    http.patch(group.definition("bars"), {"spec": {"names": {"shortNames": ["fo"]}}})

    eventually(lambda: group.condition("bars", "NamesAccepted")[0] == "False", "the name is refused")
    assert group.condition("bars", "Established")[0] == "True"
    group.served("bars")
