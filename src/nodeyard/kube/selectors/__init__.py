"""Which objects are meant: label selectors and field selectors, parsed once and asked often.

A label selector comes as text (`app=web,tier in (a,b),!gone,size>3`) from a list or watch, or as an object from a spec.
Either way it becomes one `LabelSelector`, whose `matches` is a function made for exactly its requirements. A field
selector compares the few fields by which a kind can be found. `SelectorError` carries the words of the API server's
refusal.
"""

from nodeyard.kube.selectors.errors import SelectorError
from nodeyard.kube.selectors.fields import FieldRequirement, FieldSelector, parse_fields
from nodeyard.kube.selectors.labels import LabelSelector, Operator, Requirement
from nodeyard.kube.selectors.objects import from_labels, from_object, object_errors
from nodeyard.kube.selectors.text import parse_labels

__all__ = [
    "FieldRequirement",
    "FieldSelector",
    "LabelSelector",
    "Operator",
    "Requirement",
    "SelectorError",
    "from_labels",
    "from_object",
    "object_errors",
    "parse_fields",
    "parse_labels",
]
