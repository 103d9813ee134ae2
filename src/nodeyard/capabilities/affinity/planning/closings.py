"""A CRD that is about to go takes no new objects: those that came after the last look would go with it.

    closed    a rule in its schema refuses what is made, and lets what is there be changed
    settled   a few seconds later every API server goes by that rule, and whatever came before has been told

Only then it is known that there is nothing left, and stays so. The webhook says the same sooner, where it is asked.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from nodeyard.capabilities.affinity import names
from nodeyard.kube import moments
from nodeyard.kube.json import Object

# Not much less: API servers make the storage of a changed CRD anew, and one that is deleted within that second may stay
# for minutes, since they notice only at their next round that their first try to empty it came too early.
SETTLE: timedelta = timedelta(seconds=5)
_RULES: Final = "x-kubernetes-validations"
_RULE: Final[Object] = {
    "rule": "oldSelf.hasValue()",
    "optionalOldSelf": True,
    "message": f"no more of this kind can be made: its {names.DEFINITION_KIND} is being deleted",
}


def closing(crd: Object, now: datetime) -> Object:
    """A patch by which the CRD takes no new objects."""
    return {
        "metadata": {"annotations": {names.CLOSED_AT: moments.written_exactly(now)}},
        "spec": {"versions": [_closed(each) for each in crd["spec"]["versions"]]},
    }


def _closed(version: Object) -> Object:
    schema = version["schema"]["openAPIV3Schema"]
    rules = [*(each for each in schema.get(_RULES) or () if not _is_closing(each)), _RULE]
    return {**version, "schema": {**version["schema"], "openAPIV3Schema": {**schema, _RULES: rules}}}


def settled_at(crd: Object) -> datetime | None:
    """When nothing new can be in it any more; None where it is not closed, or was opened again since."""
    schemas = (each["schema"]["openAPIV3Schema"] for each in crd["spec"]["versions"])
    if not all(any(map(_is_closing, each.get(_RULES) or ())) for each in schemas):
        return None
    closed = moments.read((crd["metadata"].get("annotations") or {}).get(names.CLOSED_AT))
    return None if closed is None else closed + SETTLE


def _is_closing(rule: Object) -> bool:
    return bool(rule.get("rule") == _RULE["rule"])
