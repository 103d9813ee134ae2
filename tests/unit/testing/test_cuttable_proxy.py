"""A proxy forwards connections until it is cut."""

import socket
import threading

import pytest

from nodeyard.testing.cuttable_proxy import CuttableProxy
from nodeyard.testing.ports import LOOPBACK


@pytest.fixture
def echo():
    """The address of an echo server."""
    listener = socket.create_server((LOOPBACK, 0))

    def answer(connection):
        with connection:
            try:
                while said := connection.recv(4096):
                    connection.sendall(said)
            except OSError:
                return

    def serve():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=[connection], daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    yield f"https://{LOOPBACK}:{listener.getsockname()[1]}"
    listener.close()


@pytest.fixture
def proxy(echo):
    with CuttableProxy(echo) as proxy:
        yield proxy


def connect(proxy):
    return socket.create_connection((LOOPBACK, int(proxy.url.rpartition(":")[2])), timeout=5)


def test_data_is_forwarded(proxy):
    with connect(proxy) as connection:
        connection.sendall(b"hello")
        assert connection.recv(100) == b"hello"


def test_cut_it_ends_what_is_open(proxy):
    with connect(proxy) as connection:
        connection.sendall(b"hello")
        connection.recv(100)
        proxy.cut()
        try:
            left = connection.recv(100)
        except ConnectionError:
            left = b""
        assert left == b""


def test_a_cut_proxy_accepts_no_data(proxy):
    proxy.cut()
    with pytest.raises(ConnectionRefusedError):
        connect(proxy)


def test_without_a_server_behind_it_connections_end(echo):
    with socket.create_server((LOOPBACK, 0)) as closed:
        gone = f"https://{LOOPBACK}:{closed.getsockname()[1]}"
    with CuttableProxy(gone) as proxy, connect(proxy) as connection:
        try:
            left = connection.recv(100)
        except ConnectionError:
            left = b""
        assert left == b""
