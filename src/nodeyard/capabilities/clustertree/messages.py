"""The messages of clustertree: one class per reason, with its facts and its sentence.

A condition's text contains timestamps, never ages: an age would change the text, and so the status, at every reconcile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.kube.names import MIRRORED_CLUSTER, MIRRORED_NODE
from nodeyard.plan.layout import counted
from nodeyard.plan.message import NAMED, Message

_FIRST: Final = ("cpu", "memory", "pods")
_MODELS: Final = "spec.clusterTreeOptions.leafModels"
_GRACE: Final = "spec.clusterTreeOptions.credentialGrace"


def _list_names(items: Sequence[str], count: int = 0) -> str:
    """Name the first few, and the number of the others."""
    shown = ", ".join(items[:NAMED])
    more = max(count, len(items)) - len(items[:NAMED])
    return f"{shown} and {more} more" if more > 0 else shown


def _resources(has: Mapping[str, str], free: Mapping[str, str] | None = None) -> str:
    """Format as `cpu 4`, or `cpu 2500m of 4`, with the usual resources first and without zeros."""
    keys = [key for key in _FIRST if key in has] + sorted(key for key in has if key not in _FIRST)
    parts = [
        f"{key} {has[key]}" if free is None else f"{key} {free.get(key, '0')} of {has[key]}"
        for key in keys
        if has[key] != "0"
    ]
    return ", ".join(parts) or "nothing"


class TreeMessage(Message, frozen=True):
    """A message about a Cluster, or about a node that mirrors it. The sentence may name both."""

    sentence: ClassVar[str]
    cluster: str = ""
    node: str = ""

    def text(self) -> str:
        return self.sentence.format(cluster=self.cluster, node=self.node)


class ErrorMessage(TreeMessage, frozen=True):
    """A message that ends in `: error`."""

    error: str = ""

    def text(self) -> str:
        base = super().text()
        return f"{base}: {self.error}" if self.error else base


# actions


class FinalizerAdded(TreeMessage, frozen=True):
    reason = Reason.FINALIZER_ADDED
    sentence = f"Adds finalizer {names.FINALIZER} to Cluster {{cluster}}"


class FinalizerRemoved(TreeMessage, frozen=True):
    reason = Reason.FINALIZER_REMOVED
    sentence = f"Removes finalizer {names.FINALIZER} from Cluster {{cluster}}: none of its nodes is left"


class ClusterAnnotated(TreeMessage, frozen=True):
    reason = Reason.CLUSTER_ANNOTATED
    what: tuple[str, ...] = ()

    def text(self) -> str:
        return f"Updates annotations of Cluster {self.cluster}: {', '.join(self.what)}"


class LeafReplaced(TreeMessage, frozen=True):
    reason = Reason.LEAF_REPLACED
    recorded: str = ""
    found: str = ""

    def text(self) -> str:
        found = f"cluster {self.found}" if self.found else "a cluster that does not reveal its uid"
        return (
            f"Replaces leaf {self.recorded} of Cluster {self.cluster} with {found}: nodes that it does not have are "
            "removed, the others show what is free there"
        )


class NodeCreated(TreeMessage, frozen=True):
    reason = Reason.NODE_CREATED
    mode: str = ""
    model: str = "leafModels"

    def text(self) -> str:
        mirrored = {
            "one2cluster": "the leaf nodes",
            "one2node": "one leaf node",
            "one2party": "the selected leaf nodes",
        }
        what = f"{mirrored.get(self.mode, 'leaf nodes')} ({self.model})"
        return f"Creates node {self.node}, which mirrors {what} of Cluster {self.cluster}"


class NodeAdopted(TreeMessage, frozen=True):
    reason = Reason.NODE_ADOPTED
    sentence = "Adopts node {node}, which Kosmos created for Cluster {cluster}"


class NodeUpdated(TreeMessage, frozen=True):
    reason = Reason.NODE_UPDATED
    what: tuple[str, ...] = ()

    def text(self) -> str:
        return f"Updates node {self.node} to match the leaf and its model: {', '.join(self.what)}"


class ResourcesChanged(TreeMessage, frozen=True):
    reason = Reason.RESOURCES_CHANGED
    sentence = "Sets the resources of node {node} to what is free in Cluster {cluster}"


class NodeEmptied(TreeMessage, frozen=True):
    reason = Reason.NODE_EMPTIED
    sentence = "Sets the resources of node {node} to zero: it no longer mirrors any leaf node of Cluster {cluster}"


class ConditionsChanged(TreeMessage, frozen=True):
    reason = Reason.CONDITIONS_CHANGED
    status: str = ""
    why: str = ""
    """Status and reason of the Ready condition, if it changes."""

    def text(self) -> str:
        base = f"Sets the conditions of node {self.node}"
        return f"{base}: Ready is {self.status} ({self.why})" if self.status else base


_WHY_REMOVED: Mapping[str, str] = {
    Reason.DELETING: "Cluster {cluster} is being deleted",
    Reason.DISABLED: "spec.clusterTreeOptions.enable of Cluster {cluster} is false",
    Reason.IS_ROOT: f"Cluster {{cluster}} is annotated as the root itself ({names.CLUSTER_ROLE}: {names.ROOT})",
    Reason.LEAF_NODE_MISSING: "Cluster {cluster} no longer has a leaf node of that name",
}


class NodeRemoved(TreeMessage, frozen=True):
    reason = Reason.NODE_REMOVED
    why: str = ""
    """A reason; empty if no model asks for the node."""
    is_pending: bool = False
    """True as the answer of `why`, and not as an action."""

    def text(self) -> str:
        sentence = _WHY_REMOVED.get(self.why, f"no item of {_MODELS} of Cluster {{cluster}} asks for it")
        what = f"Node {self.node} is to be removed" if self.is_pending else f"Removes node {self.node}"
        return f"{what}: {sentence.format(cluster=self.cluster)}"


class LeaseRemoved(TreeMessage, frozen=True):
    reason = Reason.LEASE_REMOVED
    sentence = "Removes the lease of node {node}"


# refusals: a Cluster has no nodes, or not those in its leafModels


class IsRoot(TreeMessage, frozen=True):
    reason = Reason.IS_ROOT
    sentence = (
        f"Cluster {{cluster}} is annotated as the root itself ({names.CLUSTER_ROLE}: {names.ROOT}) and is not mirrored"
    )


class Disabled(TreeMessage, frozen=True):
    reason = Reason.DISABLED
    sentence = "spec.clusterTreeOptions.enable of Cluster {cluster} is false, so it has no nodes here"


class Paused(TreeMessage, frozen=True):
    reason = Reason.PAUSED
    sentence = "Cluster {cluster} is paused: only the leases and the Ready condition of its nodes follow the leaf"


class Deleting(TreeMessage, frozen=True):
    reason = Reason.DELETING
    sentence = "Cluster {cluster} is being deleted; its nodes and their leases are removed"


class NoKubeconfig(TreeMessage, frozen=True):
    reason = Reason.NO_KUBECONFIG
    sentence = "Cluster {cluster} has neither spec.kubeconfigSecretRef nor spec.kubeconfig; set one of them"


class KubeconfigRefused(ErrorMessage, frozen=True):
    reason = Reason.KUBECONFIG_REFUSED
    sentence = "The kubeconfig of Cluster {cluster} is refused"


class SecretMissing(ErrorMessage, frozen=True):
    reason = Reason.SECRET_MISSING
    secret: str = ""

    def text(self) -> str:
        base = (
            f"Secret {self.secret} in spec.kubeconfigSecretRef of Cluster {self.cluster} does not exist or lacks the "
            f"label {names.LEAF_KUBECONFIG}=true"
        )
        return f"{base} ({self.error})" if self.error else base


class ModelMessage(TreeMessage, frozen=True):
    """A message about one of the leaf models of a Cluster."""

    model: str = "A leaf model"
    """The field, such as leafModels[1]."""


class InvalidModel(ModelMessage, frozen=True):
    reason = Reason.INVALID_MODEL
    error: str = ""

    def text(self) -> str:
        return f"{self.model} of Cluster {self.cluster} is invalid and creates no node: {self.error}"


class NameTaken(ModelMessage, frozen=True):
    reason = Reason.NAME_TAKEN
    owner: str = ""
    """The Cluster that the node of that name says to mirror."""

    def text(self) -> str:
        base = f"{self.model} of Cluster {self.cluster} needs a node named {self.node}"
        if self.owner and self.owner == self.cluster:
            return (
                f"{base}, but the existing node has the annotation {MIRRORED_CLUSTER} and lacks the label "
                f"{MIRRORED_NODE}=true, so its owner is not certain. Nodeyard does not touch it: add the label, or "
                "delete the node"
            )
        mirrors = f"the node of that name mirrors Cluster {self.owner}"
        whose = mirrors if self.owner else "the node of that name is not a mirror"
        return f"{base}, but {whose}. Nodeyard does not touch it: delete that node, or change the model"


class LeafNodeMissing(ModelMessage, frozen=True):
    reason = Reason.LEAF_NODE_MISSING
    leaf_node: str = ""

    def text(self) -> str:
        return (
            f"{self.model} of Cluster {self.cluster} mirrors leaf node {self.leaf_node}, which the leaf does not have; "
            "its mirror is created when it appears"
        )


class ModelsOverlap(ModelMessage, frozen=True):
    reason = Reason.MODELS_OVERLAP
    by: str = ""
    leaf_nodes: tuple[str, ...] = ()
    """The first leaf nodes that both select; empty if both need the same node of the root."""
    count: int = 0

    def text(self) -> str:
        if not self.leaf_nodes:
            return (
                f"{self.model} of Cluster {self.cluster} needs node {self.node}, which {self.by} has; it gets no node"
            )
        which = _list_names(self.leaf_nodes, self.count)
        return (
            f"{self.model} of Cluster {self.cluster} also selects {which}, which {self.by} has; a leaf node counts once"
        )


class LeafShared(ModelMessage, frozen=True):
    reason = Reason.LEAF_SHARED
    by: str = ""

    def text(self) -> str:
        return (
            f"{self.model} of Cluster {self.cluster} creates no node: Cluster {self.by} mirrors the same leaf, came "
            "first and leaves it no leaf nodes; a leaf node counts once. Delete one of the two Clusters, or make their "
            "leafModels select different leaf nodes"
        )


class LeafChanged(TreeMessage, frozen=True):
    reason = Reason.LEAF_CHANGED
    recorded: str = ""
    found: str = ""

    def text(self) -> str:
        who = f"the server belongs to cluster {self.found}" if self.found else "the server does not reveal its cluster"
        return (
            f"The kubeconfig of Cluster {self.cluster} points to another cluster: its nodes mirror leaf "
            f"{self.recorded}, but {who} (uid of Namespace kube-system). Its nodes stay unchanged until the kubeconfig "
            "points to their leaf again, or the other leaf is approved"
        )


# contact with the leaf; also the Ready condition of nodes


class NotContacted(ErrorMessage, frozen=True):
    reason = Reason.NOT_CONTACTED
    sentence = "Leaf cluster {cluster} has not been reached yet"


class Reachable(TreeMessage, frozen=True):
    reason = Reason.REACHABLE
    sentence = "Leaf cluster {cluster} responds"


class Unreachable(TreeMessage, frozen=True):
    reason = Reason.UNREACHABLE
    error: str = ""
    last_contact: str = ""

    def text(self) -> str:
        since = f"has not responded since {self.last_contact}" if self.last_contact else "does not respond"
        error = f" ({self.error})" if self.error else ""
        return f"Leaf cluster {self.cluster} {since}; its state is unknown{error}"


class ProbeFailing(ErrorMessage, frozen=True):
    reason = Reason.PROBE_FAILING
    sentence = "Probes of leaf cluster {cluster} fail; after three failures in a row it is unreachable"


class CredentialsRejected(TreeMessage, frozen=True):
    reason = Reason.CREDENTIALS_REJECTED
    error: str = ""
    since: str = ""
    given_up: str = ""
    """The end of the grace, if it is over."""

    def text(self) -> str:
        if self.given_up:
            return (
                f"Leaf cluster {self.cluster} has rejected the credentials for longer than {_GRACE}, which ended at "
                f"{self.given_up}; its state is unknown"
            )
        rejects = f"has rejected the credentials since {self.since}" if self.since else "rejects the credentials"
        error = f" ({self.error})" if self.error else ""
        return f"Leaf cluster {self.cluster} responds but {rejects}{error}"


class LeafReady(TreeMessage, frozen=True):
    reason = Reason.LEAF_READY
    sentence = "Leaf cluster {cluster} responds and has ready nodes"


class LeafNodesNotReady(TreeMessage, frozen=True):
    reason = Reason.LEAF_NODES_NOT_READY
    is_empty: bool = False

    def text(self) -> str:
        if self.is_empty:
            return f"Leaf cluster {self.cluster} responds but has no leaf nodes for {self.node}; it offers nothing"
        return f"Leaf cluster {self.cluster} responds, but none of the leaf nodes of {self.node} is ready"


class LeafNodeSilent(TreeMessage, frozen=True):
    reason = Reason.LEAF_NODE_SILENT
    sentence = "Leaf cluster {cluster} responds, but its node {node} has stopped reporting"


class LeafNodeGone(TreeMessage, frozen=True):
    reason = Reason.LEAF_NODE_GONE
    sentence = (
        "Leaf cluster {cluster} no longer has node {node}; this mirror has nothing behind it and is to be removed"
    )


# resources and leases


class Synced(TreeMessage, frozen=True):
    reason = Reason.SYNCED
    sentence = "The nodes of Cluster {cluster} show what is free in the leaf"


class NotSynced(ErrorMessage, frozen=True):
    reason = Reason.NOT_SYNCED
    sentence = "The nodes and pods of leaf cluster {cluster} have not been listed yet"


class Stale(ErrorMessage, frozen=True):
    reason = Reason.STALE
    sentence = "The leaf of Cluster {cluster} is not watched; its nodes show the last known state"


class TooLarge(ErrorMessage, frozen=True):
    reason = Reason.TOO_LARGE
    sentence = (
        "Leaf cluster {cluster} is not watched; its nodes stay unchanged, and the connection is retried every five "
        "minutes"
    )


class UnreadableAmounts(TreeMessage, frozen=True):
    reason = Reason.UNREADABLE_AMOUNTS
    nodes: Mapping[str, str] = {}
    """Leaf nodes with an invalid quantity, and the error."""
    pods: tuple[str, ...] = ()

    def text(self) -> str:
        parts = []
        if nodes := [f"{node} ({error})" for node, error in self.nodes.items()]:
            parts.append(f"leaf nodes with an invalid quantity are not counted: {_list_names(nodes)}")
        if self.pods:
            parts.append(f"invalid resource requests of pods are not subtracted: {_list_names(self.pods)}")
        return f"In Cluster {self.cluster} {'; '.join(parts)}"


class WriteFailed(ErrorMessage, frozen=True):
    reason = Reason.WRITE_FAILED
    object: str = ""

    def text(self) -> str:
        base = f"{self.object} of Cluster {self.cluster} could not be written"
        return f"{base}: {self.error}" if self.error else base


class LeasesRenewed(TreeMessage, frozen=True):
    reason = Reason.LEASES_RENEWED
    sentence = "The leases of all nodes of Cluster {cluster} are renewed"


class LeasesLate(TreeMessage, frozen=True):
    reason = Reason.LEASES_LATE
    failed: Mapping[str, str] = {}
    renewed: str = ""

    def text(self) -> str:
        failed = [f"{name} ({error})" if error else name for name, error in self.failed.items()]
        base = (
            f"The leases of {_list_names(failed)} could not be renewed" if failed else "Leases are not renewed in time"
        )
        return f"{base}; all were last renewed at {self.renewed}" if self.renewed else base


class LeasesStopped(TreeMessage, frozen=True):
    reason = Reason.LEASES_STOPPED
    renewed: str = ""

    def text(self) -> str:
        base = f"Leases of Cluster {self.cluster} are not renewed while its leaf does not respond"
        return f"{base}; all were last renewed at {self.renewed}" if self.renewed else base


class NoNodes(TreeMessage, frozen=True):
    reason = Reason.NO_NODES
    sentence = "Cluster {cluster} has no nodes and therefore no leases"


class NodesPending(TreeMessage, frozen=True):
    reason = Reason.NODES_PENDING
    nodes: tuple[str, ...] = ()

    def text(self) -> str:
        return (
            f"Nodes of Cluster {self.cluster} could not be created yet: {_list_names(self.nodes)}. Another object "
            "changed meanwhile; the creation is retried"
        )


# candidates: a leaf node counts, or why it does not


class Counted(TreeMessage, frozen=True):
    reason = Reason.COUNTED
    has: Mapping[str, str] = {}
    free: Mapping[str, str] = {}

    def text(self) -> str:
        return f"Counted for {self.node}; free: {_resources(self.has, self.free)}"


class NotCounted(TreeMessage, frozen=True):
    """A leaf node that adds nothing to its mirror."""

    has: Mapping[str, str] = {}

    def why(self) -> str:
        return self.sentence

    def text(self) -> str:
        return f"{self.why()}; adds nothing to {self.node} (allocatable: {_resources(self.has)})"


class NotReady(NotCounted, frozen=True):
    reason = Reason.NOT_READY
    status: str = ""
    ready_reason: str = ""

    def why(self) -> str:
        return f"Not ready: Ready is {self.status} ({self.ready_reason})" if self.status else "Not ready"


class Cordoned(NotCounted, frozen=True):
    reason = Reason.CORDONED
    sentence = "Cordoned in the leaf"


class Tainted(NotCounted, frozen=True):
    reason = Reason.TAINTED
    taints: tuple[str, ...] = ()

    def why(self) -> str:
        return f"Tainted ({', '.join(self.taints)}), and spec.clusterTreeOptions.resources.excludeTainted is true"


class Unreadable(NotCounted, frozen=True):
    reason = Reason.UNREADABLE
    error: str = ""

    def why(self) -> str:
        return f"Invalid quantity ({self.error})"


class InOtherModel(ModelMessage, frozen=True):
    reason = Reason.IN_OTHER_MODEL
    by: str = ""
    other: str = ""

    def text(self) -> str:
        return f"{self.model} selects it too, but {self.by} has it (node {self.other}); a leaf node counts once"


class InOtherCluster(TreeMessage, frozen=True):
    reason = Reason.IN_OTHER_CLUSTER
    by: str = ""

    def text(self) -> str:
        return f"Cluster {self.by} mirrors the same leaf and has it; a leaf node counts once"


class NotSelected(TreeMessage, frozen=True):
    reason = Reason.NOT_SELECTED
    model: str = ""

    def text(self) -> str:
        return (
            f"{self.model} does not select it" if self.model else f"No leaf model of Cluster {self.cluster} selects it"
        )


# pods


class PodUnacknowledged(TreeMessage, frozen=True):
    reason = Reason.POD_UNACKNOWLEDGED
    pod: str = ""
    since: str = ""
    is_early: bool = False

    def text(self) -> str:
        base = f"Pod {self.pod} has been bound to {self.node}, which mirrors Cluster {self.cluster}, since {self.since}"
        if self.is_early:
            return f"{base} and is not acknowledged yet (no status.startTime)"
        return (
            f"{base} and is not acknowledged (no status.startTime): Nodeyard mirrors nodes and does not move pods. Run "
            "a pod sync such as Kosmos' pod controllers, or keep the pod off by not tolerating "
            f"{MIRRORED_NODE}=true:NoSchedule"
        )


# decisions, for `why`


class Mirrors(TreeMessage, frozen=True):
    """Leaf nodes that a node mirrors, and the resources that it offers."""

    model: str = ""
    leaf_node: str = ""
    allocatable: Mapping[str, str] | None = None

    def text(self) -> str:
        base = self.sentence.format(node=self.node, cluster=self.cluster, model=self.model, leaf_node=self.leaf_node)
        return base if self.allocatable is None else f"{base}; it offers {_resources(self.allocatable)}"


class MirrorsWhole(Mirrors, frozen=True):
    reason = Reason.MIRRORS_WHOLE
    sentence = "Node {node} mirrors the leaf nodes of Cluster {cluster} that no other model has"


class MirrorsNode(Mirrors, frozen=True):
    reason = Reason.MIRRORS_NODE
    sentence = "Node {node} mirrors leaf node {leaf_node} of Cluster {cluster}"


class MirrorsParty(Mirrors, frozen=True):
    reason = Reason.MIRRORS_PARTY
    sentence = "Node {node} mirrors the leaf nodes of Cluster {cluster} that {model} selects"


class IsLeaf(TreeMessage, frozen=True):
    reason = Reason.IS_LEAF
    version: str = ""
    nodes: tuple[str, ...] = ()
    leaf_nodes: int = 0

    def text(self) -> str:
        where = f"as {_list_names(self.nodes)}" if self.nodes else "as no node yet"
        version = f" ({self.version})" if self.version else ""
        return f"Cluster {self.cluster}{version} with {counted(self.leaf_nodes, 'leaf node')} appears {where}"


class RecordedByOperator(TreeMessage, frozen=True):
    """A condition that the operator wrote; its reason is that of the decision."""

    message: str = ""
    at: str = ""

    def text(self) -> str:
        return f"{self.message} (recorded by the operator at {self.at or 'an unknown time'})"


# advice, for `why`


class RestoreContact(TreeMessage, frozen=True):
    reason = Reason.RESTORE_CONTACT
    sentence = (
        "Restore the connection from the operator to the API server of Cluster {cluster}; two successful probes bring "
        "its nodes back"
    )


class RestoreKubeconfig(TreeMessage, frozen=True):
    reason = Reason.RESTORE_KUBECONFIG
    recorded: str = ""

    def text(self) -> str:
        return (
            f"Give Cluster {self.cluster} a kubeconfig that points to leaf {self.recorded}, or approve the other one: "
            "`nodeyard approve` lists what waits"
        )


class RenewCredentials(TreeMessage, frozen=True):
    reason = Reason.RENEW_CREDENTIALS
    sentence = (
        "Put a kubeconfig with valid credentials in the Secret or in spec.kubeconfig of Cluster {cluster}; no restart "
        "is needed"
    )


class LabelSecret(TreeMessage, frozen=True):
    reason = Reason.LABEL_SECRET
    secret: str = ""

    def text(self) -> str:
        return f"Create Secret {self.secret} with the label {names.LEAF_KUBECONFIG}=true"


class RenameNode(TreeMessage, frozen=True):
    reason = Reason.RENAME_NODE
    sentence = (
        f"Delete node {{node}} from the root, or change {_MODELS} of Cluster {{cluster}}; to have the node adopted, "
        f"give it the annotation {MIRRORED_CLUSTER}={{cluster}} and the label {MIRRORED_NODE}=true"
    )


class EnableTree(TreeMessage, frozen=True):
    reason = Reason.ENABLE_TREE
    sentence = "Set spec.clusterTreeOptions.enable of Cluster {cluster} to true"


class EndPause(TreeMessage, frozen=True):
    reason = Reason.END_PAUSE
    sentence = "Remove the annotation nodeyard.dev/paused from Cluster {cluster}"


class FixKubeconfig(TreeMessage, frozen=True):
    reason = Reason.FIX_KUBECONFIG
    sentence = (
        "Give Cluster {cluster} a self-contained kubeconfig: server, CA and credentials as data, without exec plugins "
        "and file references"
    )


class UncordonLeafNode(TreeMessage, frozen=True):
    reason = Reason.UNCORDON_LEAF_NODE
    sentence = "Uncordon the leaf nodes that should count"


class RunPodSync(TreeMessage, frozen=True):
    reason = Reason.SYNC_PODS
    sentence = "Run a pod sync to the leaf, or delete the pod"


class EditLeafModels(TreeMessage, frozen=True):
    reason = Reason.EDIT_LEAF_MODELS
    sentence = f"Change {_MODELS} of Cluster {{cluster}}"


ENDINGS: Final[Mapping[Reason, type[TreeMessage]]] = {
    Reason.DELETING: Deleting,
    Reason.IS_ROOT: IsRoot,
    Reason.DISABLED: Disabled,
}
"""Why a Cluster has no nodes at all."""
