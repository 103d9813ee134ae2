"""Free TCP ports on the loopback interface.

Ports are below the kernel's ephemeral range. So while a server restarts, no outgoing connection takes its port, and a
client that keeps retrying cannot connect to itself.
"""

from __future__ import annotations

import random
import socket
from pathlib import Path

LOOPBACK = "127.0.0.1"
LOWEST = 20_000
_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
_given: set[int] = set()
_random = random.SystemRandom()  # tests seed the global generator, which would give two workers the same ports


def free_port() -> int:
    """Return a port that nobody listens on and that was not returned before.

    Another process may bind it first; the caller must be able to try another.
    """
    for candidate in _random.sample(_candidates(), k=500):
        if candidate not in _given and _is_free(candidate):
            _given.add(candidate)
            return candidate
    raise OSError(f"no free port between {LOWEST} and {_candidates()[-1]} on {LOOPBACK}")


def _candidates() -> range:
    try:
        first_ephemeral = int(_EPHEMERAL.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        first_ephemeral = 32_768
    return range(LOWEST, first_ephemeral) if first_ephemeral >= LOWEST + 1_000 else range(LOWEST, 65_000)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
