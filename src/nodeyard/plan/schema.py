"""JSON Schema of the public form of plans, derived from the types: docs/schema/plan.schema.json."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from nodeyard.kube.json import Object
from nodeyard.plan.model import API_VERSION, Action, Blocked, Candidate, Decision, Plan

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_MESSAGE: Final = {"type": "string", "description": "The reason and its facts as a sentence."}


def plan_schema() -> Object:
    """Return the schema of a Plan, and of the PlanList that `nodeyard plan -o json` prints.

    Properties that it does not name may appear in a later version.
    """
    _, definitions = msgspec.json.schema_components([Plan])
    for each in (Action, Blocked, Candidate, Decision):
        _add(definitions[each.__name__], "message", _MESSAGE)
    definitions["Message"]["description"] = "The facts of a reason; each reason has its own."
    advice: Object = {"title": "Advice", "type": "object", "properties": {}, "required": []}
    _add(advice, "reason", {"type": "string"})
    _add(advice, "message", _MESSAGE)
    definitions["Advice"] = advice
    definitions["Decision"]["properties"]["wouldChange"]["items"] = {"$ref": "#/$defs/Advice"}
    definitions["Plan"] = with_kind(definitions["Plan"], "Plan")
    items = {"type": "array", "items": {"$ref": "#/$defs/Plan"}}
    plan_list: Object = {"title": "PlanList", "type": "object", "properties": {"items": items}, "required": ["items"]}
    definitions["PlanList"] = with_kind(plan_list, "PlanList")
    either = [{"$ref": "#/$defs/PlanList"}, {"$ref": "#/$defs/Plan"}]
    return {"$schema": DIALECT, "title": "Plans of Nodeyard", "anyOf": either, "$defs": definitions}


def with_kind(schema: Any, kind: str) -> Object:
    """Return the schema with apiVersion and kind."""
    first = {"apiVersion": {"const": API_VERSION}, "kind": {"const": kind}}
    return {**schema, "properties": {**first, **schema["properties"]}, "required": [*first, *schema["required"]]}


def _add(schema: Any, name: str, property: Object) -> None:
    schema["properties"][name] = property
    schema["required"] = [*schema["required"], name]
