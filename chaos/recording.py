"""An independent watcher of the API server: every state of some kinds, in the order of resourceVersions."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from nodeyard.testing.session import Session
from nodeyard.testing.wait import until


class Observed(NamedTuple):
    """One event: the object that it left, or None if it was deleted."""

    revision: int
    path: str
    name: str
    object: dict[str, Any] | None


class Recorder:
    """Watches collections, past any fault, until `close`.

    A watch resumes from the last resourceVersion that it saw. `must_resume`: a server that keeps its history must not
    answer 410; on another one the collection is listed again.
    """

    def __init__(self, api: Any, paths: Sequence[str], *, must_resume: bool) -> None:
        self._session = Session(api.url, api.authority.pem, api.admin_token)
        self._must_resume = must_resume
        self._lock = threading.Lock()
        self._observed: list[Observed] = []
        self._names: dict[str, set[str]] = {path: set() for path in paths}
        self._reached: dict[str, int] = {}
        self._is_closed = False
        self.faults: list[str] = []
        """Faults of the API server: events that break the rules of a watch."""
        self._threads = [threading.Thread(target=self._follow, args=[path], daemon=True) for path in paths]
        for thread in self._threads:
            thread.start()
        until(lambda: len(self._reached) == len(paths), "the recorder has listed everything")

    def observed(self) -> list[Observed]:
        """Return all events so far by resourceVersion."""
        with self._lock:
            return sorted(self._observed)

    def wait(self) -> None:
        """Wait until every watch has seen the last version of each object that exists now."""
        for path in self._names:
            items = self._session.get(path).json["items"]
            last = max((int(item["metadata"]["resourceVersion"]) for item in items), default=0)
            self._wait_for(path, last)

    def _wait_for(self, path: str, revision: int) -> None:
        until(lambda: self._reached[path] >= revision, f"the recorder has seen {path} at revision {revision}", 60)

    def close(self) -> None:
        self._is_closed = True

    def _follow(self, path: str) -> None:
        revision = 0
        while not self._is_closed:
            try:
                revision = revision or self._list(path)
                revision = self._watch(path, revision)
            except (OSError, http.client.HTTPException, AssertionError, ValueError):
                threading.Event().wait(0.1)

    def _list(self, path: str) -> int:
        answer = self._session.get(path)
        if answer.status != 200:
            raise OSError(f"{path}: {answer.status}")
        listed = answer.json
        found = {item["metadata"]["name"]: item for item in listed["items"]}
        revision = int(listed["metadata"]["resourceVersion"])
        for name in self._names[path] - found.keys():
            self._note(Observed(revision, path, name, None))
        for name, item in found.items():
            self._note(Observed(int(item["metadata"]["resourceVersion"]), path, name, item))
        self._advance(path, revision)
        return revision

    def _watch(self, path: str, revision: int) -> int:
        """Watch until the stream ends; return the resourceVersion to resume from, 0 to list again."""
        query = {"resourceVersion": revision, "allowWatchBookmarks": "true", "timeoutSeconds": 5}
        with self._session.watch(path, query=query, timeout=8) as events:
            for event in events:
                if event["type"] == "ERROR":
                    if event["object"].get("code") == 410 and not self._must_resume:
                        return 0
                    self.faults.append(f"the watch of {path} from {revision}: {event['object'].get('message')}")
                    return 0
                obj = event["object"]
                now = int(obj["metadata"]["resourceVersion"])
                if now < revision or (now == revision and event["type"] != "BOOKMARK"):
                    self.faults.append(f"the watch of {path} went back from {revision} to {now}")
                revision = now
                if event["type"] != "BOOKMARK":
                    gone = event["type"] == "DELETED"
                    self._note(Observed(now, path, obj["metadata"]["name"], None if gone else obj))
                self._advance(path, revision)
        return revision

    def _note(self, observed: Observed) -> None:
        with self._lock:
            self._observed.append(observed)
            names = self._names[observed.path]
            names.discard(observed.name) if observed.object is None else names.add(observed.name)

    def _advance(self, path: str, revision: int) -> None:
        with self._lock:
            self._reached[path] = max(revision, self._reached.get(path, 0))
