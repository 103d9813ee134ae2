"""Attacks on the webhook endpoint, while the API server asks it about pods of a tenant; on both servers.

The operator runs as a process, with its real limits; only the time for a request head is shorter. The attacker is on
the address of the API server, the worst place for limits per peer, and stops after a number of requests. Webhooks for
pods of tenants have the failure policy Fail: an answer that is late or missing refuses the pod with other words.
"""

import itertools
import json
import re
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.builders.affinity_env import WEBHOOKS, AffinityEnv, owner_of, pod_body, unique
from tests.builders.reviews import question
from tests.builders.rule_webhooks import SECRET, VALIDATING, ask, discard

from nodeyard.admission.server import LIMITS, STRANGE_AT_ONCE
from nodeyard.testing.ports import LOOPBACK, free_port
from nodeyard.testing.wait import until

HEAD_SECONDS = 3.0
PROGRAM = f"""
from nodeyard.process import http_server
http_server.HEAD_SECONDS = {HEAD_SECONDS}
from nodeyard.cli import main
main()
"""
ZONE = "topology.kubernetes.io/zone"
PATH = "/validate/affinity/placement-tenants"
GUESSED = f"{PATH}/{'0' * 26}"
IN_TIME = 3.0
"""The timeout of the webhooks."""
MOST_SECONDS = 20.0
"""Upper bound of an attack."""
MIB = 1 << 20
EVENTS = "/apis/events.k8s.io/v1/events"


class Attacked:
    """An operator process, and a tenant whose pods need a class."""

    def __init__(self, api, affinity):
        self.api = api
        self.affinity = affinity
        self.ports = {name: free_port() for name in ("health", "metrics", "webhook")}
        self._process = None

    @contextmanager
    def running(self):
        binds = [word for name, port in self.ports.items() for word in (f"--{name}-bind", f"{LOOPBACK}:{port}")]
        options = ["--kubeconfig", str(self.api.kubeconfig), "--capabilities", "affinity", *binds]
        self._process = subprocess.Popen([sys.executable, "-c", PROGRAM, "run", *options], stderr=subprocess.DEVNULL)
        try:
            yield
        finally:
            self._process.terminate()
            self._process.wait(20)

    def prepare(self):
        """Wait until the API server calls the webhook for pods of the tenant."""
        zone = self.affinity.affinity_class(unique("class"), nodeSelector={ZONE: "here"})
        allowed = {"defaultAffinityClass": zone, "allowedAffinityClasses": [zone], "unownedPods": "RequireAllowed"}
        self.namespace = self.affinity.tenant(unique("attacked"), **allowed)
        until(lambda: self.post(is_fitting=False).status == 403, "a pod outside the class is refused")
        until(lambda: self.page("/readyz")[0] == 200, "the operator is ready")
        entries = self.api.rest.get(f"{VALIDATING}/{WEBHOOKS}")["webhooks"]
        paths = [urlsplit(each["clientConfig"]["url"]).path for each in entries]
        (self.path,) = (path for path in paths if path.startswith(f"{PATH}/"))

    # requests of the API server

    def post(self, *, is_fitting, owners=()):
        """Create a pod inside or outside the class as a dry run; return the response."""
        spec = {"nodeSelector": {ZONE: "here"}} if is_fitting else {}
        return self.affinity.post(pod_body(self.namespace, unique("pod"), list(owners), **spec))

    def page(self, path, name="health"):
        try:
            with urllib.request.urlopen(f"http://{LOOPBACK}:{self.ports[name]}{path}", timeout=IN_TIME) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def assert_served(self, rounds):
        """Assert that pods are admitted and denied by the operator, and that health responds, all in time."""
        for _ in range(rounds):
            admitted = timed(lambda: self.post(is_fitting=True))
            assert admitted.status == 201, admitted.content
            refused = timed(lambda: self.post(is_fitting=False))
            assert (refused.status, "belongs to no application" in refused.message) == (403, True), refused.content
            for path in ("/healthz", "/readyz"):
                assert timed(lambda path=path: self.page(path))[0] == 200

    def assert_served_at_once(self, count):
        """Create this many pods at once, so that the API server opens connections."""
        with ThreadPoolExecutor(count) as pool:
            answers = list(pool.map(lambda _: timed(lambda: self.post(is_fitting=True)), range(count)))
        assert [each.status for each in answers] == [201] * count, answers

    def ask(self, path, body, **headers):
        """Send an attacker's request; return the status, or 0 if the connection is closed while it sends."""
        try:
            return ask(self.ports["webhook"], path, body, headers=headers)[0]
        except (ConnectionError, ssl.SSLError):
            return 0

    # memory

    @contextmanager
    def growing_less_than(self, mib):
        """Assert that the operator's peak memory grows by less than the limit."""
        place = Path(f"/proc/{self._process.pid}")
        (place / "clear_refs").write_text("5")
        before = memory(place, "VmHWM")
        yield
        grown = memory(place, "VmHWM") - before
        assert grown < mib * MIB, f"from {before / MIB:.0f} MiB by {grown / MIB:.0f} MiB"


