"""Answers of a server to writes of built-in kinds, good and bad: recorded from the real one.

`recorded/*.json` holds one case a line. A case is a create, or an update of an object that is `given` first; always as
a dry run, so that nothing stays. What comes back is reduced to what two servers must agree on (`Reply`): the faults in
any order, and the object without what is different each time.

To add a case, write a line without an answer and let `record.py` ask the real server.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nodeyard.testing.session import Response, Session

Object = dict[str, Any]

RECORDED = Path(__file__).with_name("recorded")
NAMESPACE = "{ns}"
NAME = "case"
PLACE = "cases"
"""The namespace in which they were recorded."""

_UID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MOMENT = re.compile(r"2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_FLEETING = ("creationTimestamp", "managedFields", "resourceVersion", "namespace", "uid")
_ADDRESSES = ("clusterIP", "clusterIPs")
# Added by admission plugins, which have tests of their own.
_ADMITTED = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


@dataclass(frozen=True)
class Reply:
    """A response without the fields that differ between runs or servers."""

    code: int
    faults: tuple[str, ...] = ()
    """`field: message` of each cause, or the whole message where there are none; sorted."""
    object: Object = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    id: str
    path: str
    """Path of the collection, with `{ns}` for the namespace."""
    body: Any
    reply: Reply
    method: str = "POST"
    given: Any = None
    subresource: str = ""
    query: str = ""

    def in_namespace(self, namespace: str) -> Case:
        text = json.dumps({"path": self.path, "body": self.body, "given": self.given}).replace(NAMESPACE, namespace)
        placed = json.loads(text)
        return Case(
            self.id,
            placed["path"],
            placed["body"],
            self.reply,
            self.method,
            placed["given"],
            self.subresource,
            self.query,
        )

    @property
    def target(self) -> str:
        """The path that the write goes to."""
        if self.given is None:
            return self.path
        return f"{self.path}/{NAME}/{self.subresource}" if self.subresource else f"{self.path}/{NAME}"

    @property
    def parameters(self) -> str:
        return f"dryRun=All&{self.query}" if self.query else "dryRun=All"

    @property
    def content_type(self) -> str:
        return "application/merge-patch+json" if self.method == "PATCH" else "application/json"


def load(*families: str) -> list[Case]:
    """The cases of these families, or all."""
    files = [RECORDED / f"{family}.json" for family in families] or sorted(RECORDED.glob("*.json"))
    return [_case(file.stem, record) for file in files for record in json.loads(file.read_text())]


def _case(family: str, record: Mapping[str, Any]) -> Case:
    fields = dict(record)
    reply = Reply(fields.pop("code", 0), tuple(fields.pop("faults", ())), fields.pop("object", {}))
    return Case(**{**fields, "id": f"{family}/{fields['id']}"}, reply=reply)


def reduce(code: int, answer: Object) -> Reply:
    if code < 400:
        return Reply(code, object=_lasting(answer))
    causes = (answer.get("details") or {}).get("causes") or ()
    texts = {f"{cause.get('field', '')}: {cause.get('message', '')}" for cause in causes}
    return Reply(code, tuple(sorted(_brief(text) for text in texts or {answer.get("message", "")})))


def _brief(text: str) -> str:
    """Return the object without identities, and without the diff in the server's own notation."""
    return _UID.sub("UID", text.partition("\n")[0])


def _lasting(obj: Object) -> Object:
    lasting: Object = json.loads(_MOMENT.sub("MOMENT", _UID.sub("UID", json.dumps(obj))))
    for name in _FLEETING:
        lasting["metadata"].pop(name, None)
    for name in ("taints", "tolerations"):
        _drop_admitted(lasting.get("spec") or {}, name)
    for name in _ADDRESSES:
        (lasting.get("spec") or {}).pop(name, None)
    return lasting


def _drop_admitted(spec: Object, name: str) -> None:
    listed: Iterable[Object] = spec.get(name) or ()
    kept = [each for each in listed if each.get("key") not in _ADMITTED]
    if kept:
        spec[name] = kept
    else:
        spec.pop(name, None)


CASES = load()


def ask(session: Session, case: Case, namespace: str) -> Reply:
    """Send a case to a server over HTTP."""
    placed = case.in_namespace(namespace)
    if placed.given is None:
        return _reduced(_send(session, placed))
    made = session.request("POST", placed.path, placed.given)
    assert made.status == 201, made.content
    try:
        return _reduced(_send(session, placed))
    finally:
        session.request("DELETE", f"{placed.path}/{NAME}?gracePeriodSeconds=0&propagationPolicy=Background")


def _send(session: Session, case: Case) -> Response:
    target = f"{case.target}?{case.parameters}"
    return session.request(case.method, target, case.body, content_type=case.content_type)


def _reduced(answer: Response) -> Reply:
    return reduce(answer.status, answer.json)
