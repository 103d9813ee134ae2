"""Field ownership against the oracle: random writes to a real API server, each predicted first.

A walk starts from nothing and takes one random step after the other: create, update, all four patches, on the object
and on its status, by three managers. What each step makes of the live object is computed with the functions under test
and compared with what the server answers: managedFields and refusals to the letter, and the content after the server
itself, in a dry run, has defaulted ours.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from nodeyard.apiserver.managed_fields import ApplyConflict, ApplyError, apply, update
from nodeyard.apiserver.strategic_merge import strategic_merge_patch
from nodeyard.kube.patch import PatchError, json_patch, merge_patch
from nodeyard.kube.timestamps import parse_rfc3339
from nodeyard.testing import ControlPlane, wait
from nodeyard.testing.session import APPLY, JSON_PATCH, MERGE, STRATEGIC, Response, Session

from ..builders.managed_fields import CRD, ConfigMaps, Deployments, Nodes, Samples, Widgets
from ..builders.managed_fields_stories import CONTENT_TYPES, NAME, Move, Story, stories, stripped

pytestmark = pytest.mark.real

IS_RECORDING = bool(os.environ.get("NODEYARD_RECORD"))
STEPS = 15
MANAGERS = ("ada", "bob", "cyd")
SOME_DAY = datetime(2030, 1, 1, tzinfo=UTC)
SERVER_SET = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "namespace")
NOT_READY = "node.kubernetes.io/not-ready"


@dataclass
class Step:
    """One write: manager, endpoint and body."""

    manager: str
    subresource: str
    sent: Any


class Walk:
    def __init__(self, http: Session, samples: Samples, name: str) -> None:
        self.http, self.samples, self.chance, self.name = http, samples, samples.chance, name
        self.collection = samples.path.format("default")
        self.live: dict[str, Any] | None = None
        self.applied: list[Step] = []
        self.seen: Counter[str] = Counter()

    def step(self) -> None:
        has_status = "status" in self.samples.reset
        subresource = "status" if has_status and self.live is not None and self.chance.random() < 0.25 else ""
        manager = self.chance.choice(MANAGERS)
        if self.live is None:
            self.chance.choice((self.create, self.apply))(manager, "")
            return
        verbs = [self.apply] * 5 + [self.merge] * 2 + [self.operate] + [self.replace] * 2
        verbs += [] if self.samples.is_custom else [self.strategic] * 2
        if not subresource and self.chance.random() < 0.1:
            verbs = [self.forget, self.disown]
        self.chance.choice(verbs)(manager, subresource)

    # writes

    def create(self, manager: str, subresource: str) -> None:
        sent = self.sample(is_partial=False)
        answer = self.http.post(self.collection, sent, query={"fieldManager": manager})
        self.expect_update(Step(manager, subresource, sent), answer, given=None)

    def replace(self, manager: str, subresource: str) -> None:
        assert self.live is not None
        fresh = self.sample(subresource, is_partial=False)
        sent = fresh if self.chance.random() < 0.5 else merge_patch(self.live, self.patch(subresource))
        self.put(Step(manager, subresource, sent))

    def forget(self, manager: str, subresource: str) -> None:
        self.put(Step(manager, subresource, self.with_entries(self.chance.choice(([], [{}])))))

    def disown(self, manager: str, subresource: str) -> None:
        assert self.live is not None
        entries = [dict(entry) for entry in self.live["metadata"].get("managedFields", [])]
        if entries:
            changed = entries.pop(self.chance.randrange(len(entries)))
            entries += self.chance.choice(([], [{**changed, "manager": "dan"}]))
        self.put(Step(manager, subresource, self.with_entries(entries or [{}])))

    def put(self, step: Step) -> None:
        assert self.live is not None
        revision = {"resourceVersion": self.live["metadata"]["resourceVersion"]}
        sent = {**step.sent, "metadata": {**step.sent["metadata"], **revision}}
        answer = self.http.put(self.url(step.subresource), sent, query={"fieldManager": step.manager})
        self.expect_update(step, answer, given=sent)

    def merge(self, manager: str, subresource: str) -> None:
        step = Step(manager, subresource, self.patch(subresource))
        self.send_patch(step, MERGE, lambda live: merge_patch(live, step.sent))

    def strategic(self, manager: str, subresource: str) -> None:
        step = Step(manager, subresource, self.patch(subresource))
        self.send_patch(step, STRATEGIC, lambda live: strategic_merge_patch(self.samples.schema, live, step.sent))

    def operate(self, manager: str, subresource: str) -> None:
        content = {name: value for name, value in (self.live or {}).items() if name in ("spec", "data")}
        known = [(pointer, value) for pointer, value in pointers(content) if pointer]
        operations = [self.operation(*self.chance.choice(known)) for _ in range(2 if known else 0)]
        operations.append({"op": "add", "path": "/metadata/labels", "value": self.samples.texts()})
        step = Step(manager, subresource, operations)
        self.send_patch(step, JSON_PATCH, lambda live: json_patch(live, operations))

    def operation(self, pointer: str, value: Any) -> dict[str, Any]:
        other = value if isinstance(value, dict | list) else self.samples.word()
        return self.chance.choice(
            (
                {"op": "remove", "path": pointer},
                {"op": "replace", "path": pointer, "value": other},
                {"op": "test", "path": pointer, "value": value},
                {"op": "copy", "path": pointer, "from": pointer},
                {"op": "move", "path": pointer, "from": pointer},
            )
        )

    def apply(self, manager: str, subresource: str) -> None:
        earlier = [step for step in self.applied if (step.manager, step.subresource) == (manager, subresource)]
        config = self.sample(subresource, is_partial=self.live is not None)
        if earlier and self.chance.random() < 0.3:
            config = self.chance.choice(earlier).sent
        step = Step(manager, subresource, config)
        self.applied.append(step)
        self.send_apply(step, force=self.chance.random() < 0.5)

    # sending and comparing

    def send_patch(self, step: Step, kind: str, patch: Callable[[dict[str, Any]], Any]) -> None:
        predicted, refusal = attempt(lambda: patch(self.live or {}))
        settled = self.settled(predicted, step.subresource) if refusal is None else None
        query = {"fieldManager": step.manager}
        answer = self.http.patch(self.url(step.subresource), step.sent, kind, query=query)
        if settled is None:
            self.expect_refusal(step, answer, refusal)
        elif self.agree(settled, answer, step):
            self.expect_update(step, answer, given=predicted)

    def send_apply(self, step: Step, *, force: bool) -> None:
        def predict(now: datetime) -> dict[str, Any]:
            return apply(
                self.samples.schema,
                self.live,
                step.sent,
                manager=step.manager,
                force=force,
                api_version=self.samples.api_version,
                subresource=step.subresource,
                now=now,
                reset=self.samples.reset[step.subresource],
            )

        predicted, refusal = attempt(lambda: predict(SOME_DAY))
        settled = self.settled(predicted, step.subresource) if refusal is None else None
        query = {"fieldManager": step.manager, "force": "true" if force else "false"}
        answer = self.http.patch(self.url(step.subresource), step.sent, APPLY, query=query)
        if settled is None:
            self.expect_refusal(step, answer, refusal)
        elif self.agree(settled, answer, step):
            self.expect_entries(step, answer, predict(self.moment(answer.json, "Apply", step)))
            self.seen["applied"] += 1

    def expect_refusal(self, step: Step, answer: Response, refusal: Any) -> None:
        self.seen["refused"] += 1
        assert (answer.status, answer.reason, answer.message) == (refusal.code, refusal.reason, str(refusal)), step
        if isinstance(refusal, ApplyConflict):
            assert sorted(map(str, answer.causes)) == sorted(map(str, refusal.causes())), step

    def agree(self, settled: Response, answer: Response, step: Step) -> bool:
        """Return whether the server accepted it; it must accept ours if and only if it accepted what was sent."""
        if answer.status == 422 and '"null"' in answer.message:
            # An apply can leave a null where an update would drop it, and the server then refuses its own result.
            return False
        assert (settled.status < 300) == (answer.status < 300), (step, settled.content, answer.content)
        if answer.status >= 300:
            self.seen["refused"] += 1
            return False
        assert content(settled.json) == content(answer.json), step
        return True

    def expect_update(self, step: Step, answer: Response, *, given: dict[str, Any] | None) -> None:
        if answer.status >= 300:
            self.seen["refused"] += 1
            return
        stored = answer.json
        metadata = {name: value for name, value in stored["metadata"].items() if name != "managedFields"}
        entries = (given or {}).get("metadata", {}).get("managedFields")
        new = self.before_admission(
            {**stored, "metadata": {**metadata, **({} if entries is None else {"managedFields": entries})}}
        )
        predicted = update(
            self.samples.schema,
            self.live,
            new,
            manager=step.manager,
            api_version=self.samples.api_version,
            subresource=step.subresource,
            now=self.moment(stored, "Update", step),
            reset=self.samples.reset[step.subresource],
        )
        self.expect_entries(step, answer, predicted)
        self.seen["updated"] += 1

    def before_admission(self, new: dict[str, Any]) -> dict[str, Any]:
        """A new node gets a taint by admission, which is after its owner was recorded."""
        if self.live is not None or self.samples.kind != "Node":
            return new
        taints = [taint for taint in new["spec"].get("taints", []) if taint["key"] != NOT_READY]
        rest = {name: value for name, value in new["spec"].items() if name != "taints"}
        return {**new, "spec": {**rest, "taints": taints} if taints else rest}

    def expect_entries(self, step: Step, answer: Response, predicted: dict[str, Any]) -> None:
        stored = answer.json
        expected, actual = (obj["metadata"].get("managedFields", []) for obj in (predicted, stored))
        if self.live is not None and self.live["metadata"]["resourceVersion"] == stored["metadata"]["resourceVersion"]:
            # Nothing changed, so the server restored the times.
            expected, actual = timeless(expected), timeless(actual)
        assert expected == actual, step
        self.live = stored

    # bodies

    def url(self, subresource: str) -> str:
        return "/".join(part for part in (self.collection, self.name, subresource) if part)

    def sample(self, subresource: str = "", *, is_partial: bool) -> dict[str, Any]:
        body = self.samples.body(is_partial=is_partial)
        if subresource:
            rest = {name: value for name, value in body.items() if name != "status"}
            body = {"status": self.samples.status(), **(rest if self.chance.random() < 0.2 else {})}
        metadata = {"name": self.name, **self.samples.metadata()}
        return {"apiVersion": self.samples.api_version, "kind": self.samples.kind, "metadata": metadata, **body}

    def patch(self, subresource: str) -> dict[str, Any]:
        body = self.sample(subresource, is_partial=True)
        metadata = {name: value for name, value in body["metadata"].items() if name != "name"}
        rest = {name: value for name, value in body.items() if name not in ("apiVersion", "kind", "metadata")}
        return {"metadata": self.with_nulls(metadata), **self.with_nulls(rest)}

    def with_nulls(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {key: None if self.chance.random() < 0.12 else self.with_nulls(each) for key, each in value.items()}

    def with_entries(self, entries: list[Any]) -> dict[str, Any]:
        assert self.live is not None
        return {**self.live, "metadata": {**self.live["metadata"], "managedFields": entries}}

    def settled(self, predicted: dict[str, Any], subresource: str) -> Response:
        """Return the server's result for our prediction."""
        metadata = {name: value for name, value in predicted["metadata"].items() if name not in SERVER_SET}
        body = {**predicted, "metadata": metadata}
        if self.live is None:
            return self.http.post(self.collection, body, query={"dryRun": "All"})
        revision = self.live["metadata"]["resourceVersion"]
        return self.http.put(
            self.url(subresource),
            {**body, "metadata": {**metadata, "resourceVersion": revision}},
            query={"dryRun": "All"},
        )

    def moment(self, stored: dict[str, Any], operation: str, step: Step) -> datetime:
        """Return the time that the server recorded."""
        entries = [
            entry
            for entry in stored["metadata"].get("managedFields", ())
            if entry.get("subresource", "") == step.subresource and "time" in entry
        ]
        times = {(entry["operation"], entry["manager"]): entry["time"] for entry in entries}
        ours = times.get((operation, step.manager))
        if ours is None and operation == "Apply":
            ours = times.get(("Update", "before-first-apply"))
        return parse_rfc3339(ours) if ours else SOME_DAY


