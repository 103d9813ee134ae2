"""Columns of pods. The Status column condenses the state of all containers into one reason."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from nodeyard.apiserver import ages
from nodeyard.apiserver.kinds.columns import AGE, NAME, NONE, age_of, name_of, spec_of, status_of, text_column
from nodeyard.kube.json import Json, Object


class _Progress:
    """State collected from the containers of a pod."""

    def __init__(self, obj: Object) -> None:
        self.status = status_of(obj)
        self.reason = str(self.status.get("reason") or self.status.get("phase") or "")
        self.ready = 0
        self.restarts = 0
        self.last_restart = ""

    def count(self, container: Object) -> None:
        self.restarts += container.get("restartCount") or 0
        finished = ((container.get("lastState") or {}).get("terminated") or {}).get("finishedAt") or ""
        self.last_restart = max(self.last_restart, finished)


def pod_cells(obj: Object, now: datetime) -> list[Json]:
    progress = _Progress(obj)
    if _is_gated(progress.status):
        progress.reason = "SchedulingGated"
    sidecars = {
        container["name"]
        for container in spec_of(obj).get("initContainers") or ()
        if container.get("restartPolicy") == "Always"
    }
    is_initializing = _initialize(progress, obj, sidecars)
    if not is_initializing or _has_condition(progress.status, "Initialized"):
        _run(progress, sidecars)
    total = len(spec_of(obj).get("containers") or ()) + len(sidecars)
    return [
        name_of(obj),
        f"{progress.ready}/{total}",
        _word(obj, progress),
        _restarts(progress, now),
        age_of(obj, now),
        *_wide(obj),
    ]


def _initialize(progress: _Progress, obj: Object, sidecars: set[str]) -> bool:
    """Read init containers up to the first that has not completed; return whether there is one."""
    total = len(spec_of(obj).get("initContainers") or ())
    for place, container in enumerate(progress.status.get("initContainerStatuses") or ()):
        progress.count(container)
        state = container.get("state") or {}
        ended = state.get("terminated")
        if ended is not None and not ended.get("exitCode"):
            continue
        if container.get("name") in sidecars and container.get("started"):
            progress.ready += bool(container.get("ready"))
            continue
        waiting = (state.get("waiting") or {}).get("reason")
        if ended is not None:
            progress.reason = f"Init:{_end(ended)}"
        elif waiting and waiting != "PodInitializing":
            progress.reason = f"Init:{waiting}"
        else:
            progress.reason = f"Init:{place}/{total}"
        return True
    return False


def _run(progress: _Progress, sidecars: set[str]) -> None:
    """Read containers from the last to the first, so that the reason of the first one wins."""
    progress.restarts, progress.last_restart = 0, ""
    for container in progress.status.get("initContainerStatuses") or ():
        if container.get("name") in sidecars:
            progress.count(container)
    is_running, failure = False, ""
    for container in reversed(progress.status.get("containerStatuses") or ()):
        progress.count(container)
        state = container.get("state") or {}
        ended = state.get("terminated")
        if (state.get("waiting") or {}).get("reason"):
            progress.reason = state["waiting"]["reason"]
        elif ended is not None:
            progress.reason = _end(ended)
            failure = progress.reason if ended.get("exitCode") else failure
        elif container.get("ready") and state.get("running") is not None:
            is_running = True
            progress.ready += 1
    if progress.reason == "Completed":
        progress.reason = _completed(progress, is_running, failure)


def _completed(progress: _Progress, is_running: bool, failure: str) -> str:
    if is_running and _has_condition(progress.status, "Ready"):
        return "Running"
    return failure or ("NotReady" if is_running else progress.reason)


def _end(ended: Object) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _word(obj: Object, progress: _Progress) -> str:
    if not obj["metadata"].get("deletionTimestamp"):
        return progress.reason
    if progress.status.get("reason") == "NodeLost":
        return "Unknown"
    return progress.reason if progress.status.get("phase") in ("Failed", "Succeeded") else "Terminating"


def _restarts(progress: _Progress, now: datetime) -> str:
    if progress.restarts and progress.last_restart:
        return f"{progress.restarts} ({ages.age(progress.last_restart, now)} ago)"
    return str(progress.restarts)


def _wide(obj: Object) -> list[Json]:
    addresses = status_of(obj).get("podIPs") or [{}]
    return [
        addresses[0].get("ip") or NONE,
        spec_of(obj).get("nodeName") or NONE,
        status_of(obj).get("nominatedNodeName") or NONE,
        _gates(obj),
    ]


def _gates(obj: Object) -> str:
    gates = spec_of(obj).get("readinessGates") or ()
    passed = sum(_has_condition(status_of(obj), gate.get("conditionType", "")) for gate in gates)
    return f"{passed}/{len(gates)}" if gates else NONE


def _is_gated(given: Mapping[str, Any]) -> bool:
    return any(
        condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated"
        for condition in given.get("conditions") or ()
    )


def _has_condition(given: Mapping[str, Any], kind: str) -> bool:
    for condition in given.get("conditions") or ():
        if condition.get("type") == kind:
            return bool(condition.get("status") == "True")
    return False


COLUMNS = (
    NAME,
    text_column("Ready", "Containers that are ready, of all."),
    text_column("Status", "What the pod is doing, or what keeps it."),
    text_column("Restarts", "How often containers were restarted, and when last."),
    AGE,
    text_column("IP", "Address of the pod.", wide=True),
    text_column("Node", "The node it runs on.", wide=True),
    text_column("Nominated Node", "The node that is being cleared for it.", wide=True),
    text_column("Readiness Gates", "Gates passed, of all.", wide=True),
)
