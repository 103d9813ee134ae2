"""The recorded answers about CEL, compared with a real API server; and third-party rules, which must compile here.

Cases share custom resources with a field for each: one CRD and one object serve dozens of cases.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml

from nodeyard.apiserver.cel import compile_rules
from nodeyard.schema.compile import compile_schema
from nodeyard.schema.model import Schema
from nodeyard.testing import ControlPlane, third_party_crds
from nodeyard.testing.rest import Rest, RestError
from nodeyard.testing.wait import until

pytestmark = pytest.mark.real

GROUP = "cel.nodeyard.dev"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
RECORDED = Path(__file__).parents[1] / "unit" / "apiserver" / "cel" / "recorded"
FOREIGN = (
    "cluster-api",
    "kubeadm-bootstrap",
    "kubeadm-control-plane",
    "docker",
    "aws",
    "proxmox",
    "flux-helm",
)
CANARY = {"type": "boolean", "x-kubernetes-validations": [{"rule": "!self"}]}
NUMBERS = count()

Case = dict[str, Any]


def recorded(name: str) -> Any:
    return yaml.load((RECORDED / f"{name}.yaml").read_text(), yaml.CSafeLoader)


def batches(cases: list[Case], size: int) -> list[list[Case]]:
    return [cases[start : start + size] for start in range(0, len(cases), size)]


@pytest.fixture(scope="module")
def rest() -> Iterator[Rest]:
    with ControlPlane() as plane:
        yield plane.rest


def definition(properties: dict[str, Any], plural: str = "") -> dict[str, Any]:
    plural = plural or f"c{next(NUMBERS)}"
    spec = {"type": "object", "properties": properties}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    names = {
        "plural": plural,
        "singular": plural,
        "kind": plural.capitalize(),
        "listKind": f"{plural.capitalize()}List",
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": names,
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


def refusals(rest: Rest, method: str, path: str, body: Any) -> list[dict[str, str]]:
    """Send the request as a dry run; return the causes of a refusal."""
    try:
        rest.call(method, f"{path}?dryRun=All", body)
    except RestError as error:
        return error.causes
    return []


class Kind:
    """Build a CRD whose `spec` has these properties."""

    def __init__(self, rest: Rest, properties: dict[str, Any]) -> None:
        self._rest = rest
        self._definition = definition({**properties, "canary": CANARY})
        self.path = f"/apis/{GROUP}/v1/{self._definition['spec']['names']['plural']}"

    def object(self, spec: dict[str, Any], **metadata: str) -> dict[str, Any]:
        kind = self._definition["spec"]["names"]["kind"]
        return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": "x", **metadata}, "spec": spec}

    def install(self, *, without_rules: bool = False) -> None:
        definition = without(self._definition) if without_rules else self._definition
        third_party_crds.install(self._rest, [definition])
        until(lambda: self._rest.status(self.path) == 200, "the kind is served")
        if not without_rules:
            until(lambda: self.refuses({"canary": True}), "the rules are in force")

    def refuses(self, spec: dict[str, Any]) -> list[dict[str, str]]:
        return refusals(self._rest, "POST", self.path, self.object(spec))


def without(value: Any) -> Any:
    """Return the schema without its rules."""
    if isinstance(value, dict):
        return {key: without(item) for key, item in value.items() if key != "x-kubernetes-validations"}
    return [without(item) for item in value] if isinstance(value, list) else value


def named(cases: list[Case]) -> dict[str, Case]:
    return {f"f{position:03}": case for position, case in enumerate(cases)}


def by_field(causes: list[dict[str, str]], pattern: str) -> dict[str, list[tuple[str, str]]]:
    """Return the causes by field: the rest of the path, and the message."""
    found: dict[str, list[tuple[str, str]]] = {}
    for cause in causes:
        match = re.match(pattern, cause["field"])
        if match:
            found.setdefault(match[1], []).append((match[2], cause["message"]))
    return found


IN_SCHEMA = r".*properties\[(f\d+)\](.*)"
IN_OBJECT = r"spec\.(f\d+)(.*)"


@pytest.mark.parametrize("cases", batches(recorded("expressions"), 60), ids=lambda cases: cases[0]["expression"][:20])
def test_expressions_are_what_was_recorded(rest: Rest, cases: list[Case]) -> None:
    fields = {
        name: {"type": "boolean", "x-kubernetes-validations": [{"rule": case["expression"]}]}
        for name, case in named(cases).items()
    }
    refused = by_field(refusals(rest, "POST", DEFINITIONS, definition(fields)), IN_SCHEMA)
    kind = Kind(rest, {name: schema for name, schema in fields.items() if name not in refused})
    kind.install()
    failed = by_field(kind.refuses({name: True for name in fields if name not in refused}), IN_OBJECT)

    answers = [
        {"expression": case["expression"], **expression_answer(refused.get(name), failed.get(name))}
        for name, case in named(cases).items()
    ]

    assert answers == cases


def expression_answer(refused: list[tuple[str, str]] | None, failed: list[tuple[str, str]] | None) -> dict[str, Any]:
    if refused:
        return {"refused": refused[0][1].partition('"OptionalOldSelf":null}: ')[2]}
    if not failed:
        return {"is": True}
    message = failed[0][1]
    if message.startswith("Invalid value: true: failed rule"):
        return {"is": False}
    overload = re.search(r"'(no such overload.*?)': call arguments", message)
    if overload:
        return {"fails": overload[1]}
    return {"fails": message.removeprefix('Invalid value: "boolean": ').partition(" evaluating rule:")[0]}


def test_texts_are_what_was_recorded(rest: Rest) -> None:
    cases = recorded("texts")
    rules = {name: {"rule": "!self", "messageExpression": case["expression"]} for name, case in named(cases).items()}
    kind = Kind(rest, {name: {"type": "boolean", "x-kubernetes-validations": [rule]} for name, rule in rules.items()})
    kind.install()

    said = by_field(kind.refuses(dict.fromkeys(rules, True)), IN_OBJECT)

    assert [said[name][0][1].removeprefix("Invalid value: true: ") for name in rules] == [
        each["says"] for each in cases
    ]


RULES = [case for cases in recorded("rules").values() for case in cases]


@pytest.mark.parametrize("cases", batches(RULES, 12), ids=lambda cases: cases[0]["it"])
def test_rules_answer_what_was_recorded(rest: Rest, cases: list[Case]) -> None:
    fields = named(cases)
    kind = Kind(rest, {name: case["schema"] for name, case in fields.items()})
    kind.install(without_rules=True)
    old = {name: case["old"] for name, case in fields.items() if "old" in case}
    stored = rest.call("POST", kind.path, kind.object(old))
    kind.install()

    updated = {name: fields[name]["value"] for name in old}
    body = kind.object(updated, resourceVersion=stored["metadata"]["resourceVersion"])
    causes = refusals(rest, "PUT", f"{kind.path}/x", body)
    rest.call("DELETE", f"{kind.path}/x")
    causes += kind.refuses({name: case["value"] for name, case in fields.items() if name not in old})

    found = by_field(causes, IN_OBJECT)
    answers = {name: [f"value{path}: {message}" for path, message in found.get(name, [])] for name in fields}
    assert answers == {name: case["answer"] for name, case in fields.items()}


@pytest.mark.parametrize("case", recorded("definitions"), ids=lambda case: case["finds"])
def test_definitions_are_refused_as_was_recorded(rest: Rest, case: Case) -> None:
    causes = refusals(rest, "POST", DEFINITIONS, definition({"f000": case["schema"]}))

    whole = "spec.validation.openAPIV3Schema.properties[spec].properties[f000]"
    answer = [f"{cause['field']}: {cause['message']}".replace(whole, "value") for cause in causes]
    # The server names the type of `self` by a number that differs each time.
    assert [re.sub(r"selfType\d+", "selfType", each) for each in answer] == case["answer"]


def rule_count(schema: Schema) -> int:
    below = [*schema.properties.values(), *filter(None, (schema.items, schema.additional))]
    return len(schema.rules) + sum(map(rule_count, below))


def test_all_rules_of_the_definitions_we_use_compile() -> None:
    versions = [version for each in third_party_crds.definitions(*FOREIGN) for version in each["spec"]["versions"]]
    schemas = [compile_schema(version["schema"]["openAPIV3Schema"]) for version in versions]

    errors = [str(error) for schema in schemas for error in compile_rules(schema)[1]]

    assert errors == []
    assert sum(map(rule_count, schemas)) > 200
