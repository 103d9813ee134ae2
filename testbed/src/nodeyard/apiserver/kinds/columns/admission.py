"""Tables of webhook configurations and policies."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from nodeyard.apiserver.kinds.printer import AGE, NAME, Printer, age, name, number, spec, text
from nodeyard.kube.json import Json, Object
from nodeyard.kube.selectors import from_object

_UNSET = "<unset>"


def webhook_cells(obj: Object, now: datetime) -> list[Json]:
    return [name(obj), len(obj.get("webhooks") or ()), age(obj, now)]


def policy_cells(obj: Object, now: datetime) -> list[Json]:
    given = spec(obj)
    kind = given.get("paramKind")
    shown = f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else _UNSET
    return [name(obj), len(given.get("validations") or ()), shown, age(obj, now)]


def policy_binding_cells(obj: Object, now: datetime) -> list[Json]:
    given = spec(obj)
    return [name(obj), given.get("policyName", ""), _parameters(given.get("paramRef")), age(obj, now)]


def _parameters(reference: Mapping[str, Any] | None) -> str:
    if reference and reference.get("name"):
        return f"{reference.get('namespace') or '*'}/{reference['name']}"
    if reference and reference.get("selector") is not None:
        return str(from_object(reference["selector"]))
    return _UNSET


WEBHOOKS = Printer((NAME, number("Webhooks", "How many webhooks it registers."), AGE), webhook_cells)
POLICY = Printer(
    (
        NAME,
        number("Validations", "How many expressions it checks."),
        text("ParamKind", "The kind of its parameters."),
        AGE,
    ),
    policy_cells,
)
POLICY_BINDING = Printer(
    (NAME, text("PolicyName", "The policy it puts to use."), text("ParamRef", "The parameters it uses."), AGE),
    policy_binding_cells,
)
