"""The capability of docs/write-a-capability.md, run from the page."""

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "write-a-capability.md"
NAME = "page_write_a_capability"
NOTES = "/apis/notes.example.dev/v1/nodenotes"


@pytest.fixture(scope="module")
def page():
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    module = ModuleType(NAME)
    sys.modules[NAME] = module  # dataclasses and msgspec resolve annotations there
    exec(compile(code, str(PAGE), "exec"), module.__dict__)
    yield module
    del sys.modules[NAME]


def test_a_note_is_written_and_reported(api, operator, eventually, page):
    operator(page.NOTES_CAPABILITY).wait_until_leading()
    rest = api.rest
    note = {"apiVersion": "notes.example.dev/v1", "kind": "NodeNote", "metadata": {"name": "disk"}}
    rest.create({**note, "spec": {"node": "noted", "text": "replace the disk"}})

    def ready():
        conditions = rest.call("GET", f"{NOTES}/disk").get("status", {}).get("conditions", [])
        return next(((each["status"], each["reason"], each["message"]) for each in conditions), None)

    eventually(lambda: ready() and ready()[1] == "NodeMissing", "the missing node is told of")
    assert ready() == (
        "False",
        "NodeMissing",
        "Node noted does not exist; create it or correct spec.node of note disk",
    )

    rest.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "noted"}})
    eventually(lambda: ready()[1] == "UpToDate", "the note is up to date")
    annotations = rest.call("GET", "/api/v1/nodes/noted")["metadata"]["annotations"]
    assert annotations["notes.example.dev/text"] == "replace the disk"
    rest.call("DELETE", f"{NOTES}/disk")
    rest.call("DELETE", "/api/v1/nodes/noted")


def test_its_planner_is_pure_and_explains_itself(page):
    from nodeyard.process.clock import EPOCH

    note = page.NodeNote(
        metadata=page.ObjectMeta(name="disk", uid="u", generation=1), spec=page.NoteSpec(node="n1", text="t")
    )
    node = page.Node(metadata=page.ObjectMeta(name="n1", uid="n"))
    snapshot = page.Snapshot(note, node)

    planned = page.plan(snapshot, EPOCH, [page.ref(note)])

    assert planned == page.plan(snapshot, EPOCH, [page.ref(note)])
    (action,), (decision,) = planned.plan.actions, planned.plan.decisions
    assert (action.object.name, action.reason, decision.rule) == ("n1", "NoteWritten", "NoteWritten")
    assert decision.facts.text() == "Sets note disk on node n1"
