"""Our managedFields equal those of the real API server in recorded transcripts."""

from __future__ import annotations

from typing import Any

import pytest

from nodeyard.apiserver.managed_fields import ApplyConflict, ApplyError, apply, update
from nodeyard.apiserver.strategic_merge import strategic_merge_patch
from nodeyard.kube.patch import json_patch, merge_patch

from ...builders.managed_fields_stories import MOMENT, Move, Story, stories, stripped


def predicted(story: Story, move: Move, live: dict[str, Any] | None, answer: dict[str, Any]) -> dict[str, Any]:
    """The outcome in the form of a recorded answer; the content of an update is taken from the record."""
    kind, sent = story.kind, move.sent(story.kind, live)
    circumstances: dict[str, Any] = {
        "manager": move.manager,
        "api_version": kind.api_version,
        "subresource": move.subresource,
        "now": MOMENT,
        "reset": kind.reset[move.subresource],
    }
    try:
        if move.verb == "apply":
            return {"object": apply(kind.schema, live, sent, force=move.force, **circumstances)}
        recorded = answer["object"]
        entries = patched(story, move, live)["metadata"].get("managedFields")
        new = {**recorded, "metadata": {**recorded["metadata"], "managedFields": entries}}
        return {"object": update(kind.schema, live, before_admission(story, live, new), **circumstances)}
    except ApplyConflict as conflict:
        return {
            "status": 409,
            "reason": "Conflict",
            "message": str(conflict),
            "causes": sorted(conflict.causes(), key=str),
        }
    except ApplyError as error:
        return {"status": error.code, "reason": error.reason, "message": str(error), "causes": []}


def patched(story: Story, move: Move, live: dict[str, Any] | None) -> dict[str, Any]:
    sent = move.sent(story.kind, live)
    if move.verb in ("create", "update"):
        return sent
    assert live is not None
    if move.verb == "merge":
        return merge_patch(live, sent)
    return json_patch(live, sent) if move.verb == "json" else strategic_merge_patch(story.kind.schema, live, sent)


def before_admission(story: Story, live: dict[str, Any] | None, new: dict[str, Any]) -> dict[str, Any]:
    """Admission taints a new node after its owner was recorded."""
    if live is not None or story.kind.kind != "Node":
        return new
    taints = [taint for taint in new["spec"]["taints"] if taint["key"] != "node.kubernetes.io/not-ready"]
    return {**new, "spec": {**new["spec"], "taints": taints}}


def holds(stored: Any, value: Any) -> bool:
    """Return whether the stored object has all fields of the value; defaults may be added and empty ones dropped."""
    if value is None or value == {} or value == []:
        return True
    if isinstance(value, dict):
        return isinstance(stored, dict) and all(holds(stored.get(name), part) for name, part in value.items())
    if isinstance(value, list):
        return isinstance(stored, list) and len(stored) == len(value) and all(map(holds, stored, value))
    return type(stored) is type(value) and stored == value


@pytest.mark.parametrize("story", stories(), ids=lambda story: story.name)
def test_a_story_ends_as_it_did_on_the_real_server(story: Story) -> None:
    live = None
    for number, (move, answer) in enumerate(story):
        outcome = predicted(story, move, live, answer)
        if "object" not in answer:
            assert outcome == answer, (number, move)
            continue
        entries = (stripped(obj)["metadata"].get("managedFields") for obj in (outcome["object"], answer["object"]))
        ours, theirs = entries
        assert ours == theirs, (number, move)
        live = {**answer["object"], "metadata": {**answer["object"]["metadata"], "uid": "1"}}


def written(obj: dict[str, Any], reset: tuple[tuple[str, ...], ...]) -> dict[str, Any]:
    """Return the fields of an object that this endpoint writes."""
    ignored = {path[0] for path in reset if len(path) == 1}
    metadata = {
        name: value for name, value in obj["metadata"].items() if name not in ("uid", "managedFields", "labels")
    }
    return {**{name: part for name, part in obj.items() if name not in ignored}, "metadata": metadata}


@pytest.mark.parametrize("story", stories(), ids=lambda story: story.name)
def test_a_write_gives_the_managed_fields_of_the_real_server(story: Story) -> None:
    live = None
    for number, (move, answer) in enumerate(story):
        if "object" not in answer:
            continue
        outcome = predicted(story, move, live, answer)["object"] if move.verb == "apply" else patched(story, move, live)
        stored, reset = before_admission(story, live, answer["object"]), story.kind.reset[move.subresource]
        assert holds(written(stored, reset), written(outcome, reset)), (number, move)
        live = {**answer["object"], "metadata": {**answer["object"]["metadata"], "uid": "1"}}
