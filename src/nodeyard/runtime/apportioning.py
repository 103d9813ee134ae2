"""Who should have which key, as a matter of arithmetic that all replicas agree on without speaking. Pure.

Each replica draws a number for each key, made of both their names; of those that live the lowest should have it. When
one comes or goes, only the keys that it gets or had move.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from hashlib import sha256
from typing import Final

from nodeyard.kube.names import subdomain_faults
from nodeyard.runtime.capability import Key
from nodeyard.runtime.leader import lease_name

PATIENCE_SECONDS: Final = 3.0
"""How much longer each next in rank waits for those before it: longer than it takes them to see that a key is free."""

_DIGITS: Final = 10
_REPLICA: Final = "replica-"
_READABLE: Final = 40


def ranked(key: Key, replicas: Iterable[str]) -> list[str]:
    """The replicas for a key, the one that should have it first."""
    return sorted(set(replicas), key=lambda replica: (_digest(f"{replica}\n{key}"), replica))


def patience(key: Key, us: str, living: Collection[str], holder: str, free_for: float) -> float:
    """Seconds until we should try to get a key whose Lease has been free for so long; not above 0: now.

    Whoever held the Lease and let it run out does not count among the living, whatever else is heard of it.
    """
    candidates = {us, *living} - ({holder} - {us})
    wait = ranked(key, candidates).index(us) * PATIENCE_SECONDS
    return wait if holder == us else wait - free_for


def share_lease(capability: str, key: Key) -> str:
    """The name of a key's Lease: readable where it can be, and always a valid name that no replica's Lease has."""
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
