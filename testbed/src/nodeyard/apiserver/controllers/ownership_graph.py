"""The graph of owners and dependents, by uid.

It contains only objects with an owner; the store answers whether an owner exists. So objects without owners cost
nothing, and an event of an object changes only its own edges.
"""

from __future__ import annotations

from nodeyard.apiserver.controllers.metadata import ObjectId, OwnerReference

Owners = tuple[OwnerReference, ...]


class OwnershipGraph:
    def __init__(self) -> None:
        self._owners: dict[str, tuple[ObjectId, Owners]] = {}
        self._dependents: dict[str, dict[str, bool]] = {}
        """Dependents by owner uid, with whether they block the owner's deletion."""

    def __contains__(self, uid: str) -> bool:
        return uid in self._owners

    def owners(self, uid: str) -> Owners:
        entry = self._owners.get(uid)
        return entry[1] if entry else ()

    def replace(self, dependent: ObjectId, owners: Owners) -> None:
        """Set the owners of an object."""
        self.forget(dependent.uid)
        if not owners:
            return
        self._owners[dependent.uid] = (dependent, owners)
        for owner in owners:
            blocks = self._dependents.setdefault(owner.uid, {})
            blocks[dependent.uid] = bool(owner.block_owner_deletion) or blocks.get(dependent.uid, False)

    def forget(self, uid: str) -> Owners:
        """Remove an object as a dependent; return the owners it had."""
        _, owners = self._owners.pop(uid, (None, ()))
        for owner in owners:
            dependents = self._dependents.get(owner.uid)
            if dependents is not None:
                dependents.pop(uid, None)
                if not dependents:
                    del self._dependents[owner.uid]
        return owners

    def dependents(self, uid: str) -> list[ObjectId]:
        return [self._owners[dependent][0] for dependent in self._dependents.get(uid, ())]

    def blocking_dependents(self, uid: str) -> list[ObjectId]:
        return [self._owners[dependent][0] for dependent, blocks in self._dependents.get(uid, {}).items() if blocks]


def unblocked(before: Owners, after: Owners) -> list[str]:
    """The uids of owners whose deletion is no longer blocked."""
    still = {owner.uid for owner in after if owner.block_owner_deletion}
    return [owner.uid for owner in before if owner.block_owner_deletion and owner.uid not in still]
