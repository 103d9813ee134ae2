"""Records what happens on a twin: writes of its server, and passes of its operator.

server ──store events──▶ nodes, pods, budgets ┐
operator ──pass events──▶ steps, held, refusals ┴▶ Timeline
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import msgspec

from nodeyard.apiserver.resources import GroupResource
from nodeyard.apiserver.server import Server
from nodeyard.apiserver.store import Event
from nodeyard.apply.outcome import Result
from nodeyard.client.transport import Request, Response
from nodeyard.kube.json import Object
from nodeyard.plan.layout import counted
from nodeyard.plan.model import Action
from nodeyard.process.clock import Clock
from nodeyard.rehearsal.capacity import CapacityTracker, is_ready
from nodeyard.rehearsal.timeline import Change, HeldPlan, Move, Refusal, Step
from nodeyard.runtime.reconcile.passes import PassEvent

NODES: Final = GroupResource("", "nodes")
PODS: Final = GroupResource("", "pods")
BUDGETS: Final = GroupResource("policy", "poddisruptionbudgets")
_CALM: Final = frozenset(
    {
        GroupResource("", "events"),
        GroupResource("events.k8s.io", "events"),
        GroupResource("coordination.k8s.io", "leases"),
    }
)
"""Resources whose writes say nothing about whether a change goes on."""
BUDGET: Final = "PodDisruptionBudget"
NAMED: Final = 5
_EVICTED: Final = "Evicted"
_DELETED: Final = "Deleted"
_REASONS: Final = {"EvictionByEvictionAPI": _EVICTED, "DeletionByTaintManager": "TaintManager"}

PodKey = tuple[str, str]


@dataclass(slots=True)
class _Pod:
    node: str
    owner: str
    is_leaving: bool
    is_pending: bool
    """It does not run and no node fits."""


@dataclass(slots=True)
class _Node:
    is_ready: bool
    is_cordoned: bool
    content: str
    """The node as JSON, without times, to tell a change from a heartbeat."""


class Recorder:
    def __init__(self, clock: Clock) -> None:
        self.steps: dict[tuple[str, str, str], Step] = {}
        self.changes: list[Change] = []
        self.moves: list[Move] = []
        self.held: list[HeldPlan] = []
        self.refusals: list[Refusal] = []
        self.capacity = CapacityTracker()
        self.last_change = 0.0
        self.lowest_ready = 1.0
        self._clock = clock
        self._begun: float | None = None
        self._nodes: dict[str, _Node] = {}
        self._ready = 0
        self._pods: dict[PodKey, _Pod] = {}
        self._unpaired: dict[str, list[Move]] = {}
        """Moves without a replacement, by uid of the owner."""
        self._replacements: dict[PodKey, Move] = {}
        self._open_refusals: dict[tuple[str, str], dict[tuple[str, str], Refusal]] = {}
        """By capability and key, then by object and reason."""
        self._budgets: dict[PodKey, None] = {}
        self._blocking: dict[str, Refusal] = {}
        """Budgets that refused an eviction, by what they said."""

    # what there is

    @property
    def now(self) -> float:
        """Seconds since the change; 0 before."""
        return 0.0 if self._begun is None else round(self._clock.monotonic() - self._begun, 3)

    @property
    def nodes(self) -> int:
        return len(self._nodes)

    @property
    def pending(self) -> list[str]:
        """Return the pods that no node fits."""
        return sorted("/".join(key) for key, pod in self._pods.items() if pod.is_pending)

    @property
    def open_held(self) -> list[HeldPlan]:
        return [each for each in self.held if each.until is None]

    @property
    def open_refusals(self) -> list[Refusal]:
        return [each for each in self.refusals if each.until is None and not each.is_waiting]

    def begin(self) -> None:
        """Record from now on: the change is made."""
        self._begun = self._clock.monotonic()
        self.steps.clear()
        self.changes.clear()
        self.moves.clear()
        self._unpaired.clear()
        self._replacements.clear()
        self.held = self.open_held
        self.refusals = [each for each in self.refusals if each.until is None]
        for held in self.held:
            held.since = 0.0
        for refusal in self.refusals:
            refusal.since = 0.0
        self._blocking.clear()
        self.capacity.begin()
        self.lowest_ready = self._ready / len(self._nodes) if self._nodes else 1.0
        self.last_change = self._begun

    def note(self, what: str, obj: str) -> None:
        """Record a fault or an event of a scenario."""
        self.changes.append(Change(at=self.now, what=what, object=obj))
        self.last_change = self._clock.monotonic()

    # the server

    def attach(self, server: Server) -> None:
        """Record what the server has, and its writes from now on."""
        for resource in (NODES, PODS, BUDGETS):
            for stored in server.store.list(resource):
                self._on_object(resource, stored.key, stored.object(), existed=False)
        server.store.listen(self._on_event)

    def _on_event(self, resource: GroupResource, event: Event) -> None:
        if resource in _CALM:
            return
        obj = None if event.type == "DELETED" or resource not in (NODES, PODS, BUDGETS) else event.stored.object()
        if not (resource == NODES and obj is not None and self._is_heartbeat(event.stored.key.name, obj)):
            self.last_change = self._clock.monotonic()
        if resource not in (NODES, PODS, BUDGETS):
            return
        self._on_object(resource, event.stored.key, obj, existed=event.previous is not None)

    def _is_heartbeat(self, name: str, obj: Object) -> bool:
        """Return True if only times have changed, as in the reports of mirrored nodes."""
        known = self._nodes.get(name)
        return known is not None and known.content == _content(obj)

    def _on_object(self, resource: GroupResource, key: PodKey, obj: Object | None, *, existed: bool) -> None:
        if resource == NODES:
            self._on_node(key[1], obj)
        elif resource == PODS:
            self._on_pod((key[0], key[1]), obj, existed=existed)
        elif obj is not None:
            self._budgets[key] = None
        else:
            self._budgets.pop(key, None)

    def _on_node(self, name: str, obj: Object | None) -> None:
        known = self._nodes.pop(name, None)
        self._ready -= known is not None and known.is_ready
        if obj is None:
            if known is not None:
                self._change("node deleted", name)
        else:
            spec = obj.get("spec") or {}
            new = self._nodes[name] = _Node(is_ready(obj), bool(spec.get("unschedulable")), _content(obj))
            self._ready += new.is_ready
            if known is None:
                self._change("node created", name)
            if new.is_ready != (known is not None and known.is_ready):
                self._change("node ready" if new.is_ready else "node not ready", name)
            if new.is_cordoned != (known is not None and known.is_cordoned):
                self._change("node cordoned" if new.is_cordoned else "node uncordoned", name)
        if self._nodes:
            self.lowest_ready = min(self.lowest_ready, self._ready / len(self._nodes))
        self.capacity.set_node(name, obj, self.now)

    def _change(self, what: str, obj: str) -> None:
        if self._begun is not None:
            self.changes.append(Change(at=self.now, what=what, object=obj))

    # pods

    def _on_pod(self, key: PodKey, obj: Object | None, *, existed: bool) -> None:
        known = self._pods.get(key)
        if obj is None:
            if known is not None and not known.is_leaving:
                self._leave(key, known, _DELETED)
            self._pods.pop(key, None)
            self.capacity.place(key, "", None, self.now)
            return
        metadata, status = obj["metadata"], obj.get("status") or {}
        is_over = status.get("phase") in ("Succeeded", "Failed")
        conditions = {each.get("type"): each for each in status.get("conditions") or ()}
        node = (obj.get("spec") or {}).get("nodeName") or ""
        is_pending = not node and conditions.get("PodScheduled", {}).get("status") == "False"
        new = _Pod(node, _owner(obj), "deletionTimestamp" in metadata, is_pending)
        if known is not None and known.is_leaving and not new.is_leaving:
            known = None  # a new pod of the same name
        if new.is_leaving and not (known is not None and known.is_leaving) and not is_over:
            target = conditions.get("DisruptionTarget", {})
            reason = target.get("reason", _DELETED) if target.get("status") == "True" else _DELETED
            self._leave(key, new, _REASONS.get(reason, reason))
        if not existed and not new.is_leaving:
            self._pair(key, new)
        self._pods[key] = new
        self._follow(key, new, conditions.get("Ready", {}).get("status") == "True")
        self.capacity.place(key, node, None if is_over or not node else obj, self.now)

    def _leave(self, key: PodKey, pod: _Pod, reason: str) -> None:
        if self._begun is None or not pod.node:
            return
        move = Move(pod="/".join(key), node=pod.node, reason=reason, at=self.now, has_owner=bool(pod.owner))
        self.moves.append(move)
        if pod.owner:
            self._unpaired.setdefault(pod.owner, []).append(move)

    def _pair(self, key: PodKey, pod: _Pod) -> None:
        """Take the pod for the replacement of the first pod of its owner that left and has none."""
        waiting = self._unpaired.get(pod.owner)
        if waiting:
            move = next((each for each in waiting if each.pod == "/".join(key)), waiting[0])
            waiting.remove(move)
            move.replacement = "/".join(key)
            self._replacements[key] = move

    def _follow(self, key: PodKey, pod: _Pod, ready: bool) -> None:
        move = self._replacements.get(key)
        if move is None:
            return
        if pod.node and move.placed is None:
            move.to, move.placed = pod.node, self.now
        if ready and not pod.is_leaving:
            move.ready = self.now
            del self._replacements[key]

    def on_response(self, request: Request, response: Response) -> None:
        """Record the budget that refuses an eviction; it blocks until its last refusal."""
        if response.status != 429 or not request.path.endswith("/eviction"):
            return
        causes = ((msgspec.json.decode(response.body).get("details") or {}).get("causes")) or ()
        for message in [each.get("message", "") for each in causes] or ["the eviction would violate a budget"]:
            budget = next((known for known in self._budgets if f" {known[1]} " in f" {message} "), ("", ""))
            refusal = self._blocking.get(message)
            if refusal is None:
                refusal = self._blocking[message] = Refusal(
                    source=BUDGET, object="/".join(budget), reason="DisruptionBudget", text=message, since=self.now
                )
                refusal.is_waiting = True
                self.refusals.append(refusal)
            refusal.until = self.now

    # the operator

    def observe(self, event: PassEvent) -> None:
        if event.braked is not None and event.outcome is None:
            self._on_plan(event)
        if event.outcome is not None:
            for each in event.outcome.results:
                if each.result is Result.DONE:
                    self._on_action(event, each.action)

    def _on_action(self, event: PassEvent, action: Action) -> None:
        key = (event.capability, event.key, action.reason)
        step = self.steps.get(key)
        if step is None:
            step = self.steps[key] = Step(
                capability=event.capability,
                key=event.key,
                reason=action.reason,
                text=action.facts.past_text(),
                begin=self.now,
                end=self.now,
            )
        step.end, step.count = self.now, step.count + 1
        if len(step.objects) < NAMED and (name := str(action.object)) not in step.objects:
            step.objects.append(name)

    def _on_plan(self, event: PassEvent) -> None:
        assert event.braked is not None
        held, place = event.braked.held, (event.capability, event.key)
        for each in self.open_held:
            if (each.capability, each.key) == place and (held is None or held.id != each.id):
                each.until = self.now
        if held is not None and not any(each.id == held.id and each.key == event.key for each in self.open_held):
            text = _describe(held.actions[0].facts.text(), len(held.actions))
            self.held.append(HeldPlan(capability=place[0], key=place[1], id=held.id, text=text, since=self.now))
        self._on_blocked(place, event)

    def _on_blocked(self, place: tuple[str, str], event: PassEvent) -> None:
        assert event.braked is not None
        known = self._open_refusals.get(place, {})
        current: dict[tuple[str, str], Refusal] = {}
        for blocked in event.braked.now.blocked:
            if blocked.reason == "NeedsApproval":
                continue
            identity = (str(blocked.object), blocked.reason)
            refusal = known.get(identity)
            if refusal is None:
                refusal = Refusal(
                    source=place[0],
                    object=identity[0],
                    reason=identity[1],
                    text="",
                    since=self.now,
                    is_waiting=blocked.is_waiting,
                )
                self.refusals.append(refusal)
            refusal.text, refusal.is_waiting = blocked.facts.text(), blocked.is_waiting
            current[identity] = refusal
        for identity, refusal in known.items():
            if identity not in current:
                refusal.until = self.now
        self._open_refusals[place] = current


def _content(node: Object) -> str:
    status = node.get("status") or {}
    conditions = [(each.get("type"), each.get("status")) for each in status.get("conditions") or ()]
    return repr((node["metadata"].get("labels"), node.get("spec"), status.get("allocatable"), conditions))


def _owner(pod: Object) -> str:
    owners: Iterable[Object] = pod["metadata"].get("ownerReferences") or ()
    return next((each["uid"] for each in owners if each.get("controller")), "")


def _describe(first: str, count: int) -> str:
    return first if count == 1 else f"{first} and {counted(count - 1, 'more action')}"
