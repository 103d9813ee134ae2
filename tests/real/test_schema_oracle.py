"""The recorded answers about schemas, asked again.

`tests/unit/schema/recorded` holds what a real API server answers to some seven hundred definitions, objects and
updates; the unit tests hold our own code to them. Here the same questions go to a server, the real one and ours, so
that the records stay true. With NODEYARD_RECORD=1 the real server's answers replace the records.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from nodeyard.testing import ControlPlane
from nodeyard.testing.rest import Rest, RestError
from nodeyard.testing.wait import until

Case = dict[str, Any]

RECORDED = Path(__file__).parents[1] / "unit" / "schema" / "recorded"
GROUP = "schema.nodeyard.test"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
STRING = {"type": "string"}
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
# The real server walks maps in random order; faults of sibling fields come out in any.
ATTEMPTS = 15


class Oracle:
    """One server, and the kinds that are installed on it for the cases."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest
        self._made: set[str] = set()

    def define(self, kind: str, openapi: Case, *, has_status: bool = False) -> None:
        definition = _definition(kind, openapi, has_status=has_status)
        self._rest.call("POST", DEFINITIONS, definition)
        self._made.add(definition["metadata"]["name"])
        until(lambda: self._rest.status(_path(kind)) == 200, f"{kind} is served", 30)

    def redefine(self, kind: str, openapi: Case) -> None:
        """Change the schema, and wait until the server knows a field that only the new one has."""
        name = _definition(kind, openapi)["metadata"]["name"]
        current = self._rest.get(f"{DEFINITIONS}/{name}")
        current["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = openapi
        self._rest.call("PUT", f"{DEFINITIONS}/{name}", current)
        until(lambda: self.causes_of_create(kind, {"spec": {"canary": 0}}), f"{kind} has its new schema", 30)

    def close(self) -> None:
        for name in self._made:
            self._rest.call("DELETE", f"{DEFINITIONS}/{name}")

    def call(self, method: str, path: str, body: Case) -> Any:
        return self._rest.call(method, path, body)

    def get(self, path: str) -> Any:
        return self._rest.get(path)

    def create(self, kind: str, body: Case, options: str = "dryRun=All") -> Any:
        return self._rest.call("POST", f"{_path(kind)}?{options}", _object(kind, body))

    def causes_of_create(self, kind: str, body: Case) -> list[str]:
        return causes(partial(self.create, kind, body))


def _definition(kind: str, openapi: Case, *, has_status: bool = False) -> Case:
    plural = f"{kind.lower()}s"
    version: Case = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": openapi}}
    if has_status:
        version["subresources"] = {"status": {}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
            "versions": [version],
        },
    }


def _path(kind: str) -> str:
    return f"/apis/{GROUP}/v1/{kind.lower()}s"


def _object(kind: str, body: Case) -> Case:
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": "x"}, **body}


def causes(call: Callable[[], Any]) -> list[str]:
    """Return the causes of a 422, each as `reason field: message`; none when the call succeeds."""
    try:
        call()
    except RestError as error:
        if error.status != 422:
            raise
        return [f"{cause['reason']} {cause['field']}: {cause['message']}" for cause in error.causes]
    return []


def settled(call: Callable[[], Any]) -> Case:
    """Return the causes, and whether their order is random."""
    answers = [causes(call)]
    if len(answers[0]) > 1:
        answers += [causes(call) for _ in range(ATTEMPTS)]
    if all(answer == answers[0] for answer in answers):
        return {"causes": answers[0]}
    return {"causes": sorted(answers[0]), "any_order": True}


def reading(call: Callable[[str], Any], result: Callable[[Any], Case]) -> Case:
    """Return the object as it is read, and its unknown fields."""
    answer: Case = {}
    try:
        answer.update(result(call("dryRun=All&fieldValidation=Ignore")))
    except RestError as error:
        if error.status == 422:
            answer["causes"] = causes(lambda: call("dryRun=All&fieldValidation=Ignore"))
        else:
            answer["fault"] = error.message.partition(": ")[2]
    answer["unknown"] = []
    try:
        call("dryRun=All&fieldValidation=Strict")
    except RestError as error:
        if "strict decoding error" in error.message:
            answer["unknown"] = re.findall(r'unknown field "([^"]+)"', error.message)
    return answer


def load(name: str) -> list[Case]:
    cases: list[Case] = json.loads((RECORDED / f"{name}.json").read_text())
    return cases


def judge(name: str, cases: list[Case], answers: list[Case], *, is_real: bool) -> None:
    """Compare or record the answers. Each belongs to a case or to a try of one, in order."""
    asked = [case for block in cases for case in block.get("tries", [block])]
    known = ("causes", "any_order", "result", "fault", "unknown")
    if os.environ.get("NODEYARD_RECORD") and is_real:
        for case, answer in zip(asked, answers, strict=True):
            for key in known:
                case.pop(key, None)
            case.update(answer)
        (RECORDED / f"{name}.json").write_text(_written(cases))
    wrong = []
    for case, answer in zip(asked, answers, strict=True):
        recorded = {key: case[key] for key in known if key in case}
        if recorded.pop("any_order", False):
            answer = {"causes": sorted(answer["causes"])}
        answer.pop("any_order", None)
        if answer != recorded:
            wrong.append({"asked": case, "answered": answer})
    assert wrong == []