def memory(place, field):
    found = re.search(rf"^{field}:\s+(\d+) kB$", (place / "status").read_text(), re.MULTILINE)
    return int(found[1]) << 10


def timed(action):
    began = time.monotonic()
    answer = action()
    took = time.monotonic() - began
    assert took < IN_TIME, f"answered after {took:.1f} s"
    return answer


@pytest.fixture(scope="module")
def attacked(api, affinity_crds):
    with ExitStack() as ending:
        # The certificate in the Secret may be of another operator.
        discard(api.rest, SECRET)
        affinity = AffinityEnv(api)
        ending.callback(affinity.unregister)
        attacked = Attacked(api, affinity)
        ending.enter_context(attacked.running())
        ending.callback(affinity.close)
        attacked.prepare()
        yield attacked


class Attack:
    """Threads that repeat requests, each a number of times, and keep the statuses."""

    def __init__(self, action, *, threads=3, most=1000):
        self.answers = []
        self._action = action
        self._most = most
        self._stopped = threading.Event()
        self._until = time.monotonic() + MOST_SECONDS
        self._threads = [threading.Thread(target=self._run) for _ in range(threads)]

    def _run(self):
        for number in range(self._most):
            if self._stopped.is_set() or time.monotonic() > self._until:
                return
            self.answers.append(self._action(number))

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        until(lambda: self.answers, "the attack has begun")
        return self

    def __exit__(self, *_error):
        self._stopped.set()
        for thread in self._threads:
            thread.join()


# large bodies


