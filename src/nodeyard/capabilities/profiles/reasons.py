"""Why something is done, refused, or as it is. `messages.text` makes a sentence of each."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    # what is done
    OBJECT_CREATED = "ServiceObjectCreated"
    OBJECT_UPDATED = "ServiceObjectUpdated"
    OBJECT_RECONFIGURED = "ServiceReconfigured"
    OBJECT_DELETED = "ServiceObjectDeleted"
    CONFIGURATION_WRITTEN = "ConfigurationWritten"
    CONFIGURATION_DELETED = "ConfigurationDeleted"
    LABELLED = "RoleLabelled"
    # how a choice stands
    FROM_NODE = "ChosenByNode"
    FROM_ROLE = "ChosenByRole"
    FROM_SELECTOR = "ChosenBySelector"
    DISABLED = "Disabled"
    NONE = "NoProfile"
    # why something is refused or waits
    INVALID = "ProfileInvalid"
    NOT_FOUND = "ProfileNotFound"
    AMBIGUOUS = "ProfileAmbiguous"
    ROLE_NOT_FOUND = "RoleNotFound"
    CLAIMED_TWICE = "KeyClaimedTwice"
    SERVICE_INVALID = "DeclarationInvalid"
    UNKNOWN_SERVICE = "UnknownService"
    CELL_CHANGED = "CellImmutable"
    ATTACHMENTS_DIFFER = "NetworkAttachmentsDiffer"
    VARS_INVALID = "AnsibleVarsInvalid"
    CONFIG_INVALID = "ConfigurationInvalid"
    CONFIG_DOUBTFUL = "ConfigurationDoubtful"
    FORBIDDEN = "MissingRight"
    NOT_SERVED = "KindNotServed"
    FOREIGN = "NotOurs"
    PINNED = "PinnedByPolicy"
    BUDGET_SPENT = "MaxUnavailable"
    STALLED = "ProgressDeadlineExceeded"
    PAUSED = "Paused"
    DELETING = "NodeDeleting"
    IN_USE = "ProfileInUse"
    # how things stand
    RECONCILED = "Reconciled"
    ROLLING = "RollingOut"
    AVAILABLE = "Available"
    SHARED = "RoleHasNodes"
    GIVEN = "GivenToNodes"
    SILENT = "RoleSilent"
    USED_BY_NODE = "UsedByNode"
    USED_BY_ROLE = "UsedByRole"
    USED_BY_SELECTOR = "UsedBySelector"
    # what would change it
    ANNOTATE_NODE = "AnnotateNode"
    ANNOTATE_ROLE = "AnnotateRole"
    CREATE_PROFILE = "CreateProfile"
    CREATE_ROLE = "CreateRole"
    MEND_VALUE = "MendValue"
    GRANT_RIGHT = "GrantRight"
    FOLLOW_PROFILE = "SetAutomatic"
    MEND_OPERATOR = "MendServiceOperator"
    SET_PRIORITY = "SetPriority"
