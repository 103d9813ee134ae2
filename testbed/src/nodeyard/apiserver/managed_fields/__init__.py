"""Who owns which field of an object: metadata.managedFields, and the server-side apply that lives on it.

    create, update, patch ─▶ update()      the fields a write changed become the writer's
    apply                 ─▶ apply()       a configuration is merged, pruned, and owned by its manager

Both are pure functions on persistent values: type, live object and new object in, object with managedFields out.
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
