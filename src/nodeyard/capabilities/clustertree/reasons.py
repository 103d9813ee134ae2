"""Why something is done, refused, or as it is. `messages.text` makes a sentence of each."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    # what is done
    FINALIZER_ADDED = "FinalizerAdded"
    FINALIZER_REMOVED = "FinalizerRemoved"
    NODE_CREATED = "NodeCreated"
    NODE_ADOPTED = "NodeAdopted"
    NODE_UPDATED = "NodeUpdated"
    RESOURCES_CHANGED = "ResourcesChanged"
    CONDITIONS_CHANGED = "ConditionsChanged"
    NODE_REMOVED = "NodeRemoved"
    LEASE_REMOVED = "LeaseRemoved"
    # why a Cluster has no nodes, or not those that it asks for
    IS_ROOT = "IsRoot"
    DISABLED = "TreeDisabled"
    PAUSED = "Paused"
    DELETING = "ClusterDeleting"
    NO_KUBECONFIG = "NoKubeconfig"
    KUBECONFIG_REFUSED = "KubeconfigRefused"
    SECRET_MISSING = "KubeconfigSecretMissing"
    INVALID_MODEL = "InvalidLeafModel"
    NAME_TAKEN = "NodeNameTaken"
    LEAF_NODE_MISSING = "LeafNodeMissing"
    MODELS_OVERLAP = "LeafModelsOverlap"
    # contact; also the reasons of a node's Ready condition
    NOT_CONTACTED = "NotContacted"
    REACHABLE = "LeafReachable"
    UNREACHABLE = "LeafUnreachable"
    PROBE_FAILING = "ProbeFailing"
    CREDENTIALS_REJECTED = "CredentialsRejected"
    LEAF_READY = "KubeletReady"
    LEAF_NODES_NOT_READY = "LeafNodesNotReady"
    LEAF_NODE_SILENT = "LeafNodeSilent"
    # resources and leases
    SYNCED = "ResourcesSynced"
    NOT_SYNCED = "LeafNotListed"
    STALE = "LeafNotWatched"
    UNREADABLE_AMOUNTS = "UnreadableAmounts"
    WRITE_FAILED = "WriteFailed"
    HELD_BACK = "WrittenASecondAgo"
    LEASES_RENEWED = "LeasesRenewed"
    LEASES_LATE = "LeasesLate"
    LEASES_STOPPED = "LeasesStopped"
    NO_NODES = "NoNodes"
    LEASE_MOVED = "LeaseMovedByAnother"
    # why a leaf node does not count
    COUNTED = "Counted"
    NOT_READY = "LeafNodeNotReady"
    CORDONED = "LeafNodeCordoned"
    TAINTED = "LeafNodeTainted"
    UNREADABLE = "UnreadableQuantity"
    IN_OTHER_MODEL = "InOtherModel"
    NOT_SELECTED = "NotSelected"
    # pods
    POD_UNACKNOWLEDGED = "PodUnacknowledged"
    POD_ACKNOWLEDGED = "PodAcknowledged"
    # how things stand, for `why`
    MIRRORS_WHOLE = "MirrorsCluster"
    MIRRORS_NODE = "MirrorsLeafNode"
    MIRRORS_PARTY = "MirrorsLeafNodes"
    IS_LEAF = "IsLeaf"
    # what would change it
    RESTORE_CONTACT = "RestoreContact"
    RENEW_CREDENTIALS = "RenewCredentials"
    LABEL_SECRET = "LabelSecret"
    RENAME_NODE = "RenameNode"
    ENABLE_TREE = "EnableTree"
    END_PAUSE = "EndPause"
    MEND_CLUSTER = "MendCluster"
    UNCORDON_LEAF_NODE = "UncordonLeafNode"
    SYNC_PODS = "RunPodSync"
    EDIT_LEAF_MODELS = "EditLeafModels"