def costly(size):
    """Reviews that take long to decode: unclosed, closed and adjacent brackets, nested keys, and floats."""
    review = question(object={"spec": "X"})
    for inner in (
        b"[" * size,
        b"[" * (size // 2) + b"]" * (size // 2),
        b"[" + b"[]," * (size // 3) + b"[]]",
        b'{"a":' * (size // 5),
        b"[" + b"1.7976931348623157e308," * (size // 23) + b"0]",
    ):
        yield review.replace(b'"X"', inner)


def test_megabytes_that_take_long_to_decode_delay_no_other_request(attacked):
    bodies = [body for size in (3 * MIB, 4 * MIB - 4096, 8 * MIB) for body in costly(size)]
    # The maximum that is decoded, in a thread.
    bodies += [*costly(200_000)] * 2
    order = itertools.cycle(bodies)

    def send(number):
        path = GUESSED if number % 3 == 0 else attacked.path
        return attacked.ask(path, next(order))

    with attacked.growing_less_than(80), Attack(send) as attack:
        attacked.assert_served(rounds=10)

    assert {404, 413} < set(attack.answers)
    # Closed brackets are a review without a pod; the operator denies what is too deep.
    assert set(attack.answers) <= {0, 200, 400, 404, 413, 429, 500}


def test_a_compressed_bomb_is_not_inflated(attacked):
    review = question(object={"spec": "X"}).replace(b'"X"', b'"' + bytes(200 * MIB) + b'"')
    deflated = zlib.compress(review)
    gzip = zlib.compressobj(wbits=31)
    gzipped = gzip.compress(review) + gzip.flush()

    def send(number):
        path = GUESSED if number % 3 == 0 else attacked.path
        if number % 2:
            return attacked.ask(path, gzipped, **{"Content-Encoding": "gzip"})
        return attacked.ask(path, deflated, **{"Content-Encoding": "deflate"})

    with attacked.growing_less_than(32), Attack(send, most=200) as attack:
        attacked.assert_served(rounds=10)

    assert 415 in attack.answers
    assert set(attack.answers) <= {404, 415, 429, 0}


# connections


def connection(attacked, *, tls=True, sent=b""):
    """Open an attacker's connection and send this much."""
    plain = socket.create_connection((LOOPBACK, attacked.ports["webhook"]), timeout=IN_TIME)
    if not tls:
        plain.sendall(sent)
        return plain
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        wrapped = context.wrap_socket(plain)
        wrapped.sendall(sent)
    except OSError:
        plain.close()
        raise
    return wrapped


def is_closed(connection):
    """Return whether the server has closed the connection, perhaps after an answer."""
    connection.settimeout(0)
    try:
        while connection.recv(4096):
            continue
    except (ssl.SSLWantReadError, BlockingIOError):
        return False
    except OSError:
        return True
    return True


HALVES = {
    "of-a-handshake": {"tls": False, "sent": b"\x16\x03\x01"},
    "of-nothing": {"tls": True},
    "of-a-head": {"tls": True, "sent": f"POST {PATH} HTTP/1.1\r\nHost: a\r\nX-".encode()},
}


def test_half_sent_request_heads_are_closed_and_keep_nobody_out(attacked):
    with ExitStack() as held:
        halves = [connection(attacked, **half) for half in HALVES.values() for _ in range(60)]
        for each in halves:
            held.callback(each.close)
        attacked.assert_served(rounds=5)

        until(lambda: all(is_closed(each) for each in halves), "all are closed", HEAD_SECONDS + 5)
        attacked.assert_served(rounds=1)


def test_idle_connections_above_all_limits_lock_nobody_out(attacked):
    with ExitStack() as held, attacked.growing_less_than(80):
        opened = []

        def open_one(number):
            """Open one connection without a handshake, one without a request, and two that are idle after one."""
            sent = b"" if number % 4 < 2 else b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
            try:
                opened.append(connection(attacked, tls=number % 4 > 0, sent=sent))
            except OSError:
                return False
            held.callback(opened[-1].close)
            return True

        with Attack(open_one, threads=1, most=LIMITS.per_peer + 200) as attack:
            attacked.assert_served(rounds=10)
        for number in range(len(attack.answers), LIMITS.per_peer + 200):
            open_one(number)
        assert len(opened) > LIMITS.per_peer
        attacked.assert_served(rounds=2)
        attacked.assert_served_at_once(16)
        assert sum(not is_closed(each) for each in opened) <= LIMITS.per_peer


# forged reviews


def test_forged_reviews_learn_nothing_and_leave_no_events(attacked):
    made = attacked.affinity.install(attacked.namespace, unique("set"))
    owner = owner_of({"apiVersion": "apps/v1", "kind": "StatefulSet", **made})
    forged = question(
        kind={"group": "", "version": "v1", "kind": "Pod"},
        resource={"group": "", "version": "v1", "resource": "pods"},
        namespace=attacked.namespace,
        name="forged",
        object=pod_body(attacked.namespace, "forged", [owner]),
    )
    guesses = [PATH, f"{PATH}/", f"{PATH}/guessed", GUESSED]

    def send(number):
        return attacked.ask(guesses[number % len(guesses)], forged)

    with Attack(send) as attack:
        until(lambda: len(attack.answers) > STRANGE_AT_ONCE * 2, "more is asked than a stranger may")
        attacked.assert_served(rounds=10)

    assert set(attack.answers) == {404, 429}
    # A denial of the API server's own review causes an Event, which would be later.
    assert attacked.post(is_fitting=False, owners=[owner]).status == 403
    found = until(lambda: told(attacked, owner), "the refusal is told")
    assert "forged" not in json.dumps(found)


def told(attacked, owner):
    events = attacked.api.rest.get(EVENTS)["items"]
    return [each for each in events if each.get("regarding", {}).get("uid") == owner["uid"]]
