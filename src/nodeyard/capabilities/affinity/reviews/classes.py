"""Review AffinityClasses: deny invalid selectors, and the deletion of a class in use."""

from __future__ import annotations

from collections.abc import Iterator

from nodeyard.capabilities.affinity.collect.classes import users
from nodeyard.capabilities.affinity.messages.classes import AllNodesMatch, NoNodeMatches, SelfAssignableLabel
from nodeyard.capabilities.affinity.planning.classes import class_in_use, selector_errors, self_assignable
from nodeyard.capabilities.affinity.planning.containment import compiled, is_in_class
from nodeyard.capabilities.affinity.types import AffinityClass
from nodeyard.kube.names import label_value_faults
from nodeyard.runtime.capability import View
from nodeyard.runtime.webhooks import AdmissionRequest, AdmissionResponse, allowed, decode, denied, ratchet


def review_class(review: AdmissionRequest, view: View) -> AdmissionResponse:
    if review.operation == "DELETE":
        return _review_removal(review, view)
    new, old = (decode(each, AffinityClass) for each in (review.object, review.old_object))
    if new is None or new.is_deleting:
        return allowed()
    errors, before = _errors(new), [] if old is None else _errors(old)
    fresh = [each for each in errors if each not in before]
    known = [each for each in errors if each in before]
    return ratchet(fresh, known, _warnings(new, view) if _changes_selectors(new, old) else ())


def _review_removal(review: AdmissionRequest, view: View) -> AdmissionResponse:
    old = decode(review.old_object, AffinityClass)
    if old is not None and old.is_deleting:
        return allowed()
    found = users(view, review.name)
    return denied(class_in_use(review.name, found).text()) if found else allowed()


def _errors(affinity_class: AffinityClass) -> list[str]:
    # The name is used as a label value.
    faults = label_value_faults(affinity_class.name)
    invalid = [f'metadata.name: Invalid value: "{affinity_class.name}": {each}' for each in faults]
    return [*invalid, *selector_errors(affinity_class.spec)]


def _changes_selectors(new: AffinityClass, old: AffinityClass | None) -> bool:
    return old is None or (new.spec.node_selector, new.spec.node_affinity) != (
        old.spec.node_selector,
        old.spec.node_affinity,
    )


def _warnings(new: AffinityClass, view: View) -> Iterator[str]:
    """Yield warnings about a valid class."""
    if keys := self_assignable(new.spec):
        yield SelfAssignableLabel(affinity_class=new.name, keys=keys).text()
    made = compiled(new)
    if not made.keys and made.everything:
        yield AllNodesMatch(affinity_class=new.name).text()
    elif not any(is_in_class(made, node.metadata) for node in view.all("Node")):
        yield NoNodeMatches().text()
