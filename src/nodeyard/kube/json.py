"""What a JSON value is, in types.

Objects travel through the API server as plain dicts. They are persistent values: once handed over, a dict or list is
never changed in place; a function that changes something returns a new one that shares the untouched parts. That makes
copies cheap, lets a diff skip whatever is the same object, and makes an accidental write to the store impossible to
overlook.
"""

from typing import Any, TypeAlias

Json: TypeAlias = Any
Object: TypeAlias = dict[str, Any]