def _written(cases: list[Case]) -> str:
    """Format cases as blocks and tries as lines."""

    def text(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False)

    blocks = []
    for case in cases:
        head = ", ".join(f"{text(key)}: {text(value)}" for key, value in case.items() if key != "tries")
        tries = ",\n    ".join(map(text, case.get("tries", ())))
        blocks.append(f'  {{{head},\n   "tries": [\n    {tries}]}}' if tries else f"  {{{head}}}")
    return "[\n" + ",\n".join(blocks) + "\n]\n"


def _spec(properties: Case) -> Case:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}


@pytest.fixture
def oracle(api: Any) -> Iterator[Oracle]:
    oracle = Oracle(api.rest)
    yield oracle
    oracle.close()


def test_values_are_validated_as_recorded(api: Any, oracle: Oracle) -> None:
    cases = load("values")
    oracle.define("Valuecase", _spec({case["name"]: case["schema"] for case in cases}))
    answers = [
        settled(partial(oracle.create, "Valuecase", {"spec": {case["name"]: attempt["value"]}}))
        for case in cases
        for attempt in case["tries"]
    ]
    judge("values", cases, answers, is_real=isinstance(api, ControlPlane))


def test_updates_tolerate_what_was_recorded(api: Any, oracle: Oracle) -> None:
    cases = load("updates")
    oracle.define("Updatecase", {"type": "object", "properties": {"spec": ANYTHING}})
    names = []
    for case in cases:
        for position, attempt in enumerate(case["tries"]):
            names.append(f"{case['name'].replace('_', '-')}-{position}")
            body = {"metadata": {"name": names[-1]}, "spec": {"other": "a", case["name"]: attempt["old"]}}
            oracle.create("Updatecase", body, "")
    fields = {case["name"]: case["schema"] for case in cases}
    oracle.redefine("Updatecase", _spec({"other": STRING, "canary": {"type": "integer", "minimum": 5}, **fields}))
    remaining = iter(names)
    answers = []
    for case in cases:
        for attempt in case["tries"]:
            path = f"{_path('Updatecase')}/{next(remaining)}"
            obj = oracle.get(path)
            obj["metadata"]["labels"] = {"touched": "yes"}
            obj["spec"] = {"other": attempt["beside"], case["name"]: attempt["new"]}
            answers.append({"causes": causes(partial(oracle.call, "PUT", f"{path}?dryRun=All", obj))})
    judge("updates", cases, answers, is_real=isinstance(api, ControlPlane))


def test_status_is_validated_as_recorded(api: Any, oracle: Oracle) -> None:
    cases = load("status")
    status = {"type": "object", "properties": {case["name"]: case["schema"] for case in cases}}
    oracle.define("Statuscase", {"type": "object", "properties": {"status": status}}, has_status=True)
    oracle.create("Statuscase", {}, "")
    obj = oracle.get(f"{_path('Statuscase')}/x")
    answers = []
    for case in cases:
        for attempt in case["tries"]:
            body = {**obj, "status": {case["name"]: attempt["value"]}}
            path = f"{_path('Statuscase')}/x/status?dryRun=All"
            answers.append(settled(partial(oracle.call, "PUT", path, body)))
    judge("status", cases, answers, is_real=isinstance(api, ControlPlane))


def test_roots_are_validated_as_recorded(api: Any, oracle: Oracle) -> None:
    cases = load("roots")
    answers = []
    for position, case in enumerate(cases):
        kind = f"Rootcase{position}"
        oracle.define(kind, case["schema"])
        for attempt in case["tries"]:
            answers.append(settled(partial(oracle.create, kind, attempt["object"])))
    judge("roots", cases, answers, is_real=isinstance(api, ControlPlane))


def _value_read(name: str, obj: Case) -> Case:
    return {"result": obj["spec"][name]["v"]} if "v" in obj["spec"][name] else {}


def test_objects_are_decoded_as_recorded(api: Any, oracle: Oracle) -> None:
    cases = load("reading")
    fields = {case["name"]: {"type": "object", "properties": {"v": case["schema"]}} for case in cases}
    oracle.define("Readcase", _spec(fields))
    answers = []
    for case in cases:
        for attempt in case["tries"]:
            name = case["name"]
            body = {"spec": {name: {"v": attempt["value"]} if "value" in attempt else {}}}
            answers.append(reading(partial(oracle.create, "Readcase", body), partial(_value_read, name)))
    judge("reading", cases, answers, is_real=isinstance(api, ControlPlane))


def _metadata_read(obj: Case) -> Case:
    given = ("name", "labels", "annotations", "ownerReferences", "finalizers", "deletionGracePeriodSeconds")
    return {"result": {key: value for key, value in obj["metadata"].items() if key in given}}


def test_metadata_is_decoded_as_recorded(api: Any, oracle: Oracle) -> None:
    cases = load("metadata")
    oracle.define("Metacase", {"type": "object"})
    answers = [
        reading(partial(oracle.create, "Metacase", {"metadata": case["metadata"]}), _metadata_read) for case in cases
    ]
    judge("metadata", cases, answers, is_real=isinstance(api, ControlPlane))


def test_definitions_are_validated_as_recorded(api: Any, oracle: Oracle) -> None:
    cases = load("definitions")
    answers = []
    for case in cases:
        body = _definition("Defcase", case["schema"], has_status=case.get("has_status", False))
        answers.append(settled(partial(oracle.call, "POST", f"{DEFINITIONS}?dryRun=All", body)))
    judge("definitions", cases, answers, is_real=isinstance(api, ControlPlane))
