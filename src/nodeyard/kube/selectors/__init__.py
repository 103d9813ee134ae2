"""Label selectors and field selectors, parsed once and evaluated often.

A label selector is text (`app=web,tier in (a,b),!gone,size>3`) in a list or watch, or an object in a spec. Both become
a `LabelSelector`, whose `matches` is compiled for its requirements. A field selector compares the selectable fields of
a kind. `SelectorError` has the text of the API server's error.
"""

from nodeyard.kube.selectors.fields import FieldRequirement, FieldSelector, parse_fields
from nodeyard.kube.selectors.labels import LabelSelector, Operator, Requirement, SelectorError
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
