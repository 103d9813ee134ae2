"""Writes of built-in kinds: defaults, refusals and their messages, recorded from the real server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nodeyard.testing.session import Session

from .cases.built_in_kinds import CASES, PLACE, Case, ask


@pytest.fixture(scope="module")
def session(api) -> Session:
    return Session(api.url, api.authority.pem, api.admin_token)


@pytest.fixture(scope="module")
def place(session: Session) -> Iterator[str]:
    """One namespace for all cases, which are dry runs."""
    session.post("/api/v1/namespaces", {"metadata": {"name": PLACE}})
    yield PLACE
    session.delete(f"/api/v1/namespaces/{PLACE}")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_write_is_answered_as_recorded(session: Session, place: str, case: Case):
    assert ask(session, case, place) == case.reply
