"""An existing node brought to what is wanted of it, by at most two patches: of metadata and spec, and of status.

Each that replaces a list is bound to the version that was looked at. Where there are both, both are, and that of status
comes first: what is true of the leaf does not wait for a change that is held for an approval, or that is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from nodeyard.capabilities.clustertree.planning import patches
from nodeyard.capabilities.clustertree.planning.availability import READY
from nodeyard.capabilities.clustertree.planning.ownership import node_ref
from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.capabilities.clustertree.snapshot import TreeNode
from nodeyard.capabilities.clustertree.types import Cluster
from nodeyard.kube.json import Object
from nodeyard.kube.taints import evicting
from nodeyard.plan.draft import Draft
from nodeyard.plan.model import Disruption, Verb, Write


@dataclass(frozen=True)
class Change:
    cluster: Cluster
    present: TreeNode
    wanted: TreeNode
    after: tuple[str, ...] = ()
    """The actions that have to come before it."""
    amounts: Reason = Reason.RESOURCES_CHANGED
    """Why the node offers something else."""

    def plan(self, draft: Draft, reason: Reason) -> None:
        """Add what is to be sent, the change of metadata and spec for this reason."""
        main = patches.of_main(self.present, self.wanted)
        status = patches.of_status(self.present, self.wanted, draft.now)
        is_bound = bool(main and status)
        after = self.after
        if status:
            told = self._of_status(status.body)
            after += (self._send(draft, status, *told, after, is_bound=is_bound, subresource="status"),)
        if main:
            self._send(draft, main, reason, {"what": main.fields()}, after, is_bound=is_bound, part_of=self._eviction)

    @property
    def _eviction(self) -> str:
        """What is approved where pods may have to leave: these taints, on whichever nodes; empty where none has to.

        The taints are named, for they may be the leaf's, and those that it gets later are another question."""
        taints = evicting(self.present.spec.taints, self.wanted.spec.taints)
        if not taints:
            return ""
        metadata, named = self.cluster.metadata, sorted(f"{each.key}={each.value}" for each in taints)
        return f"taint/{metadata.uid}/{metadata.generation}/{','.join(named)}"

    def _send(
        self,
        draft: Draft,
        patch: patches.Patch,
        reason: Reason,
        facts: Object,
        after: tuple[str, ...],
        *,
        is_bound: bool,
        subresource: str = "",
        part_of: str = "",
    ) -> str:
        metadata = self.present.metadata
        return draft.act(
            Verb.PATCH,
            node_ref(metadata.name, metadata.uid),
            reason,
            {"cluster": self.cluster.name, "node": metadata.name, **facts},
            Write(
                body=patch.body,
                subresource=subresource,
                resource_version=metadata.resource_version if is_bound or patch.is_guarded else "",
            ),
            diff=patch.diff(self.present),
            disruption=Disruption.EVICTS if part_of else Disruption.NONE,
            after=after,
            part=subresource,
            part_of=part_of,
        )

    def _of_status(self, body: Object) -> tuple[Reason, Object]:
        """What stands out of what a patch of status changes."""
        status = body.get("status") or {}
        if "conditions" in status:
            ready = self.wanted.condition(READY)
            return Reason.CONDITIONS_CHANGED, {} if ready is None else {"status": ready.status, "why": ready.reason}
        if "capacity" in status or "allocatable" in status:
            return self.amounts, {}
        return Reason.NODE_UPDATED, {"what": sorted(status) or sorted(body["metadata"])}