def attempt(make: Callable[[], Any]) -> tuple[Any, PatchError | ApplyError | None]:
    """Return the created object, or the error."""
    try:
        return make(), None
    except (PatchError, ApplyError) as refusal:
        return None, refusal


def timeless(entries: list[dict[str, Any]]) -> list[str]:
    return sorted(str(sorted({**entry, "time": ""}.items())) for entry in entries)


def content(obj: dict[str, Any]) -> dict[str, Any]:
    """Return the object without fields that differ between writes."""
    metadata = {name: value for name, value in obj["metadata"].items() if name not in SERVER_SET}
    return {**obj, "metadata": metadata}


def pointers(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    yield path, value
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in parts:
        yield from pointers(part, f"{path}/{str(name).replace('~', '~0').replace('/', '~1')}")


@pytest.fixture(scope="module")
def http() -> Iterator[Session]:
    """A server without controllers, so that only the walk writes."""
    with ControlPlane() as plane:
        session = Session(plane.url, plane.authority.pem, plane.admin_token)
        session.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
        wait.until(lambda: session.get(Widgets.path.format("default")).status == 200, "widgets to be served")
        yield session


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", [Widgets, ConfigMaps, Nodes, Deployments], ids=lambda kind: kind.kind)
def test_managed_fields_after_any_write_equal_those_of_the_real_server(
    http: Session, kind: type[Samples], seed: int
) -> None:
    walk = Walk(http, kind(random.Random(f"{kind.kind} {seed}")), f"walk-{seed}")
    for _ in range(STEPS):
        walk.step()
    assert walk.seen["applied"] + walk.seen["updated"] > STEPS // 4, walk.seen


def perform(http: Session, story: Story, move: Move, live: dict[str, Any] | None) -> Response:
    collection = story.kind.path.format("default")
    query = {"fieldManager": move.manager, **({"force": "true"} if move.force else {})}
    sent, content_type = move.sent(story.kind, live), CONTENT_TYPES[move.verb]
    if move.verb == "create":
        return http.post(collection, sent, query=query)
    path = "/".join(part for part in (collection, NAME, move.subresource) if part)
    return http.request("PUT" if move.verb == "update" else "PATCH", path, sent, content_type=content_type, query=query)


def recorded(answer: Response) -> dict[str, Any]:
    """Return an answer in the form of the record."""
    if answer.status < 300:
        return {"object": stripped(answer.json)}
    return {
        "status": answer.status,
        "reason": answer.reason,
        "message": answer.message,
        "causes": sorted(answer.causes, key=str),  # the server lists managers in any order
    }


@pytest.mark.parametrize("story", stories(), ids=lambda story: story.name)
def test_the_recorded_stories_equal_the_real_server_today(http: Session, story: Story) -> None:
    """With NODEYARD_RECORD=1 the answers are recorded anew; review and commit them."""
    live, answers = None, []
    for move in story.moves:
        answer = perform(http, story, move, live)
        answers.append(recorded(answer))
        live = answer.json if answer.status < 300 else live
    http.delete(f"{story.kind.path.format('default')}/{NAME}")
    if IS_RECORDING:
        story.record(answers)
        return
    for move, answer, known in zip(story.moves, answers, story.answers, strict=True):
        assert answer == known, move
