"""Close a CRD for new objects before it is deleted: an object created after the last check would be deleted with it.

    closed    a rule in its schema rejects new objects, and allows updates of existing ones
    settled   a few seconds later every API server enforces the rule, and the watch has delivered what came before

Only then is it certain that the CRD is empty, and stays empty. The webhook rejects new objects sooner, if it is called.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from nodeyard.capabilities.affinity import names
from nodeyard.kube import timestamps
from nodeyard.kube.json import Object

# Not much less: API servers recreate the storage of a changed CRD. A CRD deleted within that second may stay for
# minutes: the first attempt to empty it comes too early, and the next one only with the next resync.
SETTLE: timedelta = timedelta(seconds=5)
_RULES: Final = "x-kubernetes-validations"
_RULE: Final[Object] = {
    "rule": "oldSelf.hasValue()",
    "optionalOldSelf": True,
    "message": f"new objects of this kind are rejected: its {names.DEFINITION_KIND} is being deleted",
}


def closing_patch(crd: Object, now: datetime) -> Object:
    """Return a patch after which the CRD rejects new objects."""
    return {
        "metadata": {"annotations": {names.CLOSED_AT: timestamps.format_rfc3339_millis(now)}},
        "spec": {"versions": [_with_closing_rule(each) for each in crd["spec"]["versions"]]},
    }


def _with_closing_rule(version: Object) -> Object:
    schema = version["schema"]["openAPIV3Schema"]
    rules = [*(each for each in schema.get(_RULES) or () if not _is_closing(each)), _RULE]
    return {**version, "schema": {**version["schema"], "openAPIV3Schema": {**schema, _RULES: rules}}}


def settled_at(crd: Object) -> datetime | None:
    """Return when no new object can appear any more; None if the CRD is not closed, or was reopened."""
    schemas = (each["schema"]["openAPIV3Schema"] for each in crd["spec"]["versions"])
    if not all(any(map(_is_closing, each.get(_RULES) or ())) for each in schemas):
        return None
    closed = timestamps.parse_rfc3339_or_none((crd["metadata"].get("annotations") or {}).get(names.CLOSED_AT))
    return None if closed is None else closed + SETTLE


def _is_closing(rule: Object) -> bool:
    return bool(rule.get("rule") == _RULE["rule"])
