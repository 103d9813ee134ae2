"""Free ports."""

from __future__ import annotations

import random
import socket

from nodeyard.testing import ports


def test_no_port_is_given_twice() -> None:
    given = [ports.free_port() for _ in range(50)]
    assert len(set(given)) == 50


def test_a_port_can_be_bound_and_is_not_one_for_outgoing_connections() -> None:
    port = ports.free_port()
    with socket.socket() as server, socket.socket() as client:
        server.bind((ports.LOOPBACK, port))
        server.listen()
        client.connect((ports.LOOPBACK, port))
        assert client.getsockname()[1] not in ports._candidates()


def test_a_seeded_test_does_not_get_the_ports_of_another() -> None:
    given = []
    for _ in range(2):
        random.seed(1)
        given.append([ports.free_port() for _ in range(5)])
    assert given[0] != given[1]


def test_a_port_in_use_is_not_free() -> None:
    with socket.socket() as server:
        server.bind((ports.LOOPBACK, 0))
        server.listen()
        assert not ports._is_free(server.getsockname()[1])
