"""Assignment of keys to replicas by rendezvous hashing. Pure.

All replicas compute the same assignment without communicating: each hashes every replica with the key, and the lowest
hash among the live replicas wins. When a replica joins or leaves, only the keys that it gains or had move.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from hashlib import sha256
from typing import Final

from nodeyard.kube.names import subdomain_faults
from nodeyard.runtime.capability import Key
from nodeyard.runtime.leader.election import lease_name

RANK_DELAY_SECONDS: Final = 3.0
"""Extra wait per rank: longer than a higher-ranked replica needs to notice a free key."""

_DIGITS: Final = 10
_REPLICA: Final = "replica-"
_READABLE: Final = 40


def rank(key: Key, replicas: Iterable[str]) -> list[str]:
    """Return the replicas in order of preference for a key."""
    return sorted(set(replicas), key=lambda each: (_digest(f"{each}\n{key}"), each))


def acquire_delay(key: Key, replica: str, live: Collection[str], holder: str, free_for: float) -> float:
    """Return the seconds until this replica should try to take a key whose Lease has been free for `free_for` seconds;
    0 or less means now. A holder that let the Lease expire does not count as live, whatever else is known of it."""
    candidates = {replica, *live} - ({holder} - {replica})
    wait = rank(key, candidates).index(replica) * RANK_DELAY_SECONDS
    return wait if holder == replica else wait - free_for


def key_lease(capability: str, key: Key) -> str:
    """Return the name of a key's Lease: readable if possible, always valid, and never that of a replica's Lease."""
    if not key:
        return lease_name(capability)
    name = f"{lease_name(capability)}-{key}"
    if not subdomain_faults(name) and not key.startswith(_REPLICA):
        return name
    readable = "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in key.lower())[:_READABLE]
    return f"{lease_name(capability)}-key-{readable.strip('-') or 'x'}-{_digest(key)}"


def replica_lease(capability: str, replica: str) -> str:
    return f"{replica_prefix(capability)}{_digest(replica)}"


def replica_prefix(capability: str) -> str:
    return f"{lease_name(capability)}-{_REPLICA}"


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:_DIGITS]
