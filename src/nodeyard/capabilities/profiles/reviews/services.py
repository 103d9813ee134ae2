"""ProfileServices: a declaration that would not count, or would keep another from counting, is not stored."""

from __future__ import annotations

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.services import registry
from nodeyard.capabilities.profiles.types import ProfileService
from nodeyard.runtime.capability import View
from nodeyard.runtime.judging import decoded, judged
from nodeyard.runtime.webhooks import Review, Verdict, allowed


def review_service(review: Review, view: View) -> Verdict:
    new, old = (decoded(each, ProfileService) for each in (review.object, review.old_object))
    if new is None or new.metadata.deletion_timestamp is not None:
        return allowed()
    others = [each for each in view.all(names.SERVICE_KIND) if each.metadata.name != new.metadata.name]
    fault = registry([*others, new]).faults.get(new.metadata.name, "")
    if not fault:
        return allowed()
    before = registry([*others, old]).faults.get(old.metadata.name, "") if old is not None else ""
    return judged([], [fault]) if fault == before else judged([fault], [])
