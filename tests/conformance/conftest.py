"""Conformance: each case is written once and runs against both servers; a case that the real one fails is wrong."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from nodeyard.testing.session import Session

_numbers = itertools.count(1)


@pytest.fixture
def http(api) -> Session:
    """Plain HTTP as administrator."""
    return Session(api.url, api.authority.pem, api.admin_token)


@pytest.fixture
def fresh() -> Callable[[str], str]:
    """Names nobody else uses: `fresh("node")` is `node-17`."""
    return lambda word: f"{word}-{next(_numbers)}"


@pytest.fixture
def namespace(http: Session, fresh) -> Iterator[str]:
    name = fresh("ns")
    answer = http.post("/api/v1/namespaces", {"metadata": {"name": name}})
    assert answer.status == 201, answer.content
    yield name
    http.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def configmaps(namespace: str) -> str:
    """The path of a collection to play with."""
    return f"/api/v1/namespaces/{namespace}/configmaps"
