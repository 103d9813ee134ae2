"""Puts a case to a server over HTTP."""

from __future__ import annotations

from nodeyard.testing.session import Response, Session

from .builtins import NAME, Case, Reply, reduce


def ask(session: Session, case: Case, namespace: str) -> Reply:
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
