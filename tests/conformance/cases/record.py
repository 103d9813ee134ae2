"""Sends every case to the real server and records its responses.

.venv/bin/python -m tests.conformance.cases.record
"""

from __future__ import annotations

import json

from nodeyard.testing.controlplane import ControlPlane
from nodeyard.testing.session import Session

from .built_in_kinds import PLACE, RECORDED, ask, load

_ORDER = ("id", "path", "query", "method", "subresource", "given", "body", "code", "faults", "object")


def main() -> None:
    with ControlPlane() as plane:
        session = Session(plane.url, plane.authority.pem, plane.admin_token)
        session.post("/api/v1/namespaces", {"metadata": {"name": PLACE}})
        for file in sorted(RECORDED.glob("*.json")):
            records = json.loads(file.read_text())
            for record, case in zip(records, load(file.stem), strict=True):
                reply = ask(session, case, PLACE)
                answered = {"code": reply.code, "faults": list(reply.faults), "object": reply.object}
                record.update(answered)
            lines = [
                json.dumps({key: record[key] for key in _ORDER if record.get(key)}, ensure_ascii=False)
                for record in records
            ]
            file.write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    main()
