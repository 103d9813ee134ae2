"""Field ownership (metadata.managedFields) and server-side apply, after structured-merge-diff.

    create, update, patch ─▶ update()      the writer becomes the manager of the fields that it changed
    apply                 ─▶ apply()       a configuration is merged, pruned, and owned by its manager

Both are pure functions on persistent values: schema, live object and new object in, object with managedFields out.

    fieldpath   paths, fieldset, codec
    typed       type_shape, type_check, compare, merge, owned_set
    merge       managers, scope, update, apply, conflicts, last_applied
"""

from nodeyard.apiserver.managed_fields.apply import apply
from nodeyard.apiserver.managed_fields.codec import managed_fields_fault
from nodeyard.apiserver.managed_fields.conflicts import ApplyConflict, ApplyError, Conflict
from nodeyard.apiserver.managed_fields.update import keep_times, update

__all__ = [
    "ApplyConflict",
    "ApplyError",
    "Conflict",
    "apply",
    "keep_times",
    "managed_fields_fault",
    "update",
]
