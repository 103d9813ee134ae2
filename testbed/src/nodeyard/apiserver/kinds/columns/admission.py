"""Tables of webhook configurations and policies."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from nodeyard.apiserver.kinds.printer import AGE, NAME, Printer, age_of, name_of, number_column, spec_of, text_column
from nodeyard.kube.json import Json, Object
from nodeyard.kube.selectors import from_object

_UNSET = "<unset>"


def webhook_cells(obj: Object, now: datetime) -> list[Json]:
    return [name_of(obj), len(obj.get("webhooks") or ()), age_of(obj, now)]


def policy_cells(obj: Object, now: datetime) -> list[Json]:
    given = spec_of(obj)
    kind = given.get("paramKind")
    shown = f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else _UNSET
    return [name_of(obj), len(given.get("validations") or ()), shown, age_of(obj, now)]


def policy_binding_cells(obj: Object, now: datetime) -> list[Json]:
    given = spec_of(obj)
    return [name_of(obj), given.get("policyName", ""), _parameters(given.get("paramRef")), age_of(obj, now)]


def _parameters(reference: Mapping[str, Any] | None) -> str:
    if reference and reference.get("name"):
        return f"{reference.get('namespace') or '*'}/{reference['name']}"
    if reference and reference.get("selector") is not None:
        return str(from_object(reference["selector"]))
    return _UNSET


WEBHOOKS = Printer((NAME, number_column("Webhooks", "How many webhooks it registers."), AGE), webhook_cells)
POLICY = Printer(
    (
        NAME,
        number_column("Validations", "How many expressions it checks."),
        text_column("ParamKind", "The kind of its parameters."),
        AGE,
    ),
    policy_cells,
)
POLICY_BINDING = Printer(
    (
        NAME,
        text_column("PolicyName", "The policy it puts to use."),
        text_column("ParamRef", "The parameters it uses."),
        AGE,
    ),
    policy_binding_cells,
)
