"""An outage is logged once with its remedy, then once a minute."""

import json

import pytest

from nodeyard.client.errors import ServerError, Status, TransportError, Unauthorized
from nodeyard.client.outages import Outages
from nodeyard.process.logs import get_logger


def unreachable(path="/api/v1/nodes", server="10.0.0.1:6443", error="refused"):
    return TransportError(f"GET {path}: cannot connect to {server}: {error}", may_have_run=False)


def refused():
    return Unauthorized(Status(code=401, reason="Unauthorized", message="Unauthorized"))


class Said:
    def __init__(self, capsys):
        self.now = 0.0
        self.outages = Outages(lambda: self.now)
        self._capsys = capsys
        self._log = get_logger("test")

    def tell(self, error, subject="nodes"):
        self.outages.log(self._log, "watch restarted", subject, error, resource=subject)

    def log_missing(self, *kinds):
        self.outages.log_missing(self._log, kinds)

    @property
    def lines(self):
        return [json.loads(line) for line in self._capsys.readouterr().out.splitlines()]


@pytest.fixture
def said(capsys):
    return Said(capsys)


@pytest.mark.parametrize(
    ("error", "message", "remedy"),
    [(unreachable(), "server unreachable", "kubeconfig"), (refused(), "credentials rejected", "renew the token")],
)
def test_what_all_watches_have_in_common_is_one_line_a_minute(said, error, message, remedy):
    for second in range(130):
        said.now = float(second)
        said.tell(error, "nodes")
        said.tell(error, "pods")
    lines = said.lines
    assert [line["message"] for line in lines] == [message] * 3
    assert remedy in lines[0]["remedy"]


def test_each_server_has_a_line_of_its_own(said):
    said.tell(unreachable("/api/v1/nodes"))
    said.tell(unreachable("/api/v1/pods", error="Connect call failed"))
    said.tell(unreachable(server="10.0.0.2:6443"))
    assert ["10.0.0.1" in line["reason"] for line in said.lines] == [True, False]


def test_after_a_recovery_the_next_outage_is_logged_at_once(said):
    said.tell(refused())
    said.outages.reset()
    said.tell(refused())
    assert len(said.lines) == 2


def test_an_error_of_one_watch_is_logged_for_it_alone_and_again_when_it_changes(said):
    trouble = ServerError(Status(code=500, message="etcd is away"))
    for subject in ("nodes", "pods", "nodes"):
        said.tell(trouble, subject)
    said.tell(ServerError(Status(code=500, message="etcd is back")), "nodes")
    lines = said.lines
    assert [(line["message"], line["resource"]) for line in lines] == [
        ("watch restarted", "nodes"), ("watch restarted", "pods"), ("watch restarted", "nodes")
    ]  # fmt: skip
    assert lines[-1]["reason"] == "etcd is back"


def test_missing_kinds_are_one_line_that_says_how_to_install_them(said):
    said.log_missing("a.test", "b.test")
    said.log_missing("a.test", "b.test")
    said.log_missing()
    (line,) = said.lines
    assert (line["message"], line["kinds"]) == ("kinds not served", ["a.test", "b.test"])
    assert "--install-crds" in line["remedy"]
